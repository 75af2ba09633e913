// Slope of a head's position bias (softmax.h says which).
#pragma once

#include "hrx/kernels/wave.h"

namespace onebit::hrx::kernels {

INLINE float position_slope(uint32_t head, float max_bias, uint32_t slope_heads) {
    if (max_bias <= 0.0f) return 1.0f;
    const auto n = static_cast<float>(slope_heads);
    if (head < slope_heads) return exp2_fast(-max_bias * static_cast<float>(head + 1) / n);
    return exp2_fast(-0.5f * max_bias * static_cast<float>(2 * (head - slope_heads) + 1) / n);
}

}  // namespace onebit::hrx::kernels
