// The tile of a matrix product that one workgroup computes on matrix units (mat_mul.h), for any type of weights.
#pragma once

#include "hrx/kernels/mat_mul.h"
#include "hrx/kernels/matrix.h"
#include "hrx/kernels/planes.h"
#include "hrx/kernels/quants.h"

namespace onebit::hrx::kernels {

// Columns of one step: 4 units of 16 (quants.h), whose order within the step is that of the decoder.
constexpr uint32_t step_units = 4, step = 16 * step_units, lds_stride = step + 8;

// Weights of f16 in units like those of blocks: 16 columns, of which the last may be cut off.
struct Half {
    static constexpr uint32_t block = 16, bytes = 32, units = 1;
    INLINE uint32_t first(uint32_t) { return 0; }
    INLINE uint32_t second(uint32_t) { return 8; }
};

// Where the operands of a workgroup begin.
template <typename In>
struct Operands {
    GLOBAL const uint8_t* weights;
    GLOBAL const In* in;
    GLOBAL float* out;
};

template <typename In>
INLINE Operands<In> find_operands(const MatMul& a, uint32_t weight_bytes) {
    const auto [i2, i3, w2, w3] = find_plane(a);
    return {static_cast<GLOBAL const uint8_t*>(a.weights) +
                (uint64_t{w2} * a.weight_stride[1] + uint64_t{w3} * a.weight_stride[2]) * weight_bytes,
            static_cast<GLOBAL const In*>(a.in) + uint64_t{i2} * a.in_stride[1] + uint64_t{i3} * a.in_stride[2],
            a.out + uint64_t{i2} * a.out_stride[1] + uint64_t{i3} * a.out_stride[2]};
}

INLINE void store_runs(LDS float16* to, const half8 (&runs)[2]) {
    reinterpret_cast<LDS half8*>(to)[0] = runs[0];
    reinterpret_cast<LDS half8*>(to)[1] = runs[1];
}

#if defined(__AMDGCN__)
// HSA sets the hardware up for loads of any alignment: one way of loading serves all strides.
constexpr bool packs_anywhere = true;
#else
constexpr bool packs_anywhere = false;
#endif

// 8 elements in packs of 16 bytes.
INLINE half8 load_packs(GLOBAL const float* from) {
    using Four = float __attribute__((ext_vector_type(4), aligned(packs_anywhere ? 4 : 16)));
    const float4 low = reinterpret_cast<GLOBAL const Four*>(from)[0],
                 high = reinterpret_cast<GLOBAL const Four*>(from)[1];
    half8 run;
#pragma unroll
    for (uint32_t k = 0; k < 4; ++k) {
        run[k] = static_cast<float16>(low[k]);
        run[4 + k] = static_cast<float16>(high[k]);
    }
    return run;
}
INLINE half8 load_packs(GLOBAL const float16* from) {
    using Eight = float16 __attribute__((ext_vector_type(8), aligned(packs_anywhere ? 2 : 16)));
    return *reinterpret_cast<GLOBAL const Eight*>(from);
}

// 8 elements of a row of `columns`, zeros past its end. even: packs of 16 bytes may be read.
template <typename In>
INLINE half8 load_run(GLOBAL const In* row, uint32_t column, uint32_t columns, bool even) {
    if (even && column + 8 <= columns) return load_packs(row + column);
    half8 run;
#pragma unroll
    for (uint32_t k = 0; k < 8; ++k) {
        run[k] = column + k < columns ? static_cast<float16>(row[column + k]) : static_cast<float16>(0.0f);
    }
    return run;
}

// One workgroup's tile of the product. Waves lie in a grid of 2 along the vectors.
template <typename Quant, typename In, uint32_t TileVectors, uint32_t TileRows, uint32_t threads>
struct TileProduct {
    static constexpr uint32_t waves = threads / wave_size, across = waves / 2;
    static constexpr uint32_t wave_vectors = TileVectors / 2, wave_rows = TileRows / across;
    static constexpr uint32_t blocks_m = wave_vectors / 16, blocks_n = wave_rows / 16;
    static constexpr bool plain = Quant::units == 1;

    const MatMul& a;
    uint32_t columns;
    LDS float16* vectors_tile;
    LDS float16* rows_tile;
    Operands<In> operands;
    uint32_t first_vector, first_row;
    bool even;

