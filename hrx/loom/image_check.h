// A look at an image before a driver gets it: an entry of the disk cache may be anything that once had the right
// digest.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

#include "base/result.h"
#include "hrx/loom/targets.h"

namespace onebit::loom {

// HSACO: a complete ELF file for this very chip that exports the kernel and its descriptor. PTX: text for this chip
// with an entry of this name. Error invalid with the kernel as subject.
Result<void> check_image(std::string_view kernel, const Target& target, std::span<const std::byte> image);

}  // namespace onebit::loom
