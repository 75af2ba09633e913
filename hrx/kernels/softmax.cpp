#include "hrx/kernels/softmax.h"

#include "hrx/kernels/slope.h"
#include "hrx/kernels/specialise.h"
#include "hrx/kernels/wave.h"

using namespace onebit::hrx::kernels;

namespace {

constexpr uint32_t threads = softmax_threads;
LDS_ARRAY(float, reduce_parts, threads / wave_size);
constexpr float log2_e = 1.44269504f;

struct NoMask {};

// The value before the softmax, times log2(e).
template <typename Mask>
struct Logit {
    GLOBAL const float* in;
    GLOBAL const Mask* mask;
    float scale, slope;
    __attribute__((always_inline)) float operator()(uint32_t i) const {
        if constexpr (__is_same(Mask, NoMask)) {
            return in[i] * scale * log2_e;
        } else {
            return (in[i] * scale + slope * to_float(mask[i])) * log2_e;
        }
    }
};

template <typename Mask>
INLINE void softmax(const Softmax& a, uint32_t columns) {
    const uint32_t row = workgroup_id_x(), plane = row / a.ne1;
    const uint32_t i1 = row - plane * a.ne1, i2 = plane % a.ne2, i3 = plane / a.ne2;
    Logit<Mask> logit{a.in + uint64_t{row} * columns, nullptr, a.scale, 1.0f};
    if constexpr (!__is_same(Mask, NoMask)) {
        logit.mask = static_cast<GLOBAL const Mask*>(a.mask) + uint64_t{i1} * a.mask_stride[0] +
                     uint64_t{i2 % a.mask_ne2} * a.mask_stride[1] + uint64_t{i3 % a.mask_ne3} * a.mask_stride[2];
        logit.slope = position_slope(i2, a.max_bias, a.slope_heads);
    }
    GLOBAL float* out = a.out + uint64_t{row} * columns;

    float highest = -infinity();
    for (uint32_t i = local_id_x(); i < columns; i += threads) highest = larger(highest, logit(i));
    highest = group_max<threads>(highest, reduce_parts);
    float sum = 0;
    for (uint32_t i = local_id_x(); i < columns; i += threads) {
        const float value = exp2_fast(logit(i) - highest);
        out[i] = value;
        sum += value;
    }
    const float factor = 1.0f / group_sum<threads>(sum, reduce_parts);
    for (uint32_t i = local_id_x(); i < columns; i += threads) out[i] *= factor;
}

}  // namespace

LOOM_ARGUMENT(softmax_f32, Softmax, columns, 1, 1u << 24)
LOOM_KERNEL(softmax_f32, Softmax, softmax_threads) { softmax<NoMask>(arguments, ARGUMENT(softmax_f32, columns)); }

LOOM_ARGUMENT(softmax_mask_f32_f32, Softmax, columns, 1, 1u << 24)
LOOM_KERNEL(softmax_mask_f32_f32, Softmax, softmax_threads) {
    softmax<float>(arguments, ARGUMENT(softmax_mask_f32_f32, columns));
}

LOOM_ARGUMENT(softmax_mask_f16_f32, Softmax, columns, 1, 1u << 24)
LOOM_KERNEL(softmax_mask_f16_f32, Softmax, softmax_threads) {
    softmax<float16>(arguments, ARGUMENT(softmax_mask_f16_f32, columns));
}
