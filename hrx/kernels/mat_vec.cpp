#include "hrx/kernels/mat_vec.h"

#include "hrx/kernels/planes.h"
#include "hrx/kernels/quants.h"
#include "hrx/kernels/specialise.h"

using namespace onebit::hrx::kernels;

namespace {

constexpr uint32_t most_rows = 4;

// What one wave reads and writes.
template <typename Weight>
struct Work {
    GLOBAL const Weight* weights[most_rows];
    GLOBAL const float* in;
    GLOBAL float* out;
    uint32_t row;
};

// weight_bytes: of an element or block. False when the wave has no row.
template <typename Weight>
INLINE bool find_work(const MatVec& a, uint32_t each, uint32_t weight_bytes, Work<Weight>& work) {
    const auto [i2, i3, w2, w3] = find_plane(a);
    work.row = (workgroup_id_x() * (mat_vec_threads / wave_size) + wave_id()) * each;
    if (work.row >= a.rows) return false;
    GLOBAL const uint8_t* plane =
        static_cast<GLOBAL const uint8_t*>(a.weights) +
        (uint64_t{w2} * a.weight_stride[1] + uint64_t{w3} * a.weight_stride[2]) * weight_bytes;
#pragma unroll
    for (uint32_t r = 0; r < each; ++r) {
        // rows past the end repeat the last, and are not stored
        const uint32_t row = work.row + r < a.rows ? work.row + r : a.rows - 1;
        work.weights[r] =
            reinterpret_cast<GLOBAL const Weight*>(plane + uint64_t{row} * a.weight_stride[0] * weight_bytes);
    }
    work.in = a.in + uint64_t{workgroup_id_y()} * a.in_stride[0] + uint64_t{i2} * a.in_stride[1] +
              uint64_t{i3} * a.in_stride[2];
    work.out = a.out + uint64_t{workgroup_id_y()} * a.out_stride[0] + uint64_t{i2} * a.out_stride[1] +
               uint64_t{i3} * a.out_stride[2];
    return true;
}

template <typename Weight>
INLINE void store(const MatVec& a, uint32_t each, const Work<Weight>& work, const float (&sums)[most_rows]) {
#pragma unroll
    for (uint32_t r = 0; r < each; ++r) {
        const float sum = wave_sum(sums[r]);
        if (lane_id() == 0 && work.row + r < a.rows) work.out[work.row + r] = sum;
    }
}

// Line by line: each loop that is to be unrolled costs every compilation some tenths of a millisecond.
INLINE void load_run(GLOBAL const float* from, float* to) {
    const float4 low = reinterpret_cast<GLOBAL const float4*>(from)[0],
                 high = reinterpret_cast<GLOBAL const float4*>(from)[1];
    to[0] = low.x;
    to[1] = low.y;
    to[2] = low.z;
    to[3] = low.w;
    to[4] = high.x;
    to[5] = high.y;
    to[6] = high.z;
    to[7] = high.w;
}

template <typename Quant>
INLINE void quantised_mat_vec(const MatVec& a, uint32_t columns, uint32_t each) {
    Work<uint8_t> work;
    if (!find_work(a, each, Quant::bytes, work)) return;
    float sums[most_rows] = {};
    for (uint32_t i = lane_id(); i < columns / 16; i += wave_size) {
        const uint32_t block = i / Quant::units, u = i % Quant::units;
        GLOBAL const float* in = work.in + uint64_t{block} * Quant::block;
        float x[16];
        load_run(in + Quant::first(u), x);
        load_run(in + Quant::second(u), x + 8);
        float totals[2] = {};
        if constexpr (Quant::has_offset) {
#pragma unroll
            for (uint32_t k = 0; k < 16; ++k) totals[k / 8] += x[k];
        }
#pragma unroll
        for (uint32_t r = 0; r < each; ++r) {
            const Unit unit = Quant::decode(work.weights[r] + uint64_t{block} * Quant::bytes, u);
            float dots[2] = {};
#pragma unroll
            for (uint32_t k = 0; k < 16; ++k) dots[k / 8] += unit.q[k] * x[k];
#pragma unroll
            for (uint32_t k = 0; k < 2; ++k) {
                sums[r] += unit.scale[k] * dots[k];
                if constexpr (Quant::has_offset) sums[r] += unit.offset[k] * totals[k];
            }
        }
    }
    store(a, each, work, sums);
}

template <typename T>
INLINE void plain_mat_vec(const MatVec& a, uint32_t columns, uint32_t each) {
    constexpr uint32_t pack = 16 / sizeof(T);
    Work<T> work;
    if (!find_work(a, each, sizeof(T), work)) return;
    float sums[most_rows] = {};
    const uint32_t uneven = (a.weight_stride[0] | a.weight_stride[1] | a.weight_stride[2]) % pack |
                            (a.in_stride[0] | a.in_stride[1] | a.in_stride[2]) % 4;
    uint32_t done = 0;
    if (uneven == 0) {
        done = columns / pack * pack;
        for (uint32_t i = lane_id() * pack; i < done; i += wave_size * pack) {
            float x[pack];
#pragma unroll
            for (uint32_t k = 0; k < pack; k += 4) {
                const auto four = load_pack<4>(work.in + i + k);
#pragma unroll
                for (uint32_t m = 0; m < 4; ++m) x[k + m] = four.values[m];
            }
#pragma unroll
            for (uint32_t r = 0; r < each; ++r) {
                const auto weights = load_pack<pack>(work.weights[r] + i);
#pragma unroll
                for (uint32_t k = 0; k < pack; ++k) sums[r] += to_float(weights.values[k]) * x[k];
            }
        }
    }
    for (uint32_t i = done + lane_id(); i < columns; i += wave_size) {
        const float x = work.in[i];
#pragma unroll
        for (uint32_t r = 0; r < each; ++r) sums[r] += to_float(work.weights[r][i]) * x;
    }
    store(a, each, work, sums);
}

}  // namespace

#define MAT_VEC(name, function, T)                                                \
    LOOM_ARGUMENT(name, MatVec, columns, 1, 1u << 24)                             \
    LOOM_OPTION(name, rows_each, mat_vec_rows_each, 1, most_rows)                 \
    LOOM_KERNEL(name, MatVec, mat_vec_threads) {                                  \
        function<T>(arguments, ARGUMENT(name, columns), OPTION(name, rows_each)); \
    }

MAT_VEC(mat_vec_f32, plain_mat_vec, float)
MAT_VEC(mat_vec_f16, plain_mat_vec, float16)
MAT_VEC(mat_vec_bf16, plain_mat_vec, bfloat16)
MAT_VEC(mat_vec_q8_0, quantised_mat_vec, Q8_0)
MAT_VEC(mat_vec_q4_0, quantised_mat_vec, Q4_0)
MAT_VEC(mat_vec_q4_k, quantised_mat_vec, Q4_K)
MAT_VEC(mat_vec_q6_k, quantised_mat_vec, Q6_K)
MAT_VEC(mat_vec_iq3_xxs, quantised_mat_vec, Iq3Xxs)
