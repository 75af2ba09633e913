// Attention without storing its matrix: out = softmax(scale * query * key + slope(head) * mask) * value, for each head.
//
// flash_attention_dN   N: head size, 64, 80, 96, 128 or 256. Many tokens: a workgroup computes 64 tokens of a head (32
// for
//                      256) on matrix units. Block: FlashAttention.
// flash_decode_dN      the same for one or a few tokens, the keys in `splits` parts, a workgroup each; the same block,
// but
//                      binding 0 takes partial results: for each (sequence, token, head) in that order, for each split,
//                      N + 2 floats.
// flash_combine        puts partial results together. Block: FlashCombine. A workgroup a (sequence, token, head).
// query f32, key and value f16, mask f16, out f32. Head h takes keys of head h * kv_heads / heads, of which heads is a
// multiple. The mask has a row of `keys` for each token, the same for all heads; use_mask 0: binding 4 is not read.
// softcap c, where not 0: a logit x becomes c * tanh(x / c) before the mask. slope(head): as in softmax.h.
// Alignment: 16 bytes, and all strides multiples of 8 elements (query and out: of 4; mask: any).
// NaN       a key that is masked by -infinity may hold anything; its value must be finite, but for flash_decode. A
// token
//           whose keys are all masked, or with no keys, gets zeros. NaN in a query makes its row NaN.
// Tolerance (tests/hrx-kernels/tolerances.h) queries and weights are rounded to f16 by flash_attention.
// Source    Dao et al.: FlashAttention, 2022; Milakov, Gimelshein: Online normalizer calculation for softmax, 2018.
#pragma once

#include "hrx/kernels/shape.h"

namespace onebit::hrx::kernels {

struct FlashAttention {
    static constexpr uint32_t bindings = 5;
    HRX_BINDING(float) out;
    HRX_BINDING(const float) query;
    HRX_BINDING(const void) key;
    HRX_BINDING(const void) value;
    HRX_BINDING(const void) mask;
    uint32_t tokens, heads, keys, kv_heads, sequences;
    uint32_t use_mask;
    uint32_t splits;           // of flash_decode
    uint32_t query_stride[3];  // token, head, sequence
    uint32_t key_stride[3];    // key, head, sequence
    uint32_t value_stride[3];
    uint32_t mask_stride[2];  // token, sequence
    uint32_t out_stride[3];   // token, head, sequence; not read by flash_decode
    float scale, max_bias, softcap;
    uint32_t slope_heads;
};

struct FlashCombine {
    static constexpr uint32_t bindings = 2;
    HRX_BINDING(float) out;
    HRX_BINDING(const float) partial;
    uint32_t head_size, tokens, heads, sequences, splits;
    uint32_t out_stride[3];
};

constexpr uint32_t flash_tokens(uint32_t head_size) { return head_size > 128 ? 32 : 64; }
constexpr uint32_t flash_decode_threads = 128, flash_combine_threads = 64;

constexpr Launch launch_flash_attention(const FlashAttention& a, uint32_t head_size) {
    const uint32_t tokens = flash_tokens(head_size);
    return {{divide_up(a.tokens, tokens), a.heads, a.sequences}, tokens / 16 * 32};
}
constexpr Launch launch_flash_decode(const FlashAttention& a) {
    return {{a.splits, a.heads, a.tokens * a.sequences}, flash_decode_threads};
}
constexpr uint64_t flash_decode_partial_floats(const FlashAttention& a, uint32_t head_size) {
    return uint64_t{a.splits} * a.heads * a.tokens * a.sequences * (head_size + 2);
}
constexpr Launch launch(const FlashCombine& a) { return {{a.heads, a.tokens * a.sequences, 1}, flash_combine_threads}; }

}  // namespace onebit::hrx::kernels
