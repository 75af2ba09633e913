#include "engine/auto_route.h"

#include <algorithm>
#include <charconv>

#include "base/log.h"
#include "engine/calibration.h"
#include "engine/devices.h"
#include "engine/route_choice.h"
#include "engine/route_table.h"
#include "ggml-backend.h"
#include "tandem/device.h"

namespace onebit {
namespace {

constexpr const char* kNever = "1073741824";  // no graph has so many tokens
constexpr uint32_t kMostUbatch = 1u << 24;

bool is_software(const std::string& member) {
    ggml_backend_dev_t device = ggml_backend_dev_by_name(member.c_str());
    return device != nullptr && is_software_vulkan(ggml_backend_dev_description(device));
}

Result<RouteTable> stored_table(const AutoRoute& route, const tandem::Settings& settings) {
    if (route.key.empty()) return Error{ErrorCode::not_found, "stored route", "a key", "none", ""};
    auto tables = open_route_tables();
    if (!tables) return std::move(tables).error();
    return load_route_table(*tables, route.key, {settings.prefill, settings.decode});
}

Result<RouteChoice> known_choice(const AutoRoute& route, const tandem::Settings& settings) {
    if (const auto table = stored_table(route, settings); table.ok()) {
        auto choice = choose_route(*table, {settings.decode, settings.prefill});
        if (choice) choice->reason += " (stored by " + table->source + ")";
        return choice;
    }
    for (const std::string& member : {settings.prefill, settings.decode}) {
        if (!is_software(member)) continue;
        RouteChoice choice;
        choice.decode = settings.decode;
        choice.prefill = settings.prefill;
        choice.min_tokens = std::min(kFixedMinTokens, route.ubatch);
        choice.reason = "prompts of " + std::to_string(choice.min_tokens) + " tokens and more on " + choice.prefill +
                        ": the fixed rule for software Vulkan, which " + member + " is";
        return choice;
    }
    return Error{ErrorCode::not_found, "stored route", "a table", "none", ""};
}

}  // namespace

Result<AutoRoute> take_auto_route(std::string* settings) {
    AutoRoute route;
    std::string left;
    for (size_t begin = 0; begin <= settings->size();) {
        const size_t end = std::min(settings->find(',', begin), settings->size());
        std::string part = settings->substr(begin, end - begin);
        begin = end + 1;
        if (part == "min=auto") {
            route.wanted = true;
            part = std::string("min=") + kNever;
        } else if (part.starts_with("ubatch=")) {
            const char* last = part.data() + part.size();
            const auto [stop, error] = std::from_chars(part.data() + 7, last, route.ubatch);
            if (error != std::errc() || stop != last || route.ubatch < 1 || route.ubatch > kMostUbatch)
                return Error{ErrorCode::usage, "tandem setting ubatch", "tokens of a ubatch", "'" + part + "'", ""};
            continue;
        } else if (part.starts_with("route=")) {
            route.key = part.substr(6);
            const bool digits = route.key.find_first_not_of("0123456789abcdef") == std::string::npos;
            if (route.key.size() != 64 || !digits)
                return Error{ErrorCode::usage, "tandem setting route", "64 hexadecimal digits", "'" + part + "'", ""};
            continue;
        }
        if (!part.empty()) left += (left.empty() ? "" : ",") + part;
    }
    *settings = std::move(left);
    return route;
}

void begin_auto_route(const AutoRoute& route, const tandem::Settings& settings, const std::string& device) {
    if (!route.wanted || settings.prefill == settings.decode) return;
    const auto choice = known_choice(route, settings);
    if (!choice) {
        log_info("engine", "auto: " + settings.decode + " for everything until the members are measured, in idle time");
        arrange_calibration({device, settings.owner, settings.decode, settings.prefill, route.key});
        return;
    }
    if (choice->split()) {
        const auto set =
            tandem::set_tandem_route(device, settings.prefill, settings.decode, int64_t{choice->min_tokens});
        if (!set) log_error("engine", "auto: " + set.error().message());
    }
    log_info("engine", "auto: " + choice->reason);
}

}  // namespace onebit
