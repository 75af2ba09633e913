// What the tests of mat-vec and of matrix products share: operands without gaps, and the product in double.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "tests/hrx-kernels/kernel_testing.h"
#include "tests/hrx-kernels/reference_quants.h"

namespace onebit::hrx::kernels::test {

// Block: MatVec or MatMul. units: elements, or blocks of a quantised type, of one row of weights.
template <typename Block>
Block packed(uint32_t columns, uint32_t units, uint32_t rows, uint32_t vectors) {
    Block block{};
    block.columns = columns;
    block.rows = rows;
    block.vectors = vectors;
    block.weight_ne2 = block.weight_ne3 = block.in_ne2 = block.in_ne3 = 1;
    block.weight_stride[0] = units;
    block.in_stride[0] = columns;
    block.out_stride[0] = rows;
    return block;
}

// Fails the test at the first element of one plane that is off. Shapes: weights [rows][columns], in [vectors][columns],
// seen [vectors][rows].
inline void expect_product(const std::vector<Weight>& weights, const std::vector<float>& in,
                           const std::vector<float>& seen, uint32_t columns, uint32_t rows, uint32_t vectors,
                           const Tolerance& allowed, const std::string& name) {
    for (uint32_t v = 0; v < vectors; ++v) {
        for (uint32_t r = 0; r < rows; ++r) {
            double sum = 0, scale = 0;
            for (uint32_t k = 0; k < columns; ++k) {
                const Weight& weight = weights[size_t{r} * columns + k];
                const double x = in[size_t{v} * columns + k];
                sum += weight.value * x;
                scale += weight.magnitude * std::fabs(x);
            }
            ASSERT_TRUE(close(seen[size_t{v} * rows + r], sum, allowed.value, scale))
                << name << " row " << r << " vector " << v << " of " << columns << " x " << rows << " x " << vectors;
        }
    }
}

}  // namespace onebit::hrx::kernels::test
