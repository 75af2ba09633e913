// Decoders of the block-quantised weight types of GGUF files, as ggml's public headers lay them out, and of plain
// types.
//
// A unit is 16 weights that one lane decodes at once: two runs of 8 consecutive elements of the row, at first(u) and
// second(u) of the block for unit u. A weight is scale * q + offset, with one scale and offset a run.
// Alignment of blocks: 16 bytes for Q4_K, 2 bytes for the other quantised types.
#pragma once

#include "hrx/kernels/iq3_xxs_codebook.h"
#include "hrx/kernels/wave.h"

namespace onebit::hrx::kernels {

struct Unit {
    float q[16];
    float scale[2], offset[2];
    __attribute__((always_inline)) float weight(uint32_t i) const { return q[i] * scale[i / 8] + offset[i / 8]; }
};

// Four bytes at an even address: NVIDIA has no load of a word there.
struct __attribute__((packed, aligned(2))) Word {
    uint32_t value;
};
static_assert(alignof(Word) == 2);
INLINE uint32_t load_word(GLOBAL const uint8_t* from) { return reinterpret_cast<GLOBAL const Word*>(from)->value; }
INLINE float load_half(GLOBAL const uint8_t* from) {
    return static_cast<float>(*reinterpret_cast<GLOBAL const float16*>(from));
}

#if defined(__AMDGCN__)
// Byte K of a word.
template <uint32_t K>
INLINE float byte_to_float(uint32_t word) {
    return static_cast<float>(word >> 8 * K & 0xffu);
}
template <uint32_t K>
INLINE float signed_byte_to_float(uint32_t word) {
    return static_cast<float>(static_cast<int8_t>(word >> 8 * K));
}
#else
// A byte becomes the low mantissa of 2^23: conversions have a quarter of the rate of additions.
template <uint32_t K>
INLINE float byte_to_float(uint32_t word) {
    return bit_cast<float>(__nvvm_prmt(word, 0x4b000000u, 0x7440u | K)) - 8388608.0f;
}
template <uint32_t K>
INLINE float signed_byte_to_float(uint32_t word) {
    return bit_cast<float>(__nvvm_prmt(word ^ 0x80808080u, 0x4b000000u, 0x7440u | K)) - 8388736.0f;
}
#endif

INLINE void bytes_to_floats(uint32_t word, float* out) {
    out[0] = byte_to_float<0>(word);
    out[1] = byte_to_float<1>(word);
    out[2] = byte_to_float<2>(word);
    out[3] = byte_to_float<3>(word);
}
INLINE void signed_bytes_to_floats(uint32_t word, float* out) {
    out[0] = signed_byte_to_float<0>(word);
    out[1] = signed_byte_to_float<1>(word);
    out[2] = signed_byte_to_float<2>(word);
    out[3] = signed_byte_to_float<3>(word);
}

// value / scale, to the nearest whole number, halves away from zero; 0 where the scale is.
INLINE float nearest_step(float value, float scale) {
#pragma clang fp contract(off)
    const float steps = value * (scale == 0.0f ? 0.0f : 1.0f / scale);
    const float whole = __builtin_truncf(steps), rest = steps - whole;
    return __builtin_fabsf(rest) >= 0.5f ? whole + __builtin_copysignf(1.0f, steps) : whole;
}

// 32 weights: a half scale, then 16 bytes whose low halves are weights 0 to 15 and high halves 16 to 31, 8 too large.
struct Q4_0 {
    static constexpr uint32_t block = 32, bytes = 18, units = 2;
    static constexpr bool has_offset = true;
    INLINE uint32_t first(uint32_t u) { return 8 * u; }
    INLINE uint32_t second(uint32_t u) { return 16 + 8 * u; }
    INLINE Unit decode(GLOBAL const uint8_t* from, uint32_t u) {
        Unit unit;
        const float scale = load_half(from);
#pragma unroll
        for (uint32_t i = 0; i < 2; ++i) {
            const uint32_t word = load_word(from + 2 + 8 * u + 4 * i);
            bytes_to_floats(word & 0x0f0f0f0fu, unit.q + 4 * i);
            bytes_to_floats(word >> 4 & 0x0f0f0f0fu, unit.q + 8 + 4 * i);
            unit.scale[i] = scale;
            unit.offset[i] = -8.0f * scale;
        }
        return unit;
    }
};

// 32 weights: a half scale, then 32 signed bytes.
struct Q8_0 {
    static constexpr uint32_t block = 32, bytes = 34, units = 2;
    static constexpr bool has_offset = false;
    INLINE uint32_t first(uint32_t u) { return 16 * u; }
    INLINE uint32_t second(uint32_t u) { return 16 * u + 8; }
    INLINE Unit decode(GLOBAL const uint8_t* from, uint32_t u) {
        Unit unit;
        const float scale = load_half(from);
#pragma unroll
        for (uint32_t i = 0; i < 4; ++i) {
            signed_bytes_to_floats(load_word(from + 2 + 16 * u + 4 * i), unit.q + 4 * i);
        }
        unit.scale[0] = unit.scale[1] = scale;
        unit.offset[0] = unit.offset[1] = 0.0f;
        return unit;
    }
};

// 256 weights: half scale d and minimum m; 8 scales and 8 minima of 6 bits in 12 bytes, one for 32 weights; 4 groups of
// 32 bytes, whose low halves are 32 weights and high halves the next 32. weight = d * scale * q - m * minimum.
struct Q4_K {
    static constexpr uint32_t block = 256, bytes = 144, units = 16;
    static constexpr bool has_offset = true;
    INLINE uint32_t first(uint32_t u) { return 64 * (u / 4) + 8 * (u % 4); }
    INLINE uint32_t second(uint32_t u) { return first(u) + 32; }
    // Scales and offsets of the two halves of a group of 64 weights, from the first 16 bytes of the block.
    INLINE void decode_scales(uint4 head, uint32_t group, float (&scale)[2], float (&offset)[2]) {
        const half2 d = bit_cast<half2>(head.x);
        // bytes 0-3 and 4-7: low 6 bits of scales and minima 0 to 3; bytes 8-11: low 4 bits of those of 4 to 7, scale
        // below, whose upper 2 bits are the upper bits of bytes 0-7
        const uint32_t shift = 16 * (group % 2);
        const uint32_t low_scales = head.y >> shift, low_minima = head.z >> shift, rest = head.w >> shift;
        const bool upper = group >= 2;
        const uint32_t scales = upper ? (rest & 0x0f0fu) | (low_scales >> 2 & 0x3030u) : low_scales & 0x3f3fu;
        const uint32_t minima = upper ? (rest >> 4 & 0x0f0fu) | (low_minima >> 2 & 0x3030u) : low_minima & 0x3f3fu;
        const float factor = static_cast<float>(d.x), minimum = -static_cast<float>(d.y);
        scale[0] = factor * byte_to_float<0>(scales);
        scale[1] = factor * byte_to_float<1>(scales);
        offset[0] = minimum * byte_to_float<0>(minima);
        offset[1] = minimum * byte_to_float<1>(minima);
    }
    INLINE Unit decode(GLOBAL const uint8_t* from, uint32_t u) {
        Unit unit;
        const uint2 quants = *reinterpret_cast<GLOBAL const uint2*>(from + 16 + 8 * u);
        decode_scales(*reinterpret_cast<GLOBAL const uint4*>(from), u / 4, unit.scale, unit.offset);
        bytes_to_floats(quants.x & 0x0f0f0f0fu, unit.q);
        bytes_to_floats(quants.y & 0x0f0f0f0fu, unit.q + 4);
        bytes_to_floats(quants.x >> 4 & 0x0f0f0f0fu, unit.q + 8);
        bytes_to_floats(quants.y >> 4 & 0x0f0f0f0fu, unit.q + 12);
        return unit;
    }
};

// 256 weights: 128 bytes of low 4 bits, 64 bytes of upper 2 bits, 16 signed scales, half scale d; 32 too large. Halves
// of 128 weights follow each other: byte l of the 64 low ones holds weights l and 64 + l, byte l of the 32 upper ones
// weights l, 32 + l, 64 + l and 96 + l from the lowest bits on.
struct Q6_K {
    static constexpr uint32_t block = 256, bytes = 210, units = 16;
    static constexpr bool has_offset = true;
    INLINE uint32_t first(uint32_t u) { return 128 * (u / 8) + 8 * (u % 8); }
    INLINE uint32_t second(uint32_t u) { return first(u) + 64; }
    INLINE Unit decode(GLOBAL const uint8_t* from, uint32_t u) {
        Unit unit;
        const uint32_t half = u / 8, upper_shift = u % 8 / 4 * 2, within = u % 4 * 8;
        GLOBAL const uint8_t* low = from + 8 * u;
        GLOBAL const uint8_t* upper = from + 128 + 32 * half + within;
        GLOBAL const uint8_t* scales = from + 192 + 8 * half + u % 8 / 2;
        const float d = load_half(from + 208);
#pragma unroll
        for (uint32_t i = 0; i < 2; ++i) {
            const uint32_t low_bits = load_word(low + 4 * i), upper_bits = load_word(upper + 4 * i) >> upper_shift;
            bytes_to_floats((low_bits & 0x0f0f0f0fu) | (upper_bits << 4 & 0x30303030u), unit.q + 4 * i);
            bytes_to_floats((low_bits >> 4 & 0x0f0f0f0fu) | (upper_bits & 0x30303030u), unit.q + 8 + 4 * i);
            unit.scale[i] = d * static_cast<float>(static_cast<int8_t>(scales[4 * i]));
            unit.offset[i] = -32.0f * unit.scale[i];
        }
        return unit;
    }
};

GLOBAL static const Iq3XxsGrid iq3_xxs_grid = make_iq3_xxs_grid();

// 256 weights: half scale d; 64 bytes, each a vector of the codebook; 8 words, one for 32 weights: four times 7 sign
// bits, the eighth makes their number even, and a scale s of 4 bits. weight = d * (s + 1/2) / 2 * magnitude.
struct Iq3Xxs {
    static constexpr uint32_t block = 256, bytes = 98, units = 16;
    static constexpr bool has_offset = false;
    INLINE uint32_t first(uint32_t u) { return 16 * u; }
    INLINE uint32_t second(uint32_t u) { return 16 * u + 8; }
    INLINE Unit decode(GLOBAL const uint8_t* from, uint32_t u) {
        Unit unit;
        const uint32_t vectors = load_word(from + 2 + 4 * u), word = load_word(from + 66 + 4 * (u / 2));
        const float scale = load_half(from) * (0.5f + static_cast<float>(word >> 28)) * 0.5f;
#pragma unroll
        for (uint32_t i = 0; i < 2; ++i) {
            uint32_t signs = word >> 7 * (u % 2 * 2 + i) & 0x7fu;
            signs |= static_cast<uint32_t>(__builtin_popcount(signs)) << 7;
#pragma unroll
            for (uint32_t k = 0; k < 2; ++k) {
                float* q = unit.q + 8 * i + 4 * k;
                bytes_to_floats(iq3_xxs_grid.entries[vectors >> 8 * (2 * i + k) & 0xffu], q);
#pragma unroll
                for (uint32_t j = 0; j < 4; ++j) {
                    q[j] = bit_cast<float>(bit_cast<uint32_t>(q[j]) ^ (signs >> (4 * k + j) & 1u) << 31);
                }
            }
            unit.scale[i] = scale;
            unit.offset[i] = 0.0f;
        }
        return unit;
    }
};

}  // namespace onebit::hrx::kernels
