// The tandem of an engine process, made before llama.cpp's server starts.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"

namespace onebit {

// The argument that the supervisor puts before those of llama.cpp's server when a model prefills on another device than
// it decodes on: "--onebit-tandem=prefill=Vulkan0,decode=CUDA0,min=256". The owner is the member that can export memory
// (Vulkan, else the CPU), unless "owner=" names it.
inline constexpr const char* kTandemArgument = "--onebit-tandem=";

// Takes the argument out, makes the tandem and puts "--device Tandem0" in its place; without one, nothing. Call once,
// before any device is used and before any thread exists. Error: a device that does not exist, or that cannot share
// memory with the other one, by name.
Result<void> set_up_tandem(std::vector<std::string>* arguments);

// Fills in the owner. Error usage when no member can own the memory.
Result<std::string> with_owner(const std::string& settings);

}  // namespace onebit
