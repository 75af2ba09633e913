// How vector instructions read and write registers; lane functions in the vector_*.cpp tables do the arithmetic.
#pragma once

#include "hrx/emulator/bind.h"
#include "hrx/emulator/wave.h"

namespace onebit::emulator {

// 32 (or 64, for two words) values of a source after its modifiers; in `buffer` unless they lie ready elsewhere.
const u32* fetch_slow(const Wave& wave, const Operand& operand, u32* buffer);
inline const u32* fetch(const Wave& wave, const Operand& operand, u32* buffer) {
    if (operand.plain) return wave.v[operand.index];
    return fetch_slow(wave, operand, buffer);
}
// Values without modifiers, for what permutes lanes first.
const u32* fetch_raw(const Wave& wave, const Operand& operand, u32* buffer);
void apply_modifiers(const Operand& operand, u32* values);

// Writes the lanes of `exec`, after clamp and omod.
void store_result(Wave& wave, const Instruction& instruction, const Operand& destination, u32* values, u32 exec);
void store_lanes(Wave& wave, u16 index, const u32* values, u32 exec);

// Applies DPP to a source. Returns the lanes whose destination is written; `values` gets the permuted source.
u32 permute_dpp(Wave& wave, const Instruction& instruction, const Operand& operand, u32* values);

void execute_vector(Wave& wave, const Instruction& instruction);
void execute_vector_dpp(Wave& wave, const Instruction& instruction);
void execute_dual(Wave& wave, const Instruction& instruction);
void execute_carry(Wave& wave, const Instruction& instruction);

// ---- lane functions from formulas over typed values ----

#define ONEBIT_FOR_LANES _Pragma("GCC ivdep") for (int lane = 0; lane < kLanes; ++lane)

template <auto F>
void f32_1(u32* d, const u32* a, const u32*, const u32*) {
    ONEBIT_FOR_LANES d[lane] = bits_of(F(as_f32(a[lane])));
}
template <auto F>
void f32_2(u32* d, const u32* a, const u32* b, const u32*) {
    ONEBIT_FOR_LANES d[lane] = bits_of(F(as_f32(a[lane]), as_f32(b[lane])));
}
template <auto F>
void f32_3(u32* d, const u32* a, const u32* b, const u32* c) {
    ONEBIT_FOR_LANES d[lane] = bits_of(F(as_f32(a[lane]), as_f32(b[lane]), as_f32(c[lane])));
}
// Over words as they are; the formula gives u32.
template <auto F>
void word_1(u32* d, const u32* a, const u32*, const u32*) {
    ONEBIT_FOR_LANES d[lane] = F(a[lane]);
}
template <auto F>
void word_2(u32* d, const u32* a, const u32* b, const u32*) {
    ONEBIT_FOR_LANES d[lane] = F(a[lane], b[lane]);
}
template <auto F>
void word_3(u32* d, const u32* a, const u32* b, const u32* c) {
    ONEBIT_FOR_LANES d[lane] = F(a[lane], b[lane], c[lane]);
}
// 64-bit values in two words, `Wide` says which sources are 64-bit (bit 0 the first) and bit 3 the result.
inline u64 wide_at(const u32* p, int lane) { return p[lane] | static_cast<u64>(p[kLanes + lane]) << 32; }
template <unsigned Wide, auto F>
void wide_3(u32* d, const u32* a, const u32* b, const u32* c) {
    for (int lane = 0; lane < kLanes; ++lane) {
        const u64 x = (Wide & 1) != 0 ? wide_at(a, lane) : a[lane];
        const u64 y = (Wide & 2) != 0 ? wide_at(b, lane) : b[lane];
        const u64 z = (Wide & 4) != 0 ? wide_at(c, lane) : c[lane];
        const u64 result = F(x, y, z);
        d[lane] = static_cast<u32>(result);
        if constexpr ((Wide & 8) != 0) d[kLanes + lane] = static_cast<u32>(result >> 32);
    }
}

}  // namespace onebit::emulator
