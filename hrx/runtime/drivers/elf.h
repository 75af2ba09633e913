// A look at an ELF image before a driver's loader, which takes no size or trusts it, reads it.
#pragma once

#include <cstddef>
#include <span>

namespace onebit::hrx::runtime {

// Whether it is a 64-bit little-endian ELF file whose header, tables and segments all lie within the bytes.
// Offsets by the System V ABI, chapter 4 (ELF-64).
bool elf_is_complete(std::span<const std::byte> image);

}  // namespace onebit::hrx::runtime
