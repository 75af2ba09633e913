#include "engine/tandem_device.h"

#include <algorithm>
#include <string_view>

#include "base/log.h"
#include "ggml-backend.h"
#include "tandem/device.h"

namespace onebit {
namespace {

std::string value_of(std::string_view settings, std::string_view key) {
    while (!settings.empty()) {
        const size_t end = std::min(settings.find(','), settings.size());
        const std::string_view part = settings.substr(0, end);
        if (part.size() > key.size() && part.starts_with(key) && part[key.size()] == '=')
            return std::string(part.substr(key.size() + 1));
        settings.remove_prefix(std::min(end + 1, settings.size()));
    }
    return "";
}

}  // namespace

Result<std::string> with_owner(const std::string& settings) {
    if (!value_of(settings, "owner").empty()) return settings;
    const std::string members[] = {value_of(settings, "decode"), value_of(settings, "prefill")};
    for (const char* backend : {"Vulkan", "CPU"})
        for (const std::string& member : members)
            if (member.starts_with(backend)) return "owner=" + member + "," + settings;
    return Error{ErrorCode::usage, "--prefill-device " + members[1] + " with --device " + members[0],
                 "one of the two a Vulkan device, whose memory the other can map", "none", "see 1bit devices"};
}

Result<void> set_up_tandem(std::vector<std::string>* arguments) {
    const auto found = std::find_if(arguments->begin(), arguments->end(),
                                    [](const std::string& word) { return word.starts_with(kTandemArgument); });
    if (found == arguments->end()) return {};
    auto text = with_owner(found->substr(std::string_view(kTandemArgument).size()));
    if (!text) return std::move(text).error();
    arguments->erase(found);
    auto settings = tandem::parse_settings(*text);
    if (!settings) return std::move(settings).error();
    auto device = tandem::register_tandem(*settings);
    if (!device) return std::move(device).error();
    arguments->insert(arguments->begin(), {"--device", ggml_backend_dev_name(*device)});
    log_info("engine", std::string(ggml_backend_dev_name(*device)) + ": prefill on " + settings->prefill +
                           ", decode on " + settings->decode + ", from " + std::to_string(settings->min_tokens) +
                           " tokens in a batch on");
    return {};
}

}  // namespace onebit
