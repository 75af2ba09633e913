// What the headers of the kernel families share; read by the host and by the device.
//
// A family's header has its argument blocks: HRX_BINDING fields first, then constants. The host fills in the constants
// and gives libhrx what follows the bindings (constants_of); the device reads the whole block.
//
// Tensors have up to four dimensions, dimension 0 is the innermost. `ne` counts elements, strides are in elements of
// the tensor's type, for block-quantised types in blocks. Bindings begin at the tensor's first element.
#pragma once

#if defined(__AMDGCN__) || defined(__NVPTX__)
#include "hrx/kernels/device.h"
#define HRX_BINDING(...) GLOBAL __VA_ARGS__*
#else
#include <cstddef>
#include <cstdint>
#include <span>
#define HRX_BINDING(...) uint64_t
#endif

namespace onebit::hrx::kernels {

// How to dispatch a kernel: workgroups, and work-items of one workgroup, which is one-dimensional. A count of 0
// dispatches nothing. groups[1] and groups[2] must stay below 65536 (CUDA).
struct Launch {
    uint32_t groups[3];
    uint32_t threads;
};

#if !defined(__AMDGCN__) && !defined(__NVPTX__)
template <typename Block>
std::span<const std::byte> constants_of(const Block& block) {
    return std::as_bytes(std::span(&block, 1)).subspan(Block::bindings * sizeof(uint64_t));
}
#endif

constexpr uint32_t divide_up(uint64_t value, uint32_t unit) { return static_cast<uint32_t>((value + unit - 1) / unit); }

constexpr uint64_t count_of(const uint32_t (&ne)[4]) { return uint64_t{ne[0]} * ne[1] * ne[2] * ne[3]; }

// Place of one element.
struct Index4 {
    uint32_t i0, i1, i2, i3;
};

constexpr Index4 unravel(uint32_t index, const uint32_t (&ne)[4]) {
    const uint32_t row = index / ne[0], plane = row / ne[1];
    return {index - row * ne[0], row - plane * ne[1], plane % ne[2], plane / ne[2]};
}

constexpr uint64_t offset_of(const Index4& i, const uint32_t (&stride)[4]) {
    return uint64_t{i.i0} * stride[0] + uint64_t{i.i1} * stride[1] + uint64_t{i.i2} * stride[2] +
           uint64_t{i.i3} * stride[3];
}

}  // namespace onebit::hrx::kernels
