#include "hrx/kernels/mat_mul.h"

#include "hrx/kernels/mat_mul_tile.h"

using namespace onebit::hrx::kernels;

namespace {
LDS_ARRAY(half8, tiles_64, 2 * 64 * lds_stride / 8);
LDS_ARRAY(half8, tiles_128, 2 * 128 * lds_stride / 8);
}  // namespace

#define MAT_MUL(type, Quant)                                                                    \
    LOOM_ARGUMENT(mat_mul_##type, MatMul, columns, 1, 1u << 24)                                 \
    LOOM_KERNEL(mat_mul_##type, MatMul, mat_mul_tile.threads) {                                 \
        mat_mul<Quant, float, 64, 64, 128>(arguments, ARGUMENT(mat_mul_##type, columns),        \
                                           reinterpret_cast<LDS float16*>(tiles_64));           \
    }                                                                                           \
    LOOM_ARGUMENT(mat_mul_wide_##type, MatMul, columns, 1, 1u << 24)                            \
    LOOM_KERNEL(mat_mul_wide_##type, MatMul, mat_mul_wide_tile.threads) {                       \
        mat_mul<Quant, float, 128, 128, 256>(arguments, ARGUMENT(mat_mul_wide_##type, columns), \
                                             reinterpret_cast<LDS float16*>(tiles_128));        \
    }

MAT_MUL(f16, Half)
MAT_MUL(q8_0, Q8_0)
MAT_MUL(q4_0, Q4_0)
MAT_MUL(q4_k, Q4_K)
MAT_MUL(q6_k, Q6_K)
MAT_MUL(iq3_xxs, Iq3Xxs)
