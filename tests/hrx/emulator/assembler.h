// Assembles gfx1151 text with LLVM's MC assembler, for tests.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace onebit::emulator {

// The bytes of .text. A mistake in the text fails the test and gives nothing.
std::vector<std::uint8_t> assemble(const std::string& text, const std::string& processor = "gfx1151");

}  // namespace onebit::emulator
