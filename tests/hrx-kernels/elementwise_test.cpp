// If this fails, sums, products or scaled tensors are wrong: residuals, biases and logits.
#include <functional>

#include "hrx/kernels/elementwise.h"
#include "tests/hrx-kernels/kernel_testing.h"

namespace onebit::hrx::kernels::test {
namespace {

ONEBIT_KERNEL_TEST(ElementwiseTest);

struct Operation {
    std::string name;
    std::function<double(double, double)> apply;
};

const std::vector<Operation>& operations() {
    static const auto* const list = new std::vector<Operation>{
        {"add", [](double a, double b) { return a + b; }},
        {"sub", [](double a, double b) { return a - b; }},
        {"mul", [](double a, double b) { return a * b; }},
        {"div", [](double a, double b) { return a / b; }},
    };
    return *list;
}

std::vector<float> operand(size_t count, uint32_t seed) {
    auto values = Random(seed).values(count, 0.5f, 100);
    for (size_t i = 0; i < count; i += 3) values[i] = -values[i];
    if (count > 8 && seed == 1) {
        values[1] = INFINITY;
        values[2] = NAN;
        values[4] = 0;
        values[5] = 3e38f;
    }
    return values;
}

TEST_P(ElementwiseTest, FlatAtEveryEdge) {
    for (const Operation& operation : operations()) {
        for (const uint32_t count : edge_sizes) {
            const auto left = operand(count, 1), right = operand(count, 2);
            const auto out = output<float>(count);
            run(operation.name + "_flat_f32", FlatBinary{{}, {}, {}, count},
                {out.binding(), bind(input(left)), bind(input(right))});
            const auto seen = out.read();
            for (uint32_t i = 0; i < count; ++i) {
                // what float arithmetic rounds the exact result to
                const auto want = static_cast<float>(operation.apply(left[i], right[i]));
                ASSERT_TRUE(close(seen[i], want, tolerance("add, sub, mul, div").value, 1)) << operation.name << i;
            }
            const auto left16 = to_halves(left), right16 = to_halves(right);
            const auto out16 = output<uint16_t>(count);
            run(operation.name + "_flat_f16", FlatBinary{{}, {}, {}, count},
                {out16.binding(), bind(input(left16)), bind(input(right16))});
            const auto seen16 = out16.read();
            for (uint32_t i = 0; i < count; ++i) {
                const double want = operation.apply(from_half(left16[i]), from_half(right16[i]));
                ASSERT_TRUE(close(from_half(seen16[i]), from_half(to_half(want)), 0, 1)) << operation.name << i;
            }
        }
    }
}

// Shapes of out and of the smaller operand.
struct Shapes {
    uint32_t ne[4], right[4];
};

void set_packed(uint32_t (&stride)[4], const uint32_t (&ne)[4]) {
    stride[0] = 1;
    for (int i = 1; i < 4; ++i) stride[i] = stride[i - 1] * ne[i - 1];
}

TEST_P(ElementwiseTest, SmallerOperandsRepeat) {
    std::vector<Shapes> shapes = {
        {{6, 4, 2, 3}, {6, 4, 2, 3}}, {{6, 4, 2, 3}, {1, 1, 1, 1}}, {{6, 4, 2, 3}, {3, 2, 2, 1}},
        {{6, 4, 2, 3}, {6, 1, 1, 3}}, {{7, 5, 1, 1}, {1, 5, 1, 1}},
    };
    for (const uint32_t size : edge_sizes) {
        shapes.push_back({{size, 2, 1, 1}, {size, 1, 1, 1}});
        shapes.push_back({{3, size, 1, 1}, {3, 1, 1, 1}});
        shapes.push_back({{2, 1, size, 1}, {1, 1, size, 1}});
        shapes.push_back({{2, 1, 1, size}, {2, 1, 1, 1}});
    }
    for (const Shapes& shape : shapes) {
        Binary block{};
        std::copy(shape.ne, shape.ne + 4, block.ne);
        std::copy(shape.right, shape.right + 4, block.right_ne);
        block.count = static_cast<uint32_t>(count_of(shape.ne));
        set_packed(block.left_stride, shape.ne);
        set_packed(block.right_stride, shape.right);
        set_packed(block.out_stride, shape.ne);
        const auto left = operand(block.count, 3), right = operand(count_of(shape.right), 4);
        for (const Operation& operation : operations()) {
            const auto out = output<float>(block.count);
            run(operation.name + "_f32", block, {out.binding(), bind(input(left)), bind(input(right))});
            const auto seen = out.read();
            for (uint32_t i = 0; i < block.count; ++i) {
                const Index4 at = unravel(i, shape.ne);
                const Index4 other = {at.i0 % shape.right[0], at.i1 % shape.right[1], at.i2 % shape.right[2],
                                      at.i3 % shape.right[3]};
                const double exact = operation.apply(left[i], right[offset_of(other, block.right_stride)]);
                ASSERT_TRUE(close(seen[i], static_cast<float>(exact), 0, 1)) << operation.name << " element " << i;
            }
            if (operation.name == "mul") break;  // the last differs in nothing but the operation
        }
    }
}

TEST_P(ElementwiseTest, StridesAndInPlace) {
    // out and left: every second element of rows of 20; right: transposed
    Binary block{};
    const uint32_t ne[4] = {9, 7, 1, 1};
    std::copy(ne, ne + 4, block.ne);
    std::copy(ne, ne + 4, block.right_ne);
    block.count = 63;
    const uint32_t wide[4] = {2, 20, 140, 140}, turned[4] = {7, 1, 63, 63};
    std::copy(wide, wide + 4, block.left_stride);
    std::copy(wide, wide + 4, block.out_stride);
    std::copy(turned, turned + 4, block.right_stride);
    const auto left = to_halves(operand(140, 5)), right = to_halves(operand(63, 6));
    for (const Operation& operation : operations()) {
        const auto out = in_place(left);
        run(operation.name + "_f16", block, {out.binding(), out.binding(), bind(input(right))});
        const auto seen = out.read();
        for (uint32_t i = 0; i < 140; ++i) {
            const uint32_t row = i / 20, column = i % 20;
            uint16_t want = left[i];
            if (column % 2 == 0 && column / 2 < 9) {
                want = to_half(operation.apply(from_half(left[i]), from_half(right[column / 2 * 7 + row])));
            }
            ASSERT_EQ(seen[i], want) << operation.name << i;
        }
    }
}

TEST_P(ElementwiseTest, ScaleAtEveryEdge) {
    const double allowed = tolerance("scale").value;
    for (const uint32_t count : edge_sizes) {
        const auto in = operand(count, 1);
        const auto out = in_place(in);
        run("scale_f32", Scale{{}, {}, count, 0.37f, -2.5f}, {out.binding(), out.binding()});
        const auto seen = out.read();
        for (uint32_t i = 0; i < count; ++i) {
            const double product = double{in[i]} * 0.37f;
            ASSERT_TRUE(close(seen[i], product - 2.5, allowed, std::fabs(product) + 2.5)) << i;
        }
    }
}

TEST_P(ElementwiseTest, NothingToDo) {
    const auto out = output<float>(0);
    const Buffer none = input(std::vector<float>{});
    run("add_flat_f32", FlatBinary{{}, {}, {}, 0}, {out.binding(), bind(none), bind(none)});
    run("scale_f32", Scale{{}, {}, 0, 1, 0}, {out.binding(), bind(none)});
    out.read();
}

}  // namespace
}  // namespace onebit::hrx::kernels::test
