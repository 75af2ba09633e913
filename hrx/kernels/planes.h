// Which planes of the operands of a product (mat_vec.h, mat_mul.h) a workgroup works on.
#pragma once

#include "hrx/kernels/wave.h"

namespace onebit::hrx::kernels {

// n / d for n below 2^21 and d of at least 1, in a third of the instructions that the division of any two numbers
// takes. The half keeps the quotient at least 0.5 / d away from whole numbers, more than the reciprocal's last place.
INLINE uint32_t small_quotient(uint32_t n, uint32_t d) {
    return static_cast<uint32_t>((static_cast<float>(n) + 0.5f) * reciprocal_fast(static_cast<float>(d)));
}

// Indices of dimensions 2 and 3.
struct Plane {
    uint32_t in2, in3, weight2, weight3;
};

// There are fewer than 65536 planes, since each has its workgroups in the third dimension of the launch.
template <typename Block>
INLINE Plane find_plane(const Block& a) {
    Plane plane;
    plane.in3 = small_quotient(workgroup_id_z(), a.in_ne2);
    plane.in2 = workgroup_id_z() - plane.in3 * a.in_ne2;
    plane.weight2 = small_quotient(plane.in2, small_quotient(a.in_ne2, a.weight_ne2));
    plane.weight3 = small_quotient(plane.in3, small_quotient(a.in_ne3, a.weight_ne3));
    return plane;
}

}  // namespace onebit::hrx::kernels
