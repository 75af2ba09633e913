// If this fails, prompts are read wrongly: these kernels are the layers of a model for many tokens.
#include "hrx/kernels/mat_mul.h"
#include "tests/hrx-kernels/products.h"

namespace onebit::hrx::kernels::test {
namespace {

// Numbers that f16 holds exactly.
std::vector<float> exact_values(size_t count, uint32_t seed) {
    auto values = Random(seed).values(count);
    for (float& value : values) value = static_cast<float>(from_half(to_half(value)));
    return values;
}

std::vector<Weight> as_weights(const std::vector<float>& values) {
    std::vector<Weight> weights;
    for (const float value : values) weights.push_back({value, std::fabs(value)});
    return weights;
}

class MatMulTest : public KernelTest {
protected:
    // Kernels of one type: the narrow and the wide tile.
    void check(const std::string& type, const MatMul& block, const Buffer& weights, const std::vector<Weight>& values,
               const std::vector<float>& in, const Tolerance& allowed) const {
        for (const bool wide : {false, true}) {
            const auto out = output<float>(size_t{block.rows} * block.vectors);
            run((wide ? "mat_mul_wide_" : "mat_mul_") + type, launch(block, wide ? mat_mul_wide_tile : mat_mul_tile),
                constants_of(block), {out.binding(), bind(weights), bind(input(in))});
            compare(block, out.read(), values, in, allowed);
        }
    }
    static void compare(const MatMul& block, const std::vector<float>& seen, const std::vector<Weight>& weights,
                        const std::vector<float>& in, const Tolerance& allowed) {
        expect_product(weights, in, seen, block.columns, block.rows, block.vectors, allowed, "");
    }
};
INSTANTIATE_TEST_SUITE_P(Driver, MatMulTest, testing::ValuesIn(onebit::hrx::driver_names()),
                         onebit::hrx::driver_test_name);

TEST_P(MatMulTest, HalvesAtEveryEdge) {
    for (const uint32_t size : edge_sizes) {
        for (int dimension = 0; dimension < 3; ++dimension) {
            const uint32_t columns = dimension == 0 ? size : 48;
            const uint32_t rows = dimension == 1 ? size : 17, vectors = dimension == 2 ? size : 18;
            const auto values = exact_values(size_t{columns} * rows, 1),
                       in = exact_values(size_t{columns} * vectors, 2);
            check("f16", packed<MatMul>(columns, columns, rows, vectors), input(to_halves(values)), as_weights(values),
                  in, tolerance("mat_mul, operands exact in f16"));
        }
    }
}

TEST_P(MatMulTest, VectorsAreRoundedToHalves) {
    const auto values = exact_values(100 * 20, 3), in = Random(4).values(100 * 33);
    check("f16", packed<MatMul>(100, 100, 20, 33), input(to_halves(values)), as_weights(values), in,
          tolerance("mat_mul"));
}

TEST_P(MatMulTest, QuantisedAtEveryEdge) {
    for (const Format& format : formats()) {
        for (const uint32_t size : edge_sizes) {
            for (int dimension = 0; dimension < 3; ++dimension) {
                // the columns end at 128 blocks of 32 or 16 of 256, which is 4096
                const uint32_t blocks = dimension == 0 ? std::min(size, 4096 / format.block) : 1;
                const uint32_t rows = dimension == 1 ? size : 5, vectors = dimension == 2 ? size : 3;
                const uint32_t columns = blocks * format.block;
                Random random(5);
                const auto table = random_blocks(format, size_t{blocks} * rows, random);
                const auto in = exact_values(size_t{columns} * vectors, 6);
                check(format.name, packed<MatMul>(columns, blocks, rows, vectors), input(table), decode(format, table),
                      in, tolerance("mat_mul"));
            }
        }
    }
}

TEST_P(MatMulTest, BothOperandsOfHalves) {
    const std::string architecture = must(device().info()).architecture;
    const uint32_t lds = mat_mul_f16_f16_lds(architecture.starts_with("sm_"));
    struct Size {
        uint32_t columns, rows, vectors;
    };
    std::vector<Size> sizes = {{72, 300, 150}, {64, 256, 128}, {200, 1, 1}, {8, 257, 129}, {33, 40, 30}};
    for (const uint32_t size : edge_sizes) {
        sizes.push_back({size, 9, 10});
        sizes.push_back({40, size, 10});
        sizes.push_back({40, 9, size});
    }
    for (const Size& size : sizes) {
        const MatMul block = packed<MatMul>(size.columns, size.columns, size.rows, size.vectors);
        const auto values = exact_values(size_t{size.columns} * size.rows, 7);
        const auto in = exact_values(size_t{size.columns} * size.vectors, 8);
        const auto out = output<float>(size_t{size.rows} * size.vectors);
        run("mat_mul_f16_f16", launch(block, mat_mul_f16_f16_tile), constants_of(block),
            {out.binding(), bind(input(to_halves(values))), bind(input(to_halves(in)))}, lds);
        compare(block, out.read(), as_weights(values), in, tolerance("mat_mul, operands exact in f16"));
    }
}

// Two planes of weights for four planes of vectors, with gaps everywhere.
TEST_P(MatMulTest, PlanesShareWeights) {
    MatMul block = packed<MatMul>(20, 24, 6, 5);
    block.weight_ne2 = 2;
    block.in_ne2 = 4;
    block.in_ne3 = 2;
    const uint32_t weight_stride[3] = {24, 160, 0}, in_stride[3] = {28, 148, 600}, out_stride[3] = {7, 36, 150};
    std::copy(weight_stride, weight_stride + 3, block.weight_stride);
    std::copy(in_stride, in_stride + 3, block.in_stride);
    std::copy(out_stride, out_stride + 3, block.out_stride);
    const auto values = exact_values(320, 9), in = exact_values(1200, 10);
    for (const bool wide : {false, true}) {
        const auto out = output<float>(300);
        run(wide ? "mat_mul_wide_f16" : "mat_mul_f16", launch(block, wide ? mat_mul_wide_tile : mat_mul_tile),
            constants_of(block), {out.binding(), bind(input(to_halves(values))), bind(input(in))});
        const auto seen = out.read();
        std::vector<bool> written(300);
        for (uint32_t i = 0; i < 8 * 5 * 6; ++i) {
            const uint32_t plane = i / 30, v = i / 6 % 5, r = i % 6;
            double sum = 0, scale = 0;
            for (uint32_t k = 0; k < 20; ++k) {
                const double weight = values[r * 24 + plane % 4 / 2 * 160 + k];
                const double x = in[v * 28 + plane % 4 * 148 + plane / 4 * 600 + k];
                sum += weight * x;
                scale += std::fabs(weight * x);
            }
            const size_t at = v * 7 + plane % 4 * 36 + plane / 4 * 150 + r;
            written[at] = true;
            ASSERT_TRUE(close(seen[at], sum, tolerance("mat_mul, operands exact in f16").value, scale))
                << plane << v << r;
        }
        for (size_t i = 0; i < 300; ++i) {
            ASSERT_TRUE(written[i] || std::memcmp(&seen[i], "\xa5\xa5\xa5\xa5", 4) == 0) << i;
        }
    }
}

TEST_P(MatMulTest, NanAndInfinityStayInTheirVector) {
    const auto values = exact_values(40 * 64, 11);
    auto in = exact_values(64 * 20, 12);
    in[64 * 3 + 5] = NAN;
    in[64 * 7 + 5] = 1e6f;  // infinity as an f16
    const auto out = output<float>(40 * 20);
    const MatMul block = packed<MatMul>(64, 64, 40, 20);
    run("mat_mul_f16", block, {out.binding(), bind(input(to_halves(values))), bind(input(in))});
    const auto seen = out.read();
    for (uint32_t i = 0; i < seen.size(); ++i) {
        const uint32_t vector = i / 40;
        ASSERT_EQ(std::isnan(seen[i]), vector == 3) << i;
        ASSERT_EQ(std::isinf(seen[i]), vector == 7) << i;
    }
}

TEST_P(MatMulTest, NoRowsAndNoVectors) {
    const auto none = output<float>(0);
    run("mat_mul_f16", packed<MatMul>(64, 64, 0, 4), {none.binding(), none.binding(), none.binding()});
    run("mat_mul_q4_k", packed<MatMul>(256, 1, 4, 0), {none.binding(), none.binding(), none.binding()});
    none.read();
}

}  // namespace
}  // namespace onebit::hrx::kernels::test
