// If this fails, a specialised kernel computes something else than the generic one, or Loom gives one that was not
// asked for.
#include <numeric>

#include "tests/hrx-loom/fixture.h"

namespace onebit::loom::test {
namespace {

std::vector<std::byte> compile(const char* kernel, Constants constants = {}) {
    return must(library()->compile(request(kernel, "gfx1151", std::move(constants)), LOOM_IMAGE)).bytes;
}

std::span<const std::byte> generic(const char* kernel) {
    return must(generic_image(*must(find_kernel(kernel)), "gfx1151")).bytes;
}

struct PolynomialNumbers {
    uint32_t count, scale, offset;
};

std::vector<uint32_t> polynomial(std::span<const std::byte> image, PolynomialNumbers numbers) {
    std::vector<uint32_t> in(256);
    std::iota(in.begin(), in.end(), 7u);
    const auto from = buffer(in), to = buffer(std::vector<uint32_t>(256, 99));
    run(image, "case_polynomial", 4, 64, {hrx::bind(to), hrx::bind(from)}, numbers, sizeof numbers);
    return must(to.read<uint32_t>(256));
}

TEST(Specialise, ArgumentsGiveWhatTheGenericImageGives) {
    for (const uint32_t count : {0u, 1u, 63u, 64u, 65u, 255u, 256u}) {
        for (const uint32_t scale : {1u, 2u, 1000u}) {
            const PolynomialNumbers numbers{count, scale, 5};
            const auto want = polynomial(generic("case_polynomial"), numbers);
            for (uint32_t i = 0; i < 256; i++) ASSERT_EQ(want[i], i < count ? (i + 7) * scale + 5 : 99u) << i;
            EXPECT_EQ(polynomial(compile("case_polynomial", {{"count", count}, {"scale", scale}}), numbers), want);
            EXPECT_EQ(polynomial(compile("case_polynomial", {{"scale", scale}}), numbers), want);
            EXPECT_EQ(polynomial(compile("case_polynomial"), numbers), want);
        }
    }
}

TEST(Specialise, AFixedArgumentIsNotReadAnyMore) {
    const auto image = compile("case_polynomial", {{"count", 3}, {"scale", 2}});
    const auto got = polynomial(image, {256, 900, 5});
    EXPECT_EQ(got[2], 9u * 2 + 5);
    EXPECT_EQ(got[3], 99u);
}

std::vector<uint32_t> windows(std::span<const std::byte> image, uint32_t terms, uint32_t workgroup) {
    std::vector<uint32_t> in(512);
    std::iota(in.begin(), in.end(), 1u);
    const auto from = buffer(in), to = buffer(std::vector<uint32_t>(512));
    run(image, "case_windows", 512 / workgroup, workgroup, {hrx::bind(to), hrx::bind(from)}, 0, 0,
        terms * workgroup * 4);
    return must(to.read<uint32_t>(512));
}

TEST(Specialise, OptionsAndMemoryOfTheLaunch) {
    const auto want = [](uint32_t terms, uint32_t workgroup) {
        std::vector<uint32_t> out(512);
        for (uint32_t i = 0; i < 512; i++) {
            const uint32_t base = i / workgroup * workgroup, mirrored = base + workgroup - 1 - (i - base);
            out[i] = (mirrored + 1) * terms * (terms + 1) / 2;
        }
        return out;
    };
    EXPECT_EQ(windows(generic("case_windows"), 2, 64), want(2, 64));
    for (const uint32_t workgroup : {32u, 64u, 256u}) {
        for (const uint32_t terms : {1u, 7u, 8u}) {
            const auto image = compile("case_windows", {{"terms", terms}, {"workgroup", workgroup}});
            EXPECT_EQ(windows(image, terms, workgroup), want(terms, workgroup)) << terms << ", " << workgroup;
        }
    }
}

TEST(Specialise, TheGenerationIsThatOfTheTarget) {
    const auto out = buffer(std::vector<uint32_t>(1));
    run(compile("case_generation"), "case_generation", 1, 32, {hrx::bind(out)}, 0, 0);
    EXPECT_EQ(must(out.read<uint32_t>(1))[0], 11u);
}

float wave_sum(const char* kernel) {
    std::vector<float> in(32);
    std::iota(in.begin(), in.end(), 1.0f);
    const auto from = buffer(in), to = buffer(std::vector<float>(1));
    run(compile(kernel), kernel, 1, 32, {hrx::bind(to), hrx::bind(from)}, 0, 0);
    return must(to.read<float>(1))[0];
}

TEST(Specialise, SumsOfAWaveAreMadeByAllLanes) { EXPECT_EQ(wave_sum("case_right_sum"), 528.0f); }

// Shows that the emulator sees LLVM's fault, so that the test above would. When LLVM has mended it, this fails, and the
// rule in specialise.h can go.
TEST(Specialise, PermlaneStillMovesIntoTheBranch) { EXPECT_NE(wave_sum("case_moved_sum"), 528.0f); }

TEST(Specialise, TheExampleOfTheGuide) {
    for (const uint32_t columns : {1u, 127u, 128u, 129u, 1000u}) {
        std::vector<float> in(columns * 2);
        for (size_t i = 0; i < in.size(); i++) in[i] = static_cast<float>(static_cast<int>(i * 37 % 101) - 50);
        const auto from = buffer(in);
        const auto scaled = [&](std::span<const std::byte> image) {
            const auto to = buffer(std::vector<float>(in.size()));
            run(image, "row_scale", 2, 128, {hrx::bind(to), hrx::bind(from)}, columns, sizeof columns);
            return must(to.read<float>(in.size()));
        };
        const auto want = scaled(generic("row_scale"));
        for (uint32_t row = 0; row < 2; row++) {
            float most = 0;
            for (uint32_t i = 0; i < columns; i++) most = std::max(most, std::abs(in[row * columns + i]));
            for (uint32_t i = 0; i < columns; i++) {
                ASSERT_NEAR(want[row * columns + i], in[row * columns + i] / most, 1e-6f) << columns << ", " << i;
            }
        }
        EXPECT_EQ(scaled(compile("row_scale", {{"columns", columns}})), want);
        EXPECT_EQ(scaled(compile("row_scale", {{"columns", columns}, {"unroll", 4}})), want);
    }
}

}  // namespace
}  // namespace onebit::loom::test
