// What an image takes of a compute unit, read from the HSACO itself. For people who write or tune kernels.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "base/result.h"
#include "hrx/loom/targets.h"

namespace onebit::loom {

// Bytes, and registers of a work-item or, for scalar ones, of a wave.
struct ImageInfo {
    uint32_t vector_registers = 0;
    uint32_t scalar_registers = 0;  // the hardware gives every wave 106 of them and the special ones
    uint32_t spilled_vector_registers = 0, spilled_scalar_registers = 0;
    uint32_t lds_bytes = 0;      // without what a launch adds
    uint32_t scratch_bytes = 0;  // of a work-item
    uint32_t argument_bytes = 0;
    uint32_t code_bytes = 0;
};

// image: HSACO with this kernel alone. From the metadata note: LLVM's "User Guide for AMDGPU Backend", Code Object V5
// Metadata. Error invalid with the kernel as subject.
Result<ImageInfo> read_image_info(std::string_view kernel, std::span<const std::byte> image);

// Waves that a SIMD unit can hold at a time, by registers and by LDS; 16 is the most.
struct Occupancy {
    uint32_t by_registers = 0, by_lds = 0;
    uint32_t waves() const { return by_registers < by_lds ? by_registers : by_lds; }
};

// An estimate: workgroups of whole waves, spread over the four SIMD units of a workgroup processor, which has 128 KiB
// of LDS. Register files and granules as LLVM's back end has them for these chips. lds_bytes: static and dynamic
// together.
Occupancy estimate_occupancy(const Target& target, uint32_t vector_registers, uint32_t lds_bytes, uint32_t workgroup);

}  // namespace onebit::loom
