#include "hrx/kernels/rms_norm.h"

#include "hrx/kernels/specialise.h"
#include "hrx/kernels/wave.h"

using namespace onebit::hrx::kernels;

namespace {

constexpr uint32_t threads = rms_norm_threads;
LDS_ARRAY(float, sum_parts, threads / wave_size);

template <bool weighted>
INLINE void rms_norm(const RmsNorm& a, uint32_t columns) {
    const uint32_t row = workgroup_id_x(), plane = row / a.ne1;
    const uint32_t i1 = row - plane * a.ne1, i2 = plane % a.ne2, i3 = plane / a.ne2;
    GLOBAL const float* in =
        a.in + (uint64_t{i1} * a.in_stride[0] + uint64_t{i2} * a.in_stride[1] + uint64_t{i3} * a.in_stride[2]);
    GLOBAL float* out =
        a.out + (uint64_t{i1} * a.out_stride[0] + uint64_t{i2} * a.out_stride[1] + uint64_t{i3} * a.out_stride[2]);
    float sum = 0;
    for (uint32_t i = local_id_x(); i < columns; i += threads) sum += in[i] * in[i];
    sum = group_sum<threads>(sum, sum_parts);
    const float factor = inverse_root(sum / static_cast<float>(columns) + a.epsilon);
    for (uint32_t i = local_id_x(); i < columns; i += threads) {
        const float value = in[i] * factor;
        out[i] = weighted ? value * a.weight[i] : value;
    }
}

}  // namespace

LOOM_ARGUMENT(rms_norm_f32, RmsNorm, columns, 1, 1u << 24)
LOOM_KERNEL(rms_norm_f32, RmsNorm, rms_norm_threads) { rms_norm<false>(arguments, ARGUMENT(rms_norm_f32, columns)); }

LOOM_ARGUMENT(rms_norm_mul_f32, RmsNorm, columns, 1, 1u << 24)
LOOM_KERNEL(rms_norm_mul_f32, RmsNorm, rms_norm_threads) {
    rms_norm<true>(arguments, ARGUMENT(rms_norm_mul_f32, columns));
}
