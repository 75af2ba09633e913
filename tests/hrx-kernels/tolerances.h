// How far results of kernels may be from the reference, which computes in double: |result - reference| <= value *
// scale. docs/hrx-kernels-reference.md has the same table; tolerances_test.cpp compares them.
#pragma once

#include <stdexcept>
#include <string>
#include <string_view>

namespace onebit::hrx::kernels::test {

struct Tolerance {
    std::string_view kernels;
    double value;
    std::string_view scale;
};

inline constexpr Tolerance tolerances[] = {
    {"copy", 0, "bits"},
    {"add, sub, mul, div", 0, "bits"},
    {"scale", 1.2e-7, "abs(in * factor) + abs(offset)"},
    {"rms_norm", 1e-6, "the result"},
    {"softmax", 1e-5, "the result, for logits within 16 of each other"},
    {"rope f32", 4e-7, "length of the pair * magnitude * (4 + angle)"},
    {"rope f16", 5e-4, "length of the pair * magnitude, added to that of f32"},
    {"swiglu f32", 4e-6, "the result, for gates within 16"},
    {"swiglu f16", 5e-4, "the result, for gates within 16"},
    {"get_rows", 0, "bits of plain types"},
    {"get_rows quantised", 4e-7, "abs(scale * q) + abs(offset)"},
    {"set_rows", 0, "bits of plain types"},
    {"set_rows q8_0", 0.502, "the block's largest value / 127"},
    {"mat_vec", 1e-6, "sum of abs(weight * in)"},
    {"quantise_int8", 0.5001, "the block's scale"},
    {"mat_vec_int8", 1e-6, "sum of abs(weight * in), in as it was quantised"},
    {"mat_mul, operands exact in f16", 1e-6, "sum of abs(weight * in)"},
    {"mat_mul", 1e-3, "sum of abs(weight * in)"},
    {"flash_attention", 2e-3, "largest abs(value) of the head"},
};

constexpr const Tolerance& tolerance(std::string_view kernels) {
    for (const Tolerance& entry : tolerances) {
        if (entry.kernels == kernels) return entry;
    }
    throw std::out_of_range("no tolerance of '" + std::string(kernels) + "'");
}

}  // namespace onebit::hrx::kernels::test
