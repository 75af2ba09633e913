#include "hrx/kernels/glu.h"

#include "hrx/kernels/specialise.h"
#include "hrx/kernels/wave.h"

using namespace onebit::hrx::kernels;

namespace {

template <typename T>
INLINE void swiglu(const SwiGlu& a, uint32_t columns) {
    const uint32_t i = workgroup_id_x() * glu_threads + local_id_x();
    if (i >= columns * a.rows) return;
    const uint32_t row = i / columns, column = i - row * columns;
    const float gate = to_float(static_cast<GLOBAL const T*>(a.gate)[uint64_t{row} * a.gate_stride + column]);
    const float up = to_float(static_cast<GLOBAL const T*>(a.up)[uint64_t{row} * a.up_stride + column]);
    const float value = gate / (1.0f + exp_fast(-gate)) * up;
    static_cast<GLOBAL T*>(a.out)[uint64_t{row} * a.out_stride + column] = from_float<T>(value);
}

}  // namespace

LOOM_ARGUMENT(swiglu_f32, SwiGlu, columns, 1, 1u << 24)
LOOM_KERNEL(swiglu_f32, SwiGlu, glu_threads) { swiglu<float>(arguments, ARGUMENT(swiglu_f32, columns)); }

LOOM_ARGUMENT(swiglu_f16, SwiGlu, columns, 1, 1u << 24)
LOOM_KERNEL(swiglu_f16, SwiGlu, glu_threads) { swiglu<float16>(arguments, ARGUMENT(swiglu_f16, columns)); }
