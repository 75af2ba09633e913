// Decoders of block-quantised weights (quants.h describes the blocks) into integers: a unit is 32 weights, two runs of
// 16 consecutive elements at first(u) and second(u) of the block. A weight is scale * integer + offset, with one scale
// and offset a run.
#pragma once

#include "hrx/kernels/quants.h"

namespace onebit::hrx::kernels {

struct Int8Unit {
    uint32_t words[8];  // four signed bytes each
    float scale[2], offset[2];
};

template <typename Quant>
struct Int8;

template <>
struct Int8<Q4_0> {
    static constexpr uint32_t units = 1;
    INLINE uint32_t first(uint32_t) { return 0; }
    INLINE uint32_t second(uint32_t) { return 16; }
    INLINE Int8Unit decode(GLOBAL const uint8_t* from, uint32_t) {
        Int8Unit unit;
#pragma unroll
        for (uint32_t i = 0; i < 4; ++i) {
            const uint32_t word = load_word(from + 2 + 4 * i);
            unit.words[i] = word & 0x0f0f0f0fu;
            unit.words[4 + i] = word >> 4 & 0x0f0f0f0fu;
        }
        unit.scale[0] = unit.scale[1] = load_half(from);
        unit.offset[0] = unit.offset[1] = -8.0f * unit.scale[0];
        return unit;
    }
};

template <>
struct Int8<Q8_0> {
    static constexpr uint32_t units = 1;
    INLINE uint32_t first(uint32_t) { return 0; }
    INLINE uint32_t second(uint32_t) { return 16; }
    INLINE Int8Unit decode(GLOBAL const uint8_t* from, uint32_t) {
        Int8Unit unit;
#pragma unroll
        for (uint32_t i = 0; i < 8; ++i) unit.words[i] = load_word(from + 2 + 4 * i);
        unit.scale[0] = unit.scale[1] = load_half(from);
        unit.offset[0] = unit.offset[1] = 0.0f;
        return unit;
    }
};

template <>
struct Int8<Q4_K> {
    static constexpr uint32_t units = 8;
    INLINE uint32_t first(uint32_t u) { return 64 * (u / 2) + 16 * (u % 2); }
    INLINE uint32_t second(uint32_t u) { return first(u) + 32; }
    INLINE Int8Unit decode(GLOBAL const uint8_t* from, uint32_t u) {
        Int8Unit unit;
        const uint4 quants = *reinterpret_cast<GLOBAL const uint4*>(from + 16 + 16 * u);
        Q4_K::decode_scales(*reinterpret_cast<GLOBAL const uint4*>(from), u / 2, unit.scale, unit.offset);
#pragma unroll
        for (uint32_t i = 0; i < 4; ++i) {
            unit.words[i] = quants[i] & 0x0f0f0f0fu;
            unit.words[4 + i] = quants[i] >> 4 & 0x0f0f0f0fu;
        }
        return unit;
    }
};

template <>
struct Int8<Q6_K> {
    static constexpr uint32_t units = 8;
    INLINE uint32_t first(uint32_t u) { return 128 * (u / 4) + 16 * (u % 4); }
    INLINE uint32_t second(uint32_t u) { return first(u) + 64; }
    INLINE Int8Unit decode(GLOBAL const uint8_t* from, uint32_t u) {
        Int8Unit unit;
        const uint32_t half = u / 4, upper_shift = u % 4 / 2 * 2;
        GLOBAL const uint8_t* low = from + 16 * u;
        GLOBAL const uint8_t* upper = from + 128 + 32 * half + 16 * (u % 2);
        GLOBAL const uint8_t* scales = from + 192 + 8 * half + u % 4;
        const float d = load_half(from + 208);
#pragma unroll
        for (uint32_t i = 0; i < 4; ++i) {
            const uint32_t low_bits = load_word(low + 4 * i), upper_bits = load_word(upper + 4 * i) >> upper_shift;
            unit.words[i] = (low_bits & 0x0f0f0f0fu) | (upper_bits << 4 & 0x30303030u);
            unit.words[4 + i] = (low_bits >> 4 & 0x0f0f0f0fu) | (upper_bits & 0x30303030u);
        }
#pragma unroll
        for (uint32_t i = 0; i < 2; ++i) {
            unit.scale[i] = d * static_cast<float>(static_cast<int8_t>(scales[4 * i]));
            unit.offset[i] = -32.0f * unit.scale[i];
        }
        return unit;
    }
};

template <>
struct Int8<Iq3Xxs> {
    static constexpr uint32_t units = 8;
    INLINE uint32_t first(uint32_t u) { return 32 * u; }
    INLINE uint32_t second(uint32_t u) { return 32 * u + 16; }
    INLINE Int8Unit decode(GLOBAL const uint8_t* from, uint32_t u) {
        Int8Unit unit;
        const uint32_t word = load_word(from + 66 + 4 * u);
#pragma unroll
        for (uint32_t i = 0; i < 4; ++i) {
            uint32_t signs = word >> 7 * i & 0x7fu;
            signs |= static_cast<uint32_t>(__builtin_popcount(signs)) << 7;
#pragma unroll
            for (uint32_t k = 0; k < 2; ++k) {
                // one bit to the bottom of each byte, then to all of it: a byte and all ones, plus one, is its negative
                const uint32_t ones = (signs >> 4 * k & 0xfu) * 0x00204081u & 0x01010101u;
                const uint32_t magnitudes = iq3_xxs_grid.entries[from[2 + 8 * u + 2 * i + k]];
                unit.words[2 * i + k] = (magnitudes ^ ones * 0xffu) + ones;
            }
        }
        unit.scale[0] = unit.scale[1] = load_half(from) * (0.5f + static_cast<float>(word >> 28)) * 0.5f;
        unit.offset[0] = unit.offset[1] = 0.0f;
        return unit;
    }
};

#if defined(__AMDGCN__)
int32_t amdgcn_sudot4(bool left_signed, int32_t left, bool right_signed, int32_t right, int32_t sum,
                      bool clamp) __asm("llvm.amdgcn.sudot4");
// sum + the products of four signed bytes.
INLINE int32_t dot4(uint32_t left, uint32_t right, int32_t sum) {
    return amdgcn_sudot4(true, static_cast<int32_t>(left), true, static_cast<int32_t>(right), sum, false);
}
#else
INLINE int32_t dot4(uint32_t left, uint32_t right, int32_t sum) {
    int32_t result;
    asm("dp4a.s32.s32 %0, %1, %2, %3;" : "=r"(result) : "r"(left), "r"(right), "r"(sum));
    return result;
}
#endif

}  // namespace onebit::hrx::kernels
