// Text in the shared page between engine and supervisor: words that are read and written without a lock,
// with release and acquire.
#pragma once

#include <atomic>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace onebit {

// Bytes of the text, the rest 0; cut at one byte less than there is room.
void write_shared_text(std::span<std::atomic<uint64_t>> words, std::string_view text);
// Up to the first 0. Any content is read without harm.
std::string read_shared_text(std::span<const std::atomic<uint64_t>> words);

}  // namespace onebit
