// Images of hrx/kernels/runtime that the build put into the library.
#pragma once

#include <cstddef>
#include <span>
#include <string>

namespace onebit::hrx::runtime {

struct BuiltinImage {
    const char* target;  // "gfx1151", "sm_80"
    const std::byte* begin;
    const std::byte* end;
};

// Written by the build (hrx_embed_images of cmake/HrxKernels.cmake), ended by an entry without a target.
extern const BuiltinImage builtin_image_table[];

// Empty when the build has none for this target.
std::span<const std::byte> builtin_image(const std::string& target);
// "gfx1151, sm_80", or "nothing".
std::string builtin_targets();

}  // namespace onebit::hrx::runtime
