// If this fails, the norm before each layer is wrong and every model talks nonsense.
#include "hrx/kernels/rms_norm.h"
#include "tests/hrx-kernels/kernel_testing.h"

namespace onebit::hrx::kernels::test {
namespace {

ONEBIT_KERNEL_TEST(RmsNormTest);

RmsNorm packed(uint32_t columns, uint32_t rows) {
    RmsNorm block{};
    block.columns = columns;
    block.ne1 = rows == 0 ? 1 : rows;
    block.ne2 = 1;
    block.rows = rows;
    block.in_stride[0] = block.out_stride[0] = columns;
    block.epsilon = 1e-5f;
    return block;
}

std::vector<double> reference(const float* in, const float* weight, uint32_t columns, double epsilon) {
    double sum = 0;
    for (uint32_t i = 0; i < columns; ++i) sum += double{in[i]} * in[i];
    const double factor = 1 / std::sqrt(sum / columns + epsilon);
    std::vector<double> out(columns);
    for (uint32_t i = 0; i < columns; ++i) out[i] = in[i] * factor * (weight != nullptr ? weight[i] : 1);
    return out;
}

void compare(const std::vector<float>& seen, size_t at, const std::vector<double>& want) {
    for (size_t i = 0; i < want.size(); ++i) {
        ASSERT_TRUE(close(seen[at + i], want[i], tolerance("rms_norm").value, std::fabs(want[i]))) << at + i;
    }
}

TEST_P(RmsNormTest, ColumnsAtEveryEdge) {
    for (const uint32_t columns : edge_sizes) {
        constexpr uint32_t rows = 3;
        const auto in = Random(1).values(size_t{columns} * rows), weight = Random(2).values(columns, 0.5f, 2);
        for (const bool weighted : {false, true}) {
            const auto out = output<float>(in.size());
            run(weighted ? "rms_norm_mul_f32" : "rms_norm_f32", packed(columns, rows),
                {out.binding(), bind(input(in)), bind(input(weight))});
            const auto seen = out.read();
            for (uint32_t row = 0; row < rows; ++row) {
                const size_t at = size_t{row} * columns;
                compare(seen, at, reference(in.data() + at, weighted ? weight.data() : nullptr, columns, 1e-5f));
            }
        }
    }
}

TEST_P(RmsNormTest, RowsAtEveryEdge) {
    for (const uint32_t rows : edge_sizes) {
        const auto in = Random(3).values(size_t{rows} * 5);
        const auto out = output<float>(in.size());
        run("rms_norm_f32", packed(5, rows), {out.binding(), bind(input(in)), bind(input(in))});
        const auto seen = out.read();
        for (uint32_t row = 0; row < rows; ++row) {
            compare(seen, size_t{row} * 5, reference(in.data() + size_t{row} * 5, nullptr, 5, 1e-5f));
        }
    }
}

TEST_P(RmsNormTest, PlanesWithGapsInPlace) {
    RmsNorm block = packed(40, 2 * 3 * 2);
    block.ne1 = 2;
    block.ne2 = 3;
    const uint32_t stride[3] = {48, 100, 320};
    std::copy(stride, stride + 3, block.in_stride);
    std::copy(stride, stride + 3, block.out_stride);
    const auto in = Random(4).values(640);
    const auto out = in_place(in);
    run("rms_norm_f32", block, {out.binding(), out.binding(), out.binding()});
    const auto seen = out.read();
    std::vector<double> want(in.begin(), in.end());
    for (uint32_t row = 0; row < 12; ++row) {
        const size_t at = row % 2 * 48 + row / 2 % 3 * 100 + row / 6 * 320;
        const auto line = reference(in.data() + at, nullptr, 40, 1e-5f);
        std::copy(line.begin(), line.end(), want.begin() + static_cast<std::ptrdiff_t>(at));
    }
    compare(seen, 0, want);
}

TEST_P(RmsNormTest, NanAndInfinityStayInTheirRow) {
    auto in = Random(5).values(4 * 300);
    in[300 + 299] = NAN;
    in[600 + 7] = INFINITY;
    const auto out = output<float>(in.size());
    run("rms_norm_f32", packed(300, 4), {out.binding(), bind(input(in)), bind(input(in))});
    const auto seen = out.read();
    compare(seen, 0, reference(in.data(), nullptr, 300, 1e-5f));
    compare(seen, 900, reference(in.data() + 900, nullptr, 300, 1e-5f));
    for (uint32_t i = 0; i < 300; ++i) {
        ASSERT_TRUE(std::isnan(seen[300 + i]));
        if (i == 7) {
            ASSERT_TRUE(std::isnan(seen[607]));
        } else {
            ASSERT_EQ(seen[600 + i], 0);
        }
    }
}

TEST_P(RmsNormTest, ZerosAndNoRows) {
    const auto out = output<float>(64);
    run("rms_norm_f32", packed(64, 1),
        {out.binding(), bind(input(std::vector<float>(64))), bind(input(std::vector<float>(1)))});
    for (const float value : out.read()) ASSERT_EQ(value, 0);
    const auto none = output<float>(0);
    run("rms_norm_f32", packed(64, 0), {none.binding(), none.binding(), none.binding()});
    none.read();
}

}  // namespace
}  // namespace onebit::hrx::kernels::test
