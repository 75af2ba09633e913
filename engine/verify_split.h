// The device with which verify tests a split of prefill and decode.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/result.h"
#include "engine/verify.h"

namespace onebit {

struct SplitDevice {
    std::string device;       // its ggml name
    uint32_t min_tokens = 0;  // its threshold
    std::function<std::vector<MemberTokens>()> counters;
};

// Makes a tandem, which lives until the process ends. decode, prefill: ggml names; graphs of at least min_tokens go to
// prefill. The owner is that of engine/tandem_device.h. To be called before either device
// is used otherwise. Errors name the member and what it lacks.
Result<SplitDevice> make_split_device(const std::string& decode, const std::string& prefill, uint32_t min_tokens);

}  // namespace onebit
