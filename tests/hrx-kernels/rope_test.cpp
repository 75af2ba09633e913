// If this fails, positions are encoded wrongly: models lose the order of words, or only of those far away.
#include "hrx/kernels/rope.h"
#include "tests/hrx-kernels/kernel_testing.h"

namespace onebit::hrx::kernels::test {
namespace {

Rope packed(uint32_t head_size, uint32_t heads, uint32_t tokens, uint32_t sequences) {
    Rope block{};
    block.head_size = block.rotated = head_size;
    block.heads = heads;
    block.tokens = tokens;
    block.sequences = sequences;
    block.in_stride[0] = block.out_stride[0] = head_size;
    block.in_stride[1] = block.out_stride[1] = head_size * heads;
    block.in_stride[2] = block.out_stride[2] = head_size * heads * tokens;
    block.base_log2 = static_cast<float>(std::log2(10000.0));
    block.frequency_scale = block.magnitude = 1;
    return block;
}

struct Angle {
    double value, bare;
};

Angle angle_of(const Rope& block, uint32_t pair, double position, const std::vector<float>& factors) {
    double bare = position * std::exp2(-double{block.base_log2} * 2 * pair / block.rotated);
    if (block.use_factors != 0) bare /= factors[pair];
    const double scaled = bare * block.frequency_scale;
    const double width = std::fmax(0.001, block.correction_high - block.correction_low);
    const double ramp = 1 - std::fmin(1.0, std::fmax(0.0, (pair - block.correction_low) / width));
    const double mix = ramp * block.extension;
    return {scaled * (1 - mix) + bare * mix, bare};
}

// The whole tensor, in packed form.
void compare(const Rope& block, bool neox, const std::vector<double>& in, const std::vector<double>& seen,
             const std::vector<int32_t>& positions, const std::vector<float>& factors, double rounding) {
    const double allowed = tolerance("rope f32").value;
    const uint32_t half = block.rotated / 2;
    for (size_t row = 0; row < in.size() / block.head_size; ++row) {
        const size_t at = row * block.head_size;
        const int32_t position = positions[row / block.heads % block.tokens];
        for (uint32_t pair = 0; pair < half; ++pair) {
            const size_t low = at + (neox ? pair : 2 * pair), high = at + (neox ? pair + half : 2 * pair + 1);
            const Angle angle = angle_of(block, pair, position, factors);
            const double s = std::sin(angle.value) * block.magnitude, c = std::cos(angle.value) * block.magnitude;
            const double length = std::hypot(in[low], in[high]) * block.magnitude;
            const double bound = allowed * (4 + std::fabs(angle.bare)) + rounding;
            ASSERT_TRUE(close(seen[low], in[low] * c - in[high] * s, bound, length))
                << "pair " << pair << " row " << row;
            ASSERT_TRUE(close(seen[high], in[low] * s + in[high] * c, bound, length)) << "pair " << pair;
        }
        for (uint32_t i = block.rotated; i < block.head_size; ++i) ASSERT_EQ(seen[at + i], in[at + i]) << i;
    }
}

struct RopeRun {
    Rope block;
    std::vector<int32_t> positions;
    std::vector<float> factors = {1};
};

class RopeTest : public KernelTest {
protected:
    // Both ways of pairing.
    void check(const RopeRun& work) const {
        const Rope& rope = work.block;
        const auto in = Random(1).values(size_t{rope.head_size} * rope.heads * rope.tokens * rope.sequences);
        const Buffer positions = input(work.positions), factors = input(work.factors);
        for (const bool neox : {false, true}) {
            const auto out = output<float>(in.size());
            run(neox ? "rope_neox_f32" : "rope_normal_f32", rope,
                {out.binding(), bind(input(in)), bind(positions), bind(factors)});
            const auto seen = out.read();
            compare(rope, neox, {in.begin(), in.end()}, {seen.begin(), seen.end()}, work.positions, work.factors, 0);
        }
    }
};
INSTANTIATE_TEST_SUITE_P(Driver, RopeTest, testing::ValuesIn(onebit::hrx::driver_names()),
                         onebit::hrx::driver_test_name);

std::vector<int32_t> counted(uint32_t count, int32_t first) {
    std::vector<int32_t> positions(count);
    for (uint32_t i = 0; i < count; ++i) positions[i] = first + static_cast<int32_t>(i);
    return positions;
}

TEST_P(RopeTest, SizesAtEveryEdge) {
    for (const uint32_t size : edge_sizes) {
        check({packed(2 * size, 2, 1, 1), {5}});
        check({packed(4, size, 2, 1), {0, 77}});
        check({packed(4, 1, size, 1), counted(size, 0)});
        check({packed(4, 1, 1, size), {3}});
    }
}

TEST_P(RopeTest, LargePositionsAndBases) {
    RopeRun work{packed(128, 1, 6, 1), {0, 1, -1, 4095, 131071, 1048575}};
    check(work);
    work.block.base_log2 = static_cast<float>(std::log2(5e5));
    check(work);
}

TEST_P(RopeTest, PartOfAHeadIsRotated) {
    Rope block = packed(80, 3, 2, 1);
    block.rotated = 32;
    check({block, {9, 10}});
    block.rotated = 0;
    check({block, {9, 10}});
}

TEST_P(RopeTest, FactorsAndExtension) {
    Rope block = packed(64, 2, 3, 1);
    block.use_factors = 1;
    check({block, {0, 100, 5000}, Random(5).values(32, 1, 8)});
    block.use_factors = 0;
    block.frequency_scale = 0.25f;
    block.extension = 1;
    block.magnitude = 1.138629f;
    block.correction_low = 9;
    block.correction_high = 21;
    check({block, {0, 100, 5000}});
    block.correction_low = block.correction_high = 12;
    check({block, {0, 100, 5000}});
}

TEST_P(RopeTest, HalvesWithGapsInPlace) {
    Rope block = packed(16, 3, 5, 2);
    const uint32_t stride[3] = {20, 64, 330};
    std::copy(stride, stride + 3, block.in_stride);
    std::copy(stride, stride + 3, block.out_stride);
    const auto in = to_halves(Random(6).values(660));
    const auto positions = counted(5, 3);
    for (const bool neox : {false, true}) {
        const auto out = in_place(in);
        run(neox ? "rope_neox_f16" : "rope_normal_f16", block,
            {out.binding(), out.binding(), bind(input(positions)), out.binding()});
        auto rest = out.read();
        std::vector<double> before, after;
        for (uint32_t row = 0; row < 30; ++row) {
            for (uint32_t i = 0; i < 16; ++i) {
                const size_t at = row % 3 * 20 + row / 3 % 5 * 64 + row / 15 * 330 + i;
                before.push_back(from_half(in[at]));
                after.push_back(from_half(rest[at]));
                rest[at] = in[at];
            }
        }
        EXPECT_EQ(rest, in);
        compare(block, neox, before, after, positions, {}, tolerance("rope f16").value);
    }
}

TEST_P(RopeTest, NanStaysInItsPairAndNoTokens) {
    auto in = Random(7).values(16);
    in[3] = NAN;
    const auto out = output<float>(16);
    const Buffer position = input(std::vector<int32_t>{2});
    run("rope_normal_f32", packed(16, 1, 1, 1), {out.binding(), bind(input(in)), bind(position), bind(position)});
    const auto seen = out.read();
    for (uint32_t i = 0; i < 16; ++i) ASSERT_EQ(std::isnan(seen[i]), i == 2 || i == 3) << i;
    const auto none = output<float>(0);
    run("rope_normal_f32", packed(16, 1, 0, 1), {none.binding(), none.binding(), bind(position), bind(position)});
    none.read();
}

}  // namespace
}  // namespace onebit::hrx::kernels::test
