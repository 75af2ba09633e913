// Sealed bitcode: LLVM's reader trusts what it reads, so a module carries a digest that is compared first.
// Layout: 8 bytes "LOOMBC01", SHA-256 of the module, the module.
#pragma once

#include <cstddef>
#include <string_view>

namespace onebit::loom {

inline constexpr std::string_view seal_magic = "LOOMBC01";
inline constexpr size_t seal_digest_bytes = 32;
inline constexpr size_t seal_bytes = 8 + seal_digest_bytes;

}  // namespace onebit::loom
