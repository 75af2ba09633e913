#include "engine/verify_split.h"

#include <algorithm>
#include <string_view>

#include "tandem/counters.h"
#include "tandem/device.h"

namespace onebit {
namespace {

bool is_vulkan(const std::string& name) {
    ggml_backend_dev_t device = ggml_backend_dev_by_name(name.c_str());
    return device != nullptr &&
           std::string_view(ggml_backend_reg_name(ggml_backend_dev_backend_reg(device))) == "Vulkan";
}

std::vector<MemberTokens> tokens_of(const std::string& tandem) {
    std::vector<MemberTokens> tokens;
    for (const tandem::Counts& counts : tandem::tandem_counts()) {
        if (counts.tandem != tandem) continue;
        for (const tandem::MemberCounts& member : counts.members) {
            tokens.push_back({member.member, member.prefill_tokens, member.decode_tokens});
        }
    }
    return tokens;
}

}  // namespace

Result<SplitDevice> make_split_device(const std::string& decode, const std::string& prefill, uint32_t min_tokens) {
    tandem::Settings settings;
    settings.owner = !is_vulkan(decode) && is_vulkan(prefill) ? prefill : decode;
    settings.prefill = prefill;
    settings.decode = decode;
    settings.min_tokens = min_tokens;
    const auto device = tandem::register_tandem(settings);
    if (!device.ok()) return device.error();
    SplitDevice split;
    split.device = ggml_backend_dev_name(*device);
    split.min_tokens = min_tokens;
    split.counters = [name = split.device] { return tokens_of(name); };
    return split;
}

}  // namespace onebit
