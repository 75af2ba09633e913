#include "engine/verify_split.h"

#include "engine/tandem_device.h"
#include "tandem/counters.h"
#include "tandem/device.h"

namespace onebit {
namespace {

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
    auto text = with_owner("prefill=" + prefill + ",decode=" + decode + ",min=" + std::to_string(min_tokens));
    if (!text.ok()) return std::move(text).error();
    auto settings = tandem::parse_settings(*text);
    if (!settings.ok()) return std::move(settings).error();
    const auto device = tandem::register_tandem(*settings);
    if (!device.ok()) return device.error();
    SplitDevice split;
    split.device = ggml_backend_dev_name(*device);
    split.min_tokens = min_tokens;
    split.counters = [name = split.device] { return tokens_of(name); };
    return split;
}

}  // namespace onebit
