#include "hrx/kernels/flash_attention.h"

#include "hrx/kernels/flash_logit.h"
#include "hrx/kernels/matrix.h"

using namespace onebit::hrx::kernels;

namespace {

// A wave takes 16 tokens, a workgroup `waves` times as many, and Keys keys at a time.
template <uint32_t HeadSize>
struct Shape {
    static constexpr uint32_t waves = flash_tokens(HeadSize) / 16, threads = waves * wave_size;
    static constexpr uint32_t keys = HeadSize > 128 ? 16 : 32;
    static constexpr uint32_t line = HeadSize + 8, key_line = keys + 8;
    static constexpr uint32_t query_at = 0, key_at = query_at + waves * 16 * line, value_at = key_at + keys * line;
    static constexpr uint32_t weight_at = value_at + HeadSize * key_line, total = weight_at + waves * 16 * key_line;
};

INLINE void clear(half8& run) { run = static_cast<float16>(0.0f); }

template <uint32_t HeadSize>
INLINE void load_queries(const FlashAttention& a, LDS float16* to, uint32_t first, uint32_t head, uint32_t sequence) {
    using S = Shape<HeadSize>;
    for (uint32_t i = local_id_x(); i < S::waves * 16 * (HeadSize / 8); i += S::threads) {
        const uint32_t line = i / (HeadSize / 8), part = i % (HeadSize / 8);
        half8 run;
        clear(run);
        if (first + line < a.tokens) {
            GLOBAL const float* from = a.query + uint64_t{first + line} * a.query_stride[0] +
                                       uint64_t{head} * a.query_stride[1] + uint64_t{sequence} * a.query_stride[2] +
                                       8 * part;
            const auto low = load_pack<4>(from), high = load_pack<4>(from + 4);
#pragma unroll
            for (uint32_t k = 0; k < 4; ++k) {
                run[k] = static_cast<float16>(low.values[k]);
                run[4 + k] = static_cast<float16>(high.values[k]);
            }
        }
        *reinterpret_cast<LDS half8*>(to + line * S::line + 8 * part) = run;
    }
}

// Keys as they are, values turned: a line of LDS is one element of all values. Keys past the end are zeros.
template <uint32_t HeadSize>
INLINE void load_keys(const FlashAttention& a, GLOBAL const float16* key, GLOBAL const float16* value, uint32_t first,
                      LDS float16* lds) {
    using S = Shape<HeadSize>;
    for (uint32_t i = local_id_x(); i < S::keys * (HeadSize / 8); i += S::threads) {
        const uint32_t line = i % S::keys, part = i / S::keys;
        half8 keys, values;
        clear(keys);
        clear(values);
        if (first + line < a.keys) {
            keys = *reinterpret_cast<GLOBAL const half8*>(key + uint64_t{first + line} * a.key_stride[0] + 8 * part);
            values =
                *reinterpret_cast<GLOBAL const half8*>(value + uint64_t{first + line} * a.value_stride[0] + 8 * part);
        }
        *reinterpret_cast<LDS half8*>(lds + S::key_at + line * S::line + 8 * part) = keys;
#pragma unroll
        for (uint32_t k = 0; k < 8; ++k) lds[S::value_at + (8 * part + k) * S::key_line + line] = values[k];
    }
}

// Largest logit and sum of weights so far, of the rows that a lane holds. Sums are of this lane's keys only.
struct Rows {
    float highest[rows_held], sum[rows_held];
};

template <uint32_t HeadSize>
INLINE void attend(const FlashAttention& a, LDS float16* lds) {
    using S = Shape<HeadSize>;
    constexpr uint32_t blocks = HeadSize / 16, key_blocks = S::keys / 16;
    const uint32_t head = workgroup_id_y(), sequence = workgroup_id_z();
    const uint32_t kv_head = head / (a.heads / a.kv_heads);
    const uint32_t first_token = workgroup_id_x() * S::waves * 16, wave_token = first_token + wave_id() * 16;
    GLOBAL const float16* key = static_cast<GLOBAL const float16*>(a.key) + uint64_t{kv_head} * a.key_stride[1] +
                                uint64_t{sequence} * a.key_stride[2];
    GLOBAL const float16* value = static_cast<GLOBAL const float16*>(a.value) + uint64_t{kv_head} * a.value_stride[1] +
                                  uint64_t{sequence} * a.value_stride[2];
    const LogitRule rule = logit_rule(a, head);
    LDS float16* queries = lds + S::query_at + wave_id() * 16 * S::line;
    LDS float16* weights = lds + S::weight_at + wave_id() * 16 * S::key_line;

    load_queries<HeadSize>(a, lds + S::query_at, first_token, head, sequence);
    float8 sums[blocks] = {};
    Rows rows;
#pragma unroll
    for (uint32_t r = 0; r < rows_held; ++r) {
        rows.highest[r] = -infinity();
        rows.sum[r] = 0;
    }
    for (uint32_t first = 0; first < a.keys; first += S::keys) {
        load_keys<HeadSize>(a, key, value, first, lds);
        barrier();
        float8 logits[key_blocks] = {};
#pragma unroll
        for (uint32_t d = 0; d < blocks; ++d) {
            const Fragment query = load_fragment(queries + 16 * d, S::line);
#pragma unroll
            for (uint32_t t = 0; t < key_blocks; ++t) {
                const Fragment keys = load_fragment(lds + S::key_at + 16 * t * S::line + 16 * d, S::line);
                logits[t] = multiply(query, keys, logits[t]);
            }
        }
        float highest[rows_held];
#pragma unroll
        for (uint32_t r = 0; r < rows_held; ++r) highest[r] = -infinity();
#pragma unroll
        for (uint32_t t = 0; t < key_blocks; ++t) {
#pragma unroll
            for (uint32_t i = 0; i < 8; ++i) {
                const uint32_t token = wave_token + sum_row(i), at = first + 16 * t + sum_column(i);
                logits[t][i] = final_logit(a, rule, logits[t][i], token, at, sequence);
                highest[held_row(i)] = larger(highest[held_row(i)], logits[t][i]);
            }
        }
        float correction[rows_held];
#pragma unroll
        for (uint32_t r = 0; r < rows_held; ++r) {
            const float before = rows.highest[r], now = larger(before, row_max(highest[r]));
            rows.highest[r] = now;
            // while all keys are masked there is nothing to correct, and infinity - infinity is avoided
            highest[r] = now == -infinity() ? 0.0f : now;
            correction[r] = exp2_fast(before - highest[r]);
            rows.sum[r] *= correction[r];
        }
#pragma unroll
        for (uint32_t t = 0; t < key_blocks; ++t) {
#pragma unroll
            for (uint32_t i = 0; i < 8; ++i) {
                const float weight = exp2_fast(logits[t][i] - highest[held_row(i)]);
                rows.sum[held_row(i)] += weight;
                weights[sum_row(i) * S::key_line + 16 * t + sum_column(i)] = static_cast<float16>(weight);
            }
        }
        wave_barrier();
        Fragment left[key_blocks];
#pragma unroll
        for (uint32_t t = 0; t < key_blocks; ++t) left[t] = load_fragment(weights + 16 * t, S::key_line);
#pragma unroll
        for (uint32_t d = 0; d < blocks; ++d) {
#pragma unroll
            for (uint32_t i = 0; i < 8; ++i) sums[d][i] *= correction[held_row(i)];
#pragma unroll
            for (uint32_t t = 0; t < key_blocks; ++t) {
                const Fragment right = load_fragment(lds + S::value_at + 16 * d * S::key_line + 16 * t, S::key_line);
                sums[d] = multiply(left[t], right, sums[d]);
            }
        }
        barrier();
    }
    float factor[rows_held];
#pragma unroll
    for (uint32_t r = 0; r < rows_held; ++r) {
        const float sum = row_sum(rows.sum[r]);
        factor[r] = sum == 0.0f ? 0.0f : 1.0f / sum;
    }
#pragma unroll
    for (uint32_t i = 0; i < 8; ++i) {
        const uint32_t token = wave_token + sum_row(i);
        if (token >= a.tokens) continue;
        GLOBAL float* out = a.out + uint64_t{token} * a.out_stride[0] + uint64_t{head} * a.out_stride[1] +
                            uint64_t{sequence} * a.out_stride[2];
#pragma unroll
        for (uint32_t d = 0; d < blocks; ++d) out[16 * d + sum_column(i)] = sums[d][i] * factor[held_row(i)];
    }
}

}  // namespace

#define FLASH_ATTENTION(N)                                                   \
    LDS_ARRAY(half8, flash_lds_##N, Shape<N>::total / 8);                    \
    LOOM_KERNEL(flash_attention_d##N, FlashAttention, Shape<N>::threads) {   \
        attend<N>(arguments, reinterpret_cast<LDS float16*>(flash_lds_##N)); \
    }

FLASH_ATTENTION(64)
FLASH_ATTENTION(80)
FLASH_ATTENTION(96)
FLASH_ATTENTION(128)
FLASH_ATTENTION(256)
