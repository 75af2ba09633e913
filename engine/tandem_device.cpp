#include "engine/tandem_device.h"

#include <algorithm>
#include <cstdlib>
#include <string_view>

#include "base/log.h"
#include "engine/auto_route.h"
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

// The only device that llama.cpp is given.
void use_device(std::vector<std::string>* arguments, const std::string& device) {
    for (size_t i = 0; i < arguments->size();) {
        const auto word = arguments->begin() + static_cast<std::ptrdiff_t>(i);
        if (*word == "--device" || *word == "-dev")
            arguments->erase(word, word + std::min<std::ptrdiff_t>(2, arguments->end() - word));
        else
            ++i;
    }
    arguments->insert(arguments->begin(), {"--device", device});
}

}  // namespace

void hide_excluded_backends(const std::vector<ExcludedMember>& excluded, const std::vector<std::string>& arguments) {
    const auto used = [&](std::string_view backend) {
        for (const std::string& word : arguments) {
            size_t at = 0;
            while ((at = word.find(backend, at)) != std::string::npos) {
                const size_t end = word.find(',', at);
                const std::string name = word.substr(at, end == std::string::npos ? end : end - at);
                if (std::none_of(excluded.begin(), excluded.end(),
                                 [&](const ExcludedMember& one) { return one.member == name; }))
                    return true;
                at += backend.size();
            }
        }
        return false;
    };
    for (const ExcludedMember& one : excluded) {
        if (one.member.starts_with("Vulkan") && !used("Vulkan")) ::setenv("GGML_DISABLE_VULKAN", "1", 1);
        if (one.member.starts_with("CUDA") && !used("CUDA")) ::setenv("CUDA_VISIBLE_DEVICES", "", 1);
        if (one.member.starts_with("ROCm") && !used("ROCm")) ::setenv("HIP_VISIBLE_DEVICES", "-1", 1);
    }
}

Result<std::string> with_owner(const std::string& settings) {
    if (!value_of(settings, "owner").empty()) return settings;
    const std::string members[] = {value_of(settings, "decode"), value_of(settings, "prefill")};
    for (const char* backend : {"Vulkan", "CPU"})
        for (const std::string& member : members)
            if (member.starts_with(backend)) return "owner=" + member + "," + settings;
    return Error{ErrorCode::usage, "--prefill-device " + members[1] + " with --device " + members[0],
                 "one of the two a Vulkan device, whose memory the other can map", "none", "see 1bit devices"};
}

Result<RemainingMembers> without_members(tandem::Settings settings, const std::vector<ExcludedMember>& excluded) {
    const auto gone = [&](const std::string& name) {
        return std::any_of(excluded.begin(), excluded.end(),
                           [&](const ExcludedMember& one) { return one.member == name; });
    };
    if (gone(settings.prefill)) settings.prefill = gone(settings.decode) ? settings.owner : settings.decode;
    if (gone(settings.decode)) settings.decode = settings.prefill;
    if (gone(settings.decode))
        return Error{ErrorCode::unavailable, "members of the tandem", "at least one that is not excluded",
                     "none: " + excluded.back().member + ": " + excluded.back().reason,
                     "1bit doctor looks at the devices"};
    // without the owner there is no shared memory, and with the owner alone nobody to share it with
    const bool alone =
        gone(settings.owner) || (settings.prefill == settings.owner && settings.decode == settings.owner);
    RemainingMembers remaining;
    if (alone && !excluded.empty()) {
        remaining.alone = settings.decode;
        if (remaining.alone.starts_with("guest:")) remaining.alone.erase(0, 6);
    }
    remaining.settings = std::move(settings);
    return remaining;
}

Result<void> set_up_tandem(std::vector<std::string>* arguments, const std::vector<ExcludedMember>& excluded) {
    const auto found = std::find_if(arguments->begin(), arguments->end(),
                                    [](const std::string& word) { return word.starts_with(kTandemArgument); });
    if (found == arguments->end()) return {};
    auto text = with_owner(found->substr(std::string_view(kTandemArgument).size()));
    if (!text) return std::move(text).error();
    arguments->erase(found);
    if (const char* more = std::getenv("ONEBIT_TANDEM")) *text += std::string(",") + more;
    const auto route = take_auto_route(&*text);
    if (!route) return route.error();
    auto settings = tandem::parse_settings(*text);
    if (!settings) return std::move(settings).error();
    auto remaining = without_members(std::move(*settings), excluded);
    if (!remaining) return std::move(remaining).error();
    for (const ExcludedMember& one : excluded) log_warning("tandem", "without " + one.member + ": " + one.reason);
    if (!remaining->alone.empty()) {
        use_device(arguments, remaining->alone == "CPU" ? "none" : remaining->alone);
        log_warning("tandem", "everything on " + remaining->alone);
        return {};
    }
    const tandem::Settings& left = remaining->settings;
    auto device = tandem::register_tandem(left);
    if (!device) return std::move(device).error();
    use_device(arguments, ggml_backend_dev_name(*device));
    log_info("tandem",
             std::string(ggml_backend_dev_name(*device)) + ": prefill on " + left.prefill + ", decode on " +
                 left.decode + ", memory of " + left.owner +
                 (route->wanted ? "" : ", from " + std::to_string(left.min_tokens) + " tokens in a batch on"));
    begin_auto_route(*route, left, ggml_backend_dev_name(*device));
    return {};
}

}  // namespace onebit
