// The tandem of an engine process, made before llama.cpp's server starts.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "server/supervisor/member_failure.h"
#include "tandem/settings.h"

namespace onebit {

// The argument that the supervisor puts before those of llama.cpp's server when a model prefills on another device than
// it decodes on: "--onebit-tandem=prefill=Vulkan0,decode=CUDA0,min=256", or min=auto (engine/auto_route.h). The owner
// can export memory (Vulkan, else the CPU), unless "owner=" names it.
inline constexpr const char* kTandemArgument = "--onebit-tandem=";

// Takes the argument out, makes the tandem and gives llama.cpp the one device Tandem0, or the device that is left when
// the others are excluded; without the argument, nothing. More settings may stand in the variable ONEBIT_TANDEM. Call
// once, before any device is used and before any thread exists. Error: a device that does not exist, or that cannot
// share memory with the other one, by name.
Result<void> set_up_tandem(std::vector<std::string>* arguments, const std::vector<ExcludedMember>& excluded = {});

// What is left of a tandem: settings of a smaller one, or the device that works alone.
struct RemainingMembers {
    tandem::Settings settings;
    std::string alone;  // empty: there is a tandem
};
// Error unavailable when all are excluded. Names that are no members do not matter.
Result<RemainingMembers> without_members(tandem::Settings settings, const std::vector<ExcludedMember>& excluded);

// Keeps the drivers of excluded members from being asked, unless the arguments name another device of theirs: a lost
// device may hang whoever opens its driver. Call before any driver is loaded.
void hide_excluded_backends(const std::vector<ExcludedMember>& excluded, const std::vector<std::string>& arguments);

// Fills in the owner. Error usage when no member can own the memory.
Result<std::string> with_owner(const std::string& settings);

}  // namespace onebit
