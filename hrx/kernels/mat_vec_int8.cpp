#include "hrx/kernels/mat_vec_int8.h"

#include "hrx/kernels/int8_units.h"
#include "hrx/kernels/planes.h"
#include "hrx/kernels/specialise.h"

using namespace onebit::hrx::kernels;

namespace {

constexpr uint32_t most_rows = 4;
// Units of a lane whose loads are in flight together. A large GPU needs them: a short row has few loads a lane.
#if defined(__NVPTX__)
constexpr uint32_t units_at_once = 4;
#else
constexpr uint32_t units_at_once = 1;
#endif

// Of a block of 32 in a quantised vector.
struct BlockHead {
    float scale;
    int16_t sums[2];
};

// A run of 16 integers, with the scale and sum that belong to it.
struct Run {
    uint4 words;
    float scale, scaled_sum;
};

INLINE Run load_run(GLOBAL const uint8_t* vector, GLOBAL const uint2* heads, uint32_t column) {
    const BlockHead head = bit_cast<BlockHead>(heads[column / 32]);
    const int32_t sum = column / 16 % 2 == 0 ? head.sums[0] : head.sums[1];
    return {*reinterpret_cast<GLOBAL const uint4*>(vector + column), head.scale, head.scale * static_cast<float>(sum)};
}

template <typename Quant>
INLINE void mat_vec(const MatVecInt8& a, uint32_t columns, uint32_t each) {
    using Units = Int8<Quant>;
    const uint32_t first_row = (workgroup_id_x() * (mat_vec_int8_threads / wave_size) + wave_id()) * each;
    if (first_row >= a.rows) return;
    const Plane plane = find_plane(a);
    GLOBAL const uint8_t* weights =
        static_cast<GLOBAL const uint8_t*>(a.weights) +
        (uint64_t{plane.weight2} * a.weight_stride[1] + uint64_t{plane.weight3} * a.weight_stride[2]) * Quant::bytes;
    GLOBAL const uint8_t* vector =
        static_cast<GLOBAL const uint8_t*>(a.in) +
        (uint64_t{workgroup_id_z()} * a.vectors + workgroup_id_y()) * int8_vector_bytes(columns);
    GLOBAL const uint2* heads = reinterpret_cast<GLOBAL const uint2*>(vector + columns);
    GLOBAL const uint8_t* rows[most_rows];
#pragma unroll
    for (uint32_t r = 0; r < most_rows; ++r) {
        // rows past the end repeat the last, and are not stored
        const uint32_t row = first_row + r < a.rows ? first_row + r : a.rows - 1;
        rows[r] = weights + uint64_t{row} * a.weight_stride[0] * Quant::bytes;
    }
    float sums[most_rows] = {};
    const auto add_unit = [&](uint32_t i) __attribute__((always_inline)) {
        const uint32_t block = i / Units::units, u = i % Units::units;
        const Run runs[2] = {load_run(vector, heads, block * Quant::block + Units::first(u)),
                             load_run(vector, heads, block * Quant::block + Units::second(u))};
#pragma unroll
        for (uint32_t r = 0; r < most_rows; ++r) {
            if (r >= each) continue;
            const Int8Unit unit = Units::decode(rows[r] + uint64_t{block} * Quant::bytes, u);
#pragma unroll
            for (uint32_t k = 0; k < 2; ++k) {
                int32_t dot = 0;
#pragma unroll
                for (uint32_t m = 0; m < 4; ++m) dot = dot4(unit.words[4 * k + m], runs[k].words[m], dot);
                sums[r] += unit.scale[k] * (static_cast<float>(dot) * runs[k].scale);
                if constexpr (Quant::has_offset) sums[r] += unit.offset[k] * runs[k].scaled_sum;
            }
        }
    };
    const uint32_t units = columns / 32;
    uint32_t i = lane_id();
    if constexpr (units_at_once > 1) {
        for (; i + (units_at_once - 1) * wave_size < units; i += units_at_once * wave_size) {
#pragma unroll
            for (uint32_t n = 0; n < units_at_once; ++n) add_unit(i + n * wave_size);
        }
    }
#pragma nounroll
    for (; i < units; i += wave_size) add_unit(i);
    GLOBAL float* out = a.out + uint64_t{workgroup_id_y()} * a.out_stride[0] + uint64_t{plane.in2} * a.out_stride[1] +
                        uint64_t{plane.in3} * a.out_stride[2];
#pragma unroll
    for (uint32_t r = 0; r < most_rows; ++r) {
        if (r >= each) continue;
        const float sum = wave_sum(sums[r]);
        if (lane_id() == 0 && first_row + r < a.rows) out[first_row + r] = sum;
    }
}

}  // namespace

LOOM_ARGUMENT(quantise_int8_f32, QuantiseInt8, columns, 32, 1u << 24)
LOOM_KERNEL(quantise_int8_f32, QuantiseInt8, mat_vec_int8_threads) {
    const uint32_t columns = ARGUMENT(quantise_int8_f32, columns);
    const uint32_t block = workgroup_id_x() * (mat_vec_int8_threads / wave_size) + wave_id();
    if (block >= columns / 32) return;
    const uint32_t i2 = workgroup_id_z() % arguments.ne2, i3 = workgroup_id_z() / arguments.ne2;
    const float value =
        arguments.in[uint64_t{workgroup_id_y()} * arguments.in_stride[0] + uint64_t{i2} * arguments.in_stride[1] +
                     uint64_t{i3} * arguments.in_stride[2] + block * 32 + lane_id()];
    GLOBAL uint8_t* vector =
        static_cast<GLOBAL uint8_t*>(arguments.out) +
        (uint64_t{workgroup_id_z()} * arguments.vectors + workgroup_id_y()) * int8_vector_bytes(columns);
    const float scale = wave_max(__builtin_fabsf(value)) / 127.0f;
    const float steps = nearest_step(value, scale);
    vector[block * 32 + lane_id()] = static_cast<uint8_t>(static_cast<int32_t>(steps));
    // exact: integers
    const auto sum = static_cast<int16_t>(static_cast<int32_t>(half_wave_sum(steps)));
    GLOBAL uint8_t* head = vector + columns + block * 8;
    if (lane_id() == 0) *reinterpret_cast<GLOBAL float*>(head) = scale;
    if (lane_id() % 16 == 0) *reinterpret_cast<GLOBAL int16_t*>(head + 4 + lane_id() / 8) = sum;
}

#define MAT_VEC_INT8(name, Quant)                                                    \
    LOOM_ARGUMENT(name, MatVecInt8, columns, 32, 1u << 24)                           \
    LOOM_OPTION(name, rows_each, mat_vec_int8_rows_each, 1, most_rows)               \
    LOOM_KERNEL(name, MatVecInt8, mat_vec_int8_threads) {                            \
        mat_vec<Quant>(arguments, ARGUMENT(name, columns), OPTION(name, rows_each)); \
    }

MAT_VEC_INT8(mat_vec_int8_q8_0, Q8_0)
MAT_VEC_INT8(mat_vec_int8_q4_0, Q4_0)
MAT_VEC_INT8(mat_vec_int8_q4_k, Q4_K)
MAT_VEC_INT8(mat_vec_int8_q6_k, Q6_K)
MAT_VEC_INT8(mat_vec_int8_iq3_xxs, Iq3Xxs)
