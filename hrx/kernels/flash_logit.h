// What a product of query and key becomes before the softmax (flash_attention.h), times log2(e).
#pragma once

#include "hrx/kernels/flash_attention.h"
#include "hrx/kernels/slope.h"
#include "hrx/kernels/wave.h"

namespace onebit::hrx::kernels {

constexpr float log2_e = 1.44269504f;

struct LogitRule {
    float scale, slope;  // both times log2(e)
    float cap, cap_scale;
};

INLINE LogitRule logit_rule(const FlashAttention& a, uint32_t head) {
    LogitRule rule = {a.scale * log2_e, position_slope(head, a.max_bias, a.slope_heads) * log2_e, 0.0f, 0.0f};
    if (a.softcap != 0.0f) {
        rule.cap = a.softcap * log2_e;
        rule.cap_scale = a.scale / a.softcap;
    }
    return rule;
}

// tanh(x) = 1 - 2 / (e^2x + 1), which is 1 or -1 at the ends.
INLINE float tanh_fast(float x) { return 1.0f - 2.0f * reciprocal_fast(exp2_fast(x * (2.0f * log2_e)) + 1.0f); }

// -infinity for keys that are masked or past the end, whatever the product is.
INLINE float final_logit(const FlashAttention& a, const LogitRule& rule, float product, uint32_t token, uint32_t key,
                         uint32_t sequence) {
    if (key >= a.keys) return -infinity();
    float logit = rule.cap != 0.0f ? rule.cap * tanh_fast(product * rule.cap_scale) : product * rule.scale;
    if (a.use_mask != 0) {
        if (token >= a.tokens) token = a.tokens - 1;
        const float mask = to_float(static_cast<GLOBAL const float16*>(
            a.mask)[uint64_t{token} * a.mask_stride[0] + uint64_t{sequence} * a.mask_stride[1] + key]);
        logit = mask == -infinity() ? -infinity() : logit + rule.slope * mask;
    }
    return logit;
}

}  // namespace onebit::hrx::kernels
