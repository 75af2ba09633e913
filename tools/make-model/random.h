// Random numbers by place: a value depends on a key and an index alone, so that any thread may make any part of a
// model.
#pragma once

#include <cmath>
#include <cstdint>
#include <numbers>
#include <string_view>

namespace onebit {

// One step of SplitMix64 (Steele, Lea and Flood, OOPSLA 2014): each input has its own output.
constexpr uint64_t scramble(uint64_t value) {
    value += 0x9e3779b97f4a7c15u;
    value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9u;
    value = (value ^ (value >> 27)) * 0x94d049bb133111ebu;
    return value ^ (value >> 31);
}

constexpr uint64_t combine(uint64_t key, uint64_t value) { return scramble(key ^ scramble(value)); }

constexpr uint64_t combine(uint64_t key, std::string_view text) {
    for (const char letter : text) key = combine(key, static_cast<unsigned char>(letter));
    return combine(key, text.size());
}

// The index-th value of a standard normal distribution, by Box and Muller.
inline float normal_at(uint64_t key, uint64_t index) {
    const uint64_t bits = combine(key, index >> 1);
    // never 0, whose logarithm there is none of
    const double radius = std::sqrt(-2 * std::log((static_cast<double>(bits >> 32) + 0.5) * 0x1p-32));
    const double angle = static_cast<double>(bits & 0xffffffffu) * 0x1p-32 * 2 * std::numbers::pi;
    return static_cast<float>(radius * ((index & 1) == 0 ? std::cos(angle) : std::sin(angle)));
}

}  // namespace onebit
