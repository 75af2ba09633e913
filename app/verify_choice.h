// The sides that `1bit verify` compares, as the user names them.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "engine/devices.h"
#include "engine/verify.h"
#include "engine/verify_split.h"

namespace onebit {

// As the flags of 1bit serve have it: what decodes, what prefills if that is another, and from how many tokens on.
struct DeviceChoice {
    std::string devices;                         // a list for select_devices()
    std::string prefill_device;                  // empty: no split
    std::optional<uint32_t> prefill_min_tokens;  // unset: auto
    bool is_split() const { return !prefill_device.empty(); }
};

// "vulkan", "Vulkan0,Vulkan1" or flags of 1bit serve: "--device vulkan --prefill-device cpu --prefill-min-tokens 32".
// Error usage, naming `flag`, for anything else.
Result<DeviceChoice> parse_device_choice(const std::string& flag, const std::string& text);

// make_split_device(), replaceable for tests. min_tokens: unset for auto.
using MakeSplit = std::function<Result<SplitDevice>(const std::string& decode, const std::string& prefill,
                                                    std::optional<uint32_t> min_tokens)>;

// Errors of select_devices() and of make_split.
Result<VerifyDevice> resolve_choice(const DeviceChoice& choice, const std::vector<PhysicalDevice>& devices,
                                    const MakeSplit& make_split);

struct VerifySides {
    DeviceChoice tested, reference;
    std::optional<DeviceChoice> third;
};

// Fills what the user left empty: tested are the default GPUs; the reference of a split is its decoding device alone,
// that of another choice the CPU; the third of a split is its prefill device alone, else the CPU, unless it is one of
// the two; "none" for no third. Error usage when two sides are needed and the machine has no GPU.
Result<VerifySides> choose_sides(const std::string& tested, const std::string& reference, const std::string& third,
                                 const std::vector<PhysicalDevice>& devices);

}  // namespace onebit
