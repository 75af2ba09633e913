#include "hrx/kernels/rows.h"

#include "hrx/kernels/quants.h"
#include "hrx/kernels/specialise.h"

using namespace onebit::hrx::kernels;

namespace {

INLINE uint64_t place(uint32_t i1, uint32_t i2, uint32_t i3, const uint32_t (&stride)[3]) {
    return uint64_t{i1} * stride[0] + uint64_t{i2} * stride[1] + uint64_t{i3} * stride[2];
}

// The table's row, or -1.
INLINE int64_t picked_row(const GetRows& a) {
    const int32_t index = a.indices[place(workgroup_id_x(), workgroup_id_y(), workgroup_id_z(), a.index_stride)];
    return index >= 0 && static_cast<uint32_t>(index) < a.table_rows ? index : -1;
}
INLINE GLOBAL float* picked_out(const GetRows& a) {
    return a.out + place(workgroup_id_x(), workgroup_id_y(), workgroup_id_z(), a.out_stride);
}
INLINE void fill_with_nan(GLOBAL float* out, uint32_t columns) {
    for (uint32_t i = local_id_x(); i < columns; i += rows_threads) out[i] = not_a_number();
}

template <typename T>
INLINE void get_plain_rows(const GetRows& a, uint32_t columns) {
    const int64_t row = picked_row(a);
    GLOBAL float* out = picked_out(a);
    if (row < 0) return fill_with_nan(out, columns);
    GLOBAL const T* in = static_cast<GLOBAL const T*>(a.table) +
                         place(static_cast<uint32_t>(row), workgroup_id_y(), workgroup_id_z(), a.table_stride);
    for (uint32_t i = local_id_x(); i < columns; i += rows_threads) out[i] = to_float(in[i]);
}

template <typename Quant>
INLINE void get_quantised_rows(const GetRows& a, uint32_t columns) {
    const int64_t row = picked_row(a);
    GLOBAL float* out = picked_out(a);
    if (row < 0) return fill_with_nan(out, columns);
    GLOBAL const uint8_t* in =
        static_cast<GLOBAL const uint8_t*>(a.table) +
        place(static_cast<uint32_t>(row), workgroup_id_y(), workgroup_id_z(), a.table_stride) * Quant::bytes;
    for (uint32_t i = local_id_x(); i < columns / 16; i += rows_threads) {
        const uint32_t block = i / Quant::units, u = i % Quant::units;
        const Unit unit = Quant::decode(in + uint64_t{block} * Quant::bytes, u);
        GLOBAL float* first = out + block * Quant::block + Quant::first(u);
        GLOBAL float* second = out + block * Quant::block + Quant::second(u);
#pragma unroll
        for (uint32_t k = 0; k < 8; ++k) {
            first[k] = unit.weight(k);
            second[k] = unit.weight(8 + k);
        }
    }
}

// The row of out, or -1.
INLINE int64_t given_row(const SetRows& a) {
    const int64_t index = a.indices[place(workgroup_id_x(), workgroup_id_y() % a.index_ne1,
                                          workgroup_id_z() % a.index_ne2, a.index_stride)];
    return index >= 0 && index < a.out_rows ? index : -1;
}

template <typename T>
INLINE void set_plain_rows(const SetRows& a, uint32_t columns) {
    const int64_t row = given_row(a);
    if (row < 0) return;
    GLOBAL const float* in = a.in + place(workgroup_id_x(), workgroup_id_y(), workgroup_id_z(), a.in_stride);
    GLOBAL T* out = static_cast<GLOBAL T*>(a.out) +
                    place(static_cast<uint32_t>(row), workgroup_id_y(), workgroup_id_z(), a.out_stride);
    for (uint32_t i = local_id_x(); i < columns; i += rows_threads) out[i] = from_float<T>(in[i]);
}

// A wave makes a block, a lane one weight.
INLINE void set_q8_0_rows(const SetRows& a, uint32_t columns) {
    const int64_t row = given_row(a);
    if (row < 0) return;
    GLOBAL const float* in = a.in + place(workgroup_id_x(), workgroup_id_y(), workgroup_id_z(), a.in_stride);
    GLOBAL uint8_t* out =
        static_cast<GLOBAL uint8_t*>(a.out) +
        place(static_cast<uint32_t>(row), workgroup_id_y(), workgroup_id_z(), a.out_stride) * Q8_0::bytes;
    for (uint32_t block = wave_id(); block < columns / 32; block += rows_threads / wave_size) {
        const float value = in[block * 32 + lane_id()];
        const float scale = wave_max(__builtin_fabsf(value)) / 127.0f;
        const auto step = static_cast<int32_t>(nearest_step(value, scale));
        GLOBAL uint8_t* to = out + uint64_t{block} * Q8_0::bytes;
        to[2 + lane_id()] = static_cast<uint8_t>(step);
        if (lane_id() == 0) *reinterpret_cast<GLOBAL float16*>(to) = static_cast<float16>(scale);
    }
}

}  // namespace

#define GET_ROWS(name, function, T)                    \
    LOOM_ARGUMENT(name, GetRows, columns, 1, 1u << 24) \
    LOOM_KERNEL(name, GetRows, rows_threads) { function<T>(arguments, ARGUMENT(name, columns)); }

GET_ROWS(get_rows_f32, get_plain_rows, float)
GET_ROWS(get_rows_f16, get_plain_rows, float16)
GET_ROWS(get_rows_bf16, get_plain_rows, bfloat16)
GET_ROWS(get_rows_q8_0, get_quantised_rows, Q8_0)
GET_ROWS(get_rows_q4_0, get_quantised_rows, Q4_0)
GET_ROWS(get_rows_q4_k, get_quantised_rows, Q4_K)
GET_ROWS(get_rows_q6_k, get_quantised_rows, Q6_K)
GET_ROWS(get_rows_iq3_xxs, get_quantised_rows, Iq3Xxs)

#define SET_ROWS(name, function)                       \
    LOOM_ARGUMENT(name, SetRows, columns, 1, 1u << 24) \
    LOOM_KERNEL(name, SetRows, rows_threads) { function(arguments, ARGUMENT(name, columns)); }

SET_ROWS(set_rows_f32, set_plain_rows<float>)
SET_ROWS(set_rows_f16, set_plain_rows<float16>)
SET_ROWS(set_rows_bf16, set_plain_rows<bfloat16>)
SET_ROWS(set_rows_q8_0, set_q8_0_rows)
