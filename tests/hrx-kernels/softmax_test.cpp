// If this fails, attention weights are wrong where attention is not one kernel.
#include "hrx/kernels/softmax.h"
#include "tests/hrx-kernels/kernel_testing.h"

namespace onebit::hrx::kernels::test {
namespace {

ONEBIT_KERNEL_TEST(SoftmaxTest);

Softmax packed(uint32_t columns, uint32_t ne1, uint32_t ne2, uint32_t ne3) {
    Softmax block{};
    block.columns = columns;
    block.ne1 = ne1 == 0 ? 1 : ne1;
    block.ne2 = ne2;
    block.rows = ne1 * ne2 * ne3;
    block.mask_ne2 = block.mask_ne3 = 1;
    block.mask_stride[0] = columns;
    block.scale = 1;
    return block;
}

std::vector<double> reference(const std::vector<double>& logits) {
    double highest = -INFINITY, sum = 0;
    for (const double value : logits) highest = std::fmax(highest, value);
    std::vector<double> out;
    for (const double value : logits) sum += out.emplace_back(std::exp(value - highest));
    for (double& value : out) value /= sum;
    return out;
}

void compare(const std::vector<float>& seen, size_t at, const std::vector<double>& want) {
    for (size_t i = 0; i < want.size(); ++i) {
        ASSERT_TRUE(close(seen[at + i], want[i], tolerance("softmax").value, want[i])) << at + i;
    }
}

TEST_P(SoftmaxTest, ColumnsAndRowsAtEveryEdge) {
    for (const uint32_t size : edge_sizes) {
        for (const bool wide : {true, false}) {
            const uint32_t columns = wide ? size : 3, rows = wide ? 2 : size;
            Softmax block = packed(columns, rows, 1, 1);
            block.scale = 0.5f;
            const auto in = Random(1).values(size_t{columns} * rows, -8, 8);
            const auto out = in_place(in);
            run("softmax_f32", block, {out.binding(), out.binding(), out.binding()});
            const auto seen = out.read();
            for (uint32_t row = 0; row < rows; ++row) {
                std::vector<double> logits;
                for (uint32_t i = 0; i < columns; ++i) logits.push_back(in[size_t{row} * columns + i] * 0.5);
                compare(seen, size_t{row} * columns, reference(logits));
            }
        }
    }
}

double slope(uint32_t head, double max_bias, uint32_t heads) {
    if (max_bias == 0) return 1;
    const uint32_t n = slope_heads_of(heads);
    return head < n ? std::pow(2, -max_bias * (head + 1) / n) : std::pow(2, -max_bias / 2 * (2 * (head - n) + 1) / n);
}

TEST_P(SoftmaxTest, MasksAndSlopes) {
    // the mask has planes for 3 heads and 2 sequences, which repeat
    constexpr uint32_t columns = 70, rows = 4, heads = 6, sequences = 4, mask_heads = 3, mask_sequences = 2;
    constexpr uint32_t plane = (columns + 2) * rows;
    const auto in = Random(2).values(columns * rows * heads * sequences, -4, 4);
    auto mask = Random(3).values(plane * mask_heads * mask_sequences, -3, 0);
    for (size_t i = 0; i < mask.size(); i += 5) mask[i] = -INFINITY;
    const auto half_mask = to_halves(mask);
    for (const bool half : {false, true}) {
        for (const float max_bias : {0.0f, 8.0f}) {
            Softmax block = packed(columns, rows, heads, sequences);
            block.mask_ne2 = mask_heads;
            block.mask_ne3 = mask_sequences;
            block.mask_stride[0] = columns + 2;
            block.mask_stride[1] = plane;
            block.mask_stride[2] = plane * mask_heads;
            block.scale = 0.7f;
            block.max_bias = max_bias;
            block.slope_heads = slope_heads_of(heads);
            const auto out = output<float>(in.size());
            run(half ? "softmax_mask_f16_f32" : "softmax_mask_f32_f32", block,
                {out.binding(), bind(input(in)), half ? bind(input(half_mask)) : bind(input(mask))});
            const auto seen = out.read();
            for (uint32_t row = 0; row < block.rows; ++row) {
                const uint32_t i1 = row % rows, head = row / rows % heads, sequence = row / rows / heads;
                std::vector<double> logits;
                for (uint32_t i = 0; i < columns; ++i) {
                    const size_t at = plane * (head % mask_heads + size_t{sequence} % mask_sequences * mask_heads) +
                                      i1 * (columns + 2) + i;
                    const double bias = half ? from_half(half_mask[at]) : mask[at];
                    logits.push_back(in[size_t{row} * columns + i] * double{0.7f} +
                                     slope(head, max_bias, heads) * bias);
                }
                compare(seen, size_t{row} * columns, reference(logits));
            }
        }
    }
}

TEST_P(SoftmaxTest, NanAndFullyMaskedRowsAreNan) {
    auto in = Random(4).values(4 * 40);
    in[40 + 5] = NAN;
    in[80 + 5] = INFINITY;
    in[120 + 5] = -INFINITY;
    std::vector<float> mask(4 * 40);
    for (uint32_t i = 0; i < 40; ++i) mask[i] = -INFINITY;
    const auto out = output<float>(in.size());
    run("softmax_mask_f32_f32", packed(40, 4, 1, 1), {out.binding(), bind(input(in)), bind(input(mask))});
    const auto seen = out.read();
    for (uint32_t i = 0; i < 120; ++i) ASSERT_TRUE(std::isnan(seen[i])) << i;
    compare(seen, 120, reference({in.begin() + 120, in.end()}));
    const auto none = output<float>(0);
    run("softmax_f32", packed(40, 0, 1, 1), {none.binding(), none.binding(), none.binding()});
    none.read();
}

}  // namespace
}  // namespace onebit::hrx::kernels::test
