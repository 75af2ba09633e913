// The example of docs/hrx-kernels.md: each row divided by its largest absolute value.
#include "hrx/kernels/specialise.h"

// What the host passes, in this order: the bindings, then the constants.
struct RowScale {
    GLOBAL float* out;
    GLOBAL const float* in;
    uint32_t columns;
};

LDS_ARRAY(float, largest, 128);

LOOM_ARGUMENT(row_scale, RowScale, columns, 1, 1u << 20)
LOOM_OPTION(row_scale, unroll, 1, 1, 4)
LOOM_KERNEL(row_scale, RowScale, 128) {
    const uint32_t columns = ARGUMENT(row_scale, columns), unroll = OPTION(row_scale, unroll);
    const uint64_t row = uint64_t{workgroup_id_x()} * columns;
    float most = 0;
    for (uint32_t i = local_id_x(); i < columns; i += 128 * unroll) {
#pragma unroll
        for (uint32_t k = 0; k < unroll; ++k) {
            const uint32_t column = i + 128 * k;
            if (column < columns) most = __builtin_fmaxf(most, __builtin_fabsf(arguments.in[row + column]));
        }
    }
    largest[local_id_x()] = most;
    barrier();
    for (uint32_t width = 64; width != 0; width /= 2) {
        if (local_id_x() < width) {
            largest[local_id_x()] = __builtin_fmaxf(largest[local_id_x()], largest[local_id_x() + width]);
        }
        barrier();
    }
    const float divisor = largest[0];
    for (uint32_t i = local_id_x(); i < columns; i += 128) {
        arguments.out[row + i] = divisor == 0 ? 0 : arguments.in[row + i] / divisor;
    }
}
