// The kernels of this build by name: what a kernel declares (specialise.h), its bitcode for Loom, and generic images.
// All of it is constant data of the program; nothing here loads a driver or a compiler. Thread rules: none needed.
// Names are ended by a zero.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "base/result.h"

namespace onebit::loom {

// LOOM_ARGUMENT or LOOM_OPTION. minimum <= value <= maximum.
struct Constant {
    std::string_view name;
    bool is_option;
    uint32_t offset;    // of an argument, in the argument block
    uint32_t standard;  // of an option: its value in generic images
    uint32_t minimum, maximum;
};

struct Image {
    std::string_view target;           // "gfx1151", "sm_90"
    std::span<const std::byte> bytes;  // HSACO or PTX, with this one kernel
};

struct Kernel {
    std::string_view name;    // the entry point, in every image
    std::string_view source;  // file in the repository
    uint32_t workgroup;       // work-items of a group, x * y * z, where no option called workgroup says otherwise
    uint32_t argument_bytes;  // of the argument block
    std::span<const Constant> constants;
    std::span<const std::byte> amdgcn, nvptx;  // bitcode
    std::span<const Image> images;             // generic
};

// Sorted by name.
std::span<const Kernel> kernel_set();

// Error not_found with the nearest name.
Result<const Kernel*> find_kernel(std::string_view name);

// Error usage with the names that there are.
Result<const Constant*> find_constant(const Kernel& kernel, std::string_view name);

// The image that runs on a device of this architecture (hrx_device_info::architecture): of the same name on AMD, the
// newest that is not newer on NVIDIA, whose PTX loads forward. Error unsupported with the targets that there are.
Result<Image> generic_image(const Kernel& kernel, std::string_view architecture);

}  // namespace onebit::loom
