// What `1bit kernels` prints.
#pragma once

#include <optional>
#include <span>
#include <string>

#include "hrx/loom/image_info.h"
#include "hrx/loom/request.h"

namespace onebit {

struct KernelView {
    std::optional<loom::ImageInfo> info;  // NVIDIA's driver decides about registers itself
    loom::Occupancy occupancy;            // with info
    size_t image_bytes = 0;
    std::string code;  // assembly, or PTX
};

// Compiles it, the cache left aside. Errors as Loom gives them.
Result<KernelView> look_at_kernel(const loom::Request& request);

std::string kernels_to_text(std::span<const loom::Kernel> kernels);
std::string kernels_to_json(std::span<const loom::Kernel> kernels);
std::string view_to_text(const loom::Request& request, const KernelView& view);
std::string view_to_json(const loom::Request& request, const KernelView& view);

}  // namespace onebit
