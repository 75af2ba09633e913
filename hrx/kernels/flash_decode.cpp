// Attention for one or a few tokens: the keys are split over workgroups, whose results are put together afterwards.
#include "hrx/kernels/flash_attention.h"
#include "hrx/kernels/flash_logit.h"
#include "hrx/kernels/specialise.h"

using namespace onebit::hrx::kernels;

namespace {

// Half a wave takes a key: each of 16 lanes holds a part of the head.
constexpr uint32_t lanes = 16, halves = flash_decode_threads / lanes;

LDS_ARRAY(float, decode_sums, halves * 256);
LDS_ARRAY(float, decode_highest, halves);
LDS_ARRAY(float, decode_weights, halves);

template <uint32_t N>
struct Part {
    float values[N];
};

template <uint32_t N>
INLINE Part<N> load_part(GLOBAL const float16* from) {
    Part<N> part;
    constexpr uint32_t pack = N % 8 == 0 ? 8 : N % 4 == 0 ? 4 : N % 2 == 0 ? 2 : 1;
#pragma unroll
    for (uint32_t i = 0; i < N; i += pack) {
        if constexpr (pack == 1) {
            part.values[i] = to_float(from[i]);
        } else {
            const auto some = load_pack<pack>(from + i);
#pragma unroll
            for (uint32_t k = 0; k < pack; ++k) part.values[i + k] = to_float(some.values[k]);
        }
    }
    return part;
}

template <uint32_t HeadSize>
INLINE void decode(const FlashAttention& a) {
    constexpr uint32_t each = HeadSize / lanes;
    const uint32_t split = workgroup_id_x(), head = workgroup_id_y();
    const uint32_t token = workgroup_id_z() % a.tokens, sequence = workgroup_id_z() / a.tokens;
    const uint32_t kv_head = head / (a.heads / a.kv_heads);
    const uint32_t half = local_id_x() / lanes, lane = local_id_x() % lanes;
    GLOBAL const float16* key = static_cast<GLOBAL const float16*>(a.key) + uint64_t{kv_head} * a.key_stride[1] +
                                uint64_t{sequence} * a.key_stride[2] + lane * each;
    GLOBAL const float16* value = static_cast<GLOBAL const float16*>(a.value) + uint64_t{kv_head} * a.value_stride[1] +
                                  uint64_t{sequence} * a.value_stride[2] + lane * each;
    GLOBAL const float* query_row = a.query + uint64_t{token} * a.query_stride[0] + uint64_t{head} * a.query_stride[1] +
                                    uint64_t{sequence} * a.query_stride[2];
    const LogitRule rule = logit_rule(a, head);
    float query[each], sums[each] = {};
#pragma unroll
    for (uint32_t i = 0; i < each; ++i) query[i] = query_row[lane * each + i];

    const uint32_t split_keys = divide_up(a.keys, a.splits);
    const uint32_t begin = split * split_keys, end = begin + split_keys < a.keys ? begin + split_keys : a.keys;
    float highest = -infinity(), weights = 0;
    // all half waves go round alike: those without a key have a logit of -infinity
    for (uint32_t first = begin; first < end; first += halves) {
        const uint32_t at = first + half, there = at < end ? at : end - 1;
        const Part<each> keys = load_part<each>(key + uint64_t{there} * a.key_stride[0]);
        float product = 0;
#pragma unroll
        for (uint32_t i = 0; i < each; ++i) product += query[i] * keys.values[i];
        product = half_wave_sum(product);
        const float logit = at < end ? final_logit(a, rule, product, token, at, sequence) : -infinity();
        if (logit == -infinity()) continue;
        const float now = larger(highest, logit);
        const float correction = exp2_fast(highest - now), weight = exp2_fast(logit - now);
        highest = now;
        weights = weights * correction + weight;
        const Part<each> values = load_part<each>(value + uint64_t{there} * a.value_stride[0]);
#pragma unroll
        for (uint32_t i = 0; i < each; ++i) sums[i] = sums[i] * correction + weight * values.values[i];
    }
#pragma unroll
    for (uint32_t i = 0; i < each; ++i) decode_sums[half * HeadSize + lane * each + i] = sums[i];
    if (lane == 0) {
        decode_highest[half] = highest;
        decode_weights[half] = weights;
    }
    barrier();
    float together = -infinity(), total = 0;
#pragma unroll
    for (uint32_t i = 0; i < halves; ++i) together = larger(together, decode_highest[i]);
    const float reference = together == -infinity() ? 0.0f : together;
    float factors[halves];
#pragma unroll
    for (uint32_t i = 0; i < halves; ++i) {
        factors[i] = exp2_fast(decode_highest[i] - reference);
        total += factors[i] * decode_weights[i];
    }
    GLOBAL float* out = a.out + ((uint64_t{workgroup_id_z()} * a.heads + head) * a.splits + split) * (HeadSize + 2);
    for (uint32_t d = local_id_x(); d < HeadSize; d += flash_decode_threads) {
        float sum = 0;
#pragma unroll
        for (uint32_t i = 0; i < halves; ++i) sum += factors[i] * decode_sums[i * HeadSize + d];
        out[d] = sum;
    }
    if (local_id_x() == 0) {
        out[HeadSize] = together;
        out[HeadSize + 1] = total;
    }
}

}  // namespace

#define FLASH_DECODE(N) \
    LOOM_KERNEL(flash_decode_d##N, FlashAttention, flash_decode_threads) { decode<N>(arguments); }

FLASH_DECODE(64)
FLASH_DECODE(80)
FLASH_DECODE(96)
FLASH_DECODE(128)
FLASH_DECODE(256)

LOOM_ARGUMENT(flash_combine, FlashCombine, head_size, 1, 1024)
LOOM_ARGUMENT(flash_combine, FlashCombine, splits, 1, 65536)
LOOM_KERNEL(flash_combine, FlashCombine, flash_combine_threads) {
    const uint32_t head_size = ARGUMENT(flash_combine, head_size), splits = ARGUMENT(flash_combine, splits);
    const uint32_t head = workgroup_id_x(), token = workgroup_id_y() % arguments.tokens;
    const uint32_t sequence = workgroup_id_y() / arguments.tokens;
    GLOBAL const float* partial =
        arguments.partial + (uint64_t{workgroup_id_y()} * arguments.heads + head) * splits * (head_size + 2);
    GLOBAL float* out = arguments.out + uint64_t{token} * arguments.out_stride[0] +
                        uint64_t{head} * arguments.out_stride[1] + uint64_t{sequence} * arguments.out_stride[2];
    float highest = -infinity(), weights = 0;
    for (uint32_t i = 0; i < splits; ++i) highest = larger(highest, partial[i * (head_size + 2) + head_size]);
    const float reference = highest == -infinity() ? 0.0f : highest;
    for (uint32_t i = 0; i < splits; ++i) {
        GLOBAL const float* end = partial + i * (head_size + 2) + head_size;
        weights += end[1] * exp2_fast(end[0] - reference);
    }
    const float factor = weights == 0.0f ? 0.0f : 1.0f / weights;
    for (uint32_t d = local_id_x(); d < head_size; d += flash_combine_threads) {
        float sum = 0;
        for (uint32_t i = 0; i < splits; ++i) {
            GLOBAL const float* from = partial + i * (head_size + 2);
            sum += from[d] * exp2_fast(from[head_size] - reference);
        }
        out[d] = sum * factor;
    }
}
