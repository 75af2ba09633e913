// Checks of AQL packets before they run: what hardware would answer with a fault or with nonsense is refused by name.
#pragma once

#include <string>

#include "hrx/emulator/code_object.h"
#include "hrx/emulator/engine.h"
#include "hrx/hsa/hsa_api.h"

namespace onebit::emulator {

inline constexpr u32 kLargestGroup = 1024;
inline constexpr u32 kLargestLds = 65536;
// Of a work-item: COMPUTE_TMPRING_SIZE counts the scratch of a wave in 15 bits of 256 bytes.
inline constexpr u32 kLargestPrivate = 32767u * 256 / kLanes;

// The dispatch that a packet asks for; `problem` names a field that is wrong, empty when none is.
Dispatch read_dispatch(const hsa_kernel_dispatch_packet_t& packet, const Kernel& kernel, const MemoryMap& memory,
                       std::string& problem);

}  // namespace onebit::emulator