    // Units [unit, unit + 4) of all vectors and rows of the tile. Rows and columns that are not there are zeros.
    __attribute__((always_inline)) void load_step(uint32_t unit) const {
        const uint32_t units = divide_up(columns, 16);
#pragma nounroll
        for (uint32_t i = local_id_x(); i < TileVectors * step_units; i += threads) {
            const uint32_t line = i / step_units, part = i % step_units, at = unit + part;
            const uint32_t block = at / Quant::units * Quant::block, u = at % Quant::units;
            half8 runs[2] = {static_cast<float16>(0.0f), static_cast<float16>(0.0f)};
            if (at < units && first_vector + line < a.vectors) {
                GLOBAL const In* row = operands.in + uint64_t{first_vector + line} * a.in_stride[0];
                runs[0] = load_run(row, block + Quant::first(u), columns, even);
                runs[1] = load_run(row, block + Quant::second(u), columns, even);
            }
            store_runs(vectors_tile + line * lds_stride + 16 * part, runs);
        }
#pragma nounroll
        for (uint32_t i = local_id_x(); i < TileRows * step_units; i += threads) {
            const uint32_t line = i / step_units, part = i % step_units, at = unit + part;
            half8 runs[2] = {static_cast<float16>(0.0f), static_cast<float16>(0.0f)};
            if (at < units && first_row + line < a.rows) {
                const uint64_t row = uint64_t{first_row + line} * a.weight_stride[0];
                if constexpr (plain) {
                    GLOBAL const float16* weights = reinterpret_cast<GLOBAL const float16*>(operands.weights) + row;
                    runs[0] = load_run(weights, 16 * at, columns, even);
                    runs[1] = load_run(weights, 16 * at + 8, columns, even);
                } else {
                    const Unit decoded =
                        Quant::decode(operands.weights + (row + at / Quant::units) * Quant::bytes, at % Quant::units);
#pragma unroll
                    for (uint32_t k = 0; k < 8; ++k) {
                        runs[0][k] = static_cast<float16>(decoded.weight(k));
                        runs[1][k] = static_cast<float16>(decoded.weight(8 + k));
                    }
                }
            }
            store_runs(rows_tile + line * lds_stride + 16 * part, runs);
        }
    }

    // Through the tile's LDS, which nobody reads any more: a wave writes whole lines, and looks for edges in one loop.
    __attribute__((always_inline)) void store(const float8 (&sums)[blocks_m][blocks_n], uint32_t vector_at,
                                              uint32_t row_at) const {
        constexpr uint32_t stride = wave_rows + 16;
        static_assert(waves * 16 * stride * sizeof(float) <= (TileVectors + TileRows) * lds_stride * sizeof(float16));
        LDS float* lines = reinterpret_cast<LDS float*>(vectors_tile) + wave_id() * 16 * stride;
#pragma unroll
        for (uint32_t m = 0; m < blocks_m; ++m) {
#pragma unroll
            for (uint32_t n = 0; n < blocks_n; ++n) {
#pragma unroll
                for (uint32_t i = 0; i < 8; ++i) {
                    lines[sum_row(i) * stride + 16 * n + sum_column(i)] = sums[m][n][i];
                }
            }
            wave_barrier();
#pragma nounroll
            for (uint32_t i = lane_id(); i < 16 * wave_rows; i += wave_size) {
                const uint32_t line = i / wave_rows, column = i % wave_rows;
                const uint32_t vector = first_vector + vector_at + 16 * m + line, row = first_row + row_at + column;
                if (vector < a.vectors && row < a.rows) {
                    operands.out[uint64_t{vector} * a.out_stride[0] + row] = lines[line * stride + column];
                }
            }
            wave_barrier();
        }
    }

    __attribute__((always_inline)) void compute() const {
        const uint32_t vector_at = wave_id() % 2 * wave_vectors, row_at = wave_id() / 2 * wave_rows;
        float8 sums[blocks_m][blocks_n] = {};
        for (uint32_t unit = 0; unit * 16 < columns; unit += step_units) {
            load_step(unit);
            barrier();
#pragma unroll 2
            for (uint32_t k = 0; k < step; k += 16) {
                Fragment left[blocks_m], right[blocks_n];
#pragma unroll
                for (uint32_t m = 0; m < blocks_m; ++m) {
                    left[m] = load_fragment(vectors_tile + (vector_at + 16 * m) * lds_stride + k, lds_stride);
                }
#pragma unroll
                for (uint32_t n = 0; n < blocks_n; ++n) {
                    right[n] = load_fragment(rows_tile + (row_at + 16 * n) * lds_stride + k, lds_stride);
                }
#pragma unroll
                for (uint32_t m = 0; m < blocks_m; ++m) {
#pragma unroll
                    for (uint32_t n = 0; n < blocks_n; ++n) sums[m][n] = multiply(left[m], right[n], sums[m][n]);
                }
            }
            barrier();
        }
        store(sums, vector_at, row_at);
    }
};

template <typename Quant, typename In, uint32_t TileVectors, uint32_t TileRows, uint32_t threads>
INLINE void mat_mul(const MatMul& a, uint32_t columns, LDS float16* tiles) {
    const uint32_t in_uneven = (a.in_stride[0] | a.in_stride[1] | a.in_stride[2]) % (16 / sizeof(In));
    const uint32_t weight_uneven =
        Quant::units == 1 ? (a.weight_stride[0] | a.weight_stride[1] | a.weight_stride[2]) % 8 : 0;
    TileProduct<Quant, In, TileVectors, TileRows, threads>{a,
                                                           columns,
                                                           tiles,
                                                           tiles + TileVectors * lds_stride,
                                                           find_operands<In>(a, Quant::units == 1 ? 2 : Quant::bytes),
                                                           workgroup_id_y() * TileVectors,
                                                           workgroup_id_x() * TileRows,
                                                           packs_anywhere || (in_uneven | weight_uneven) == 0}
        .compute();
}

}  // namespace onebit::hrx::kernels
