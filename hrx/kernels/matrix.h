// Products of 16 x 16 matrices of f16, summed in float, by one wave: WMMA on AMD, mma.sync on NVIDIA.
//
// product += left * transpose(right), where left has 16 rows (m), right 16 rows (n), and both 16 columns (k), rows of
// LDS. Sources: AMD RDNA3 and RDNA4 ISA references, chapter on WMMA; PTX ISA, mma.m16n8k16 and ldmatrix.
#pragma once

#include "hrx/kernels/specialise.h"
#include "hrx/kernels/wave.h"

namespace onebit::hrx::kernels {

#if defined(__AMDGCN__)

float8 wmma_gfx11(half16 left, half16 right, float8 sum) __asm("llvm.amdgcn.wmma.f32.16x16x16.f16.v8f32.v16f16");
float8 wmma_gfx12(half8 left, half8 right, float8 sum) __asm("llvm.amdgcn.wmma.f32.16x16x16.f16.v8f32.v8f16");

// Row lane % 16. gfx12 takes half of it, by the half of the wave.
struct Fragment {
    half16 values;
};

// tile: aligned to 16 bytes; stride: elements from row to row, a multiple of 8.
INLINE Fragment load_fragment(LDS const float16* tile, uint32_t stride) {
    LDS const half8* row = reinterpret_cast<LDS const half8*>(tile + lane_id() % 16 * stride);
    const half8 low = row[0], high = row[1];
    return {__builtin_shufflevector(low, high, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15)};
}

INLINE float8 multiply(const Fragment& left, const Fragment& right, float8 sum) {
    if (target_generation() == 11) return wmma_gfx11(left.values, right.values, sum);
    const bool upper = lane_id() >= 16;
    return wmma_gfx12(upper ? left.values.hi : left.values.lo, upper ? right.values.hi : right.values.lo, sum);
}

// Where value i of a lane's sum lies.
INLINE uint32_t sum_row(uint32_t i) {
    return target_generation() == 11 ? 2 * i + lane_id() / 16 : i + 8 * (lane_id() / 16);
}
INLINE uint32_t sum_column(uint32_t) { return lane_id() % 16; }

// Over the lanes that hold a row.
INLINE float row_max(float value) { return half_wave_max(value); }
INLINE float row_sum(float value) { return half_wave_sum(value); }
// A lane holds one value of each of 8 rows: which row, counted from 0, value i is in.
constexpr uint32_t rows_held = 8;
constexpr uint32_t held_row(uint32_t i) { return i; }

#else

// Four matrices of 8 x 8: rows 0-7 and 8-15 of columns 0-7, then of columns 8-15.
struct Fragment {
    uint32_t values[4];
};

INLINE uint32_t lds_address(LDS const void* pointer) {
    return static_cast<uint32_t>(reinterpret_cast<uint64_t>(pointer));
}

INLINE Fragment load_fragment(LDS const float16* tile, uint32_t stride) {
    const uint32_t address = lds_address(tile + lane_id() % 16 * stride + lane_id() / 16 * 8);
    Fragment f;
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(f.values[0]), "=r"(f.values[1]), "=r"(f.values[2]), "=r"(f.values[3])
                 : "r"(address)
                 : "memory");
    return f;
}

INLINE float8 multiply(const Fragment& left, const Fragment& right, float8 sum) {
#pragma unroll
    for (uint32_t h = 0; h < 2; ++h) {
        float c0 = sum[4 * h], c1 = sum[4 * h + 1], c2 = sum[4 * h + 2], c3 = sum[4 * h + 3];
        asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
            "{%0, %1, %2, %3};"
            : "+f"(c0), "+f"(c1), "+f"(c2), "+f"(c3)
            : "r"(left.values[0]), "r"(left.values[1]), "r"(left.values[2]), "r"(left.values[3]), "r"(right.values[h]),
              "r"(right.values[h + 2]));
        sum[4 * h] = c0;
        sum[4 * h + 1] = c1;
        sum[4 * h + 2] = c2;
        sum[4 * h + 3] = c3;
    }
    return sum;
}

INLINE uint32_t sum_row(uint32_t i) { return lane_id() / 4 + i / 2 % 2 * 8; }
INLINE uint32_t sum_column(uint32_t i) { return i / 4 * 8 + lane_id() % 4 * 2 + i % 2; }

INLINE float row_max(float value) {
    value = larger(value, exchange<1>(value));
    return larger(value, exchange<2>(value));
}
INLINE float row_sum(float value) {
    value += exchange<1>(value);
    return value + exchange<2>(value);
}
// A lane holds four values of each of 2 rows: which row, counted from 0, value i is in.
constexpr uint32_t rows_held = 2;
constexpr uint32_t held_row(uint32_t i) { return i / 2 % 2; }

#endif

}  // namespace onebit::hrx::kernels
