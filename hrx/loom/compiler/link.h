// Links the one relocatable object of a kernel into an HSACO: what lld -shared would do for it, in a few microseconds
// and without lld. Layout: LLVM's "User Guide for AMDGPU Backend", ELF Code Object; ELF gABI for the rest.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace onebit::loom {

// object: ELF64, little-endian, as LLVM writes it for amdgcn. Read-only data, code and notes only; a writable section,
// a symbol defined elsewhere or an unknown relocation is refused. On failure image is unspecified and the text says
// what was found; empty on success.
std::string link_hsaco(std::string_view object, std::vector<char>* image);

}  // namespace onebit::loom
