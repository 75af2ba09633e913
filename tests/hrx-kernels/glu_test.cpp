// If this fails, the gated feed-forward layers of models are wrong.
#include "hrx/kernels/glu.h"
#include "tests/hrx-kernels/kernel_testing.h"

namespace onebit::hrx::kernels::test {
namespace {

ONEBIT_KERNEL_TEST(GluTest);

double reference(double gate, double up) { return gate / (1 + std::exp(-gate)) * up; }

TEST_P(GluTest, ColumnsAndRowsAtEveryEdge) {
    const double allowed = tolerance("swiglu f32").value, allowed16 = tolerance("swiglu f16").value;
    for (const uint32_t size : edge_sizes) {
        for (const bool wide : {true, false}) {
            const uint32_t columns = wide ? size : 3, rows = wide ? 2 : size;
            const SwiGlu block{{}, {}, {}, columns, rows, columns, columns, columns};
            const auto gate = Random(1).values(size_t{columns} * rows, -16, 16);
            const auto up = Random(2).values(gate.size());
            const auto out = output<float>(gate.size());
            run("swiglu_f32", block, {out.binding(), bind(input(gate)), bind(input(up))});
            const auto seen = out.read();
            for (size_t i = 0; i < gate.size(); ++i) {
                const double want = reference(gate[i], up[i]);
                ASSERT_TRUE(close(seen[i], want, allowed, std::fabs(want))) << i << " gate " << gate[i];
            }
            const auto gate16 = to_halves(gate), up16 = to_halves(up);
            const auto out16 = output<uint16_t>(gate.size());
            run("swiglu_f16", block, {out16.binding(), bind(input(gate16)), bind(input(up16))});
            const auto seen16 = out16.read();
            for (size_t i = 0; i < gate.size(); ++i) {
                const double want = reference(from_half(gate16[i]), from_half(up16[i]));
                // one half of the smallest step of f16 below its normal numbers
                ASSERT_TRUE(close(from_half(seen16[i]), want, allowed16, std::fabs(want) + 0x1p-14)) << i;
            }
        }
    }
}

// Both halves of one tensor, the result over the first.
TEST_P(GluTest, HalvesOfOneTensorInPlace) {
    constexpr uint32_t columns = 33, rows = 5;
    const auto in = Random(3).values(2 * columns * rows);
    const auto out = in_place(in);
    hrx_binding up = out.binding();
    up.offset += columns * sizeof(float);
    up.length -= columns * sizeof(float);
    run("swiglu_f32", SwiGlu{{}, {}, {}, columns, rows, 2 * columns, 2 * columns, 2 * columns},
        {out.binding(), out.binding(), up});
    const auto seen = out.read();
    for (uint32_t i = 0; i < seen.size(); ++i) {
        const bool first = i % (2 * columns) < columns;
        const double want = first ? reference(in[i], in[i + columns]) : in[i];
        ASSERT_TRUE(close(seen[i], want, first ? tolerance("swiglu f32").value : 0, std::fabs(want))) << i;
    }
}

TEST_P(GluTest, LargeAndUndefinedGates) {
    const std::vector<float> gate = {NAN, INFINITY, -INFINITY, 200, -200, 0, 1, -0.0f};
    const std::vector<float> up = {1, 1, 1, 2, 2, 5, NAN, 1};
    const auto out = output<float>(8);
    run("swiglu_f32", SwiGlu{{}, {}, {}, 8, 1, 8, 8, 8}, {out.binding(), bind(input(gate)), bind(input(up))});
    const auto seen = out.read();
    EXPECT_TRUE(std::isnan(seen[0]));
    EXPECT_EQ(seen[1], INFINITY);
    EXPECT_TRUE(std::isnan(seen[2]));
    EXPECT_EQ(seen[3], 400);
    EXPECT_NEAR(seen[4], 0, 1e-30);
    EXPECT_EQ(seen[5], 0);
    EXPECT_TRUE(std::isnan(seen[6]));
    EXPECT_EQ(seen[7], 0);
    const auto none = output<float>(0);
    run("swiglu_f32", SwiGlu{{}, {}, {}, 8, 0, 8, 8, 8}, {none.binding(), none.binding(), none.binding()});
    none.read();
}

}  // namespace
}  // namespace onebit::hrx::kernels::test
