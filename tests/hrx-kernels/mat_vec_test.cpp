// If this fails, every decoded token is wrong: these kernels are the layers of a model for one token.
#include "hrx/kernels/mat_vec.h"
#include "tests/hrx-kernels/products.h"

namespace onebit::hrx::kernels::test {
namespace {

ONEBIT_KERNEL_TEST(MatVecTest);

void compare(const std::vector<Weight>& weights, const std::vector<float>& in, const std::vector<float>& seen,
             uint32_t columns, uint32_t rows, uint32_t vectors, const std::string& name) {
    expect_product(weights, in, seen, columns, rows, vectors, tolerance("mat_vec"), name);
}

TEST_P(MatVecTest, PlainAtEveryEdge) {
    for (const uint32_t size : edge_sizes) {
        for (int dimension = 0; dimension < 3; ++dimension) {
            const uint32_t columns = dimension == 0 ? size : 40, rows = dimension == 1 ? size : 5;
            const uint32_t vectors = dimension == 2 ? size : 2;
            const auto values = Random(1).values(size_t{columns} * rows);
            const auto in = Random(2).values(size_t{columns} * vectors);
            for (const std::string type : {"f32", "f16", "bf16"}) {
                std::vector<Weight> weights;
                std::vector<uint16_t> shorts;
                for (const float value : values) {
                    shorts.push_back(type == "f16" ? to_half(value) : to_bfloat(value));
                    const double weight = type == "f32"   ? value
                                          : type == "f16" ? from_half(shorts.back())
                                                          : from_bfloat(shorts.back());
                    weights.push_back({weight, std::fabs(weight)});
                }
                const auto out = output<float>(size_t{rows} * vectors);
                run("mat_vec_" + type, packed<MatVec>(columns, columns, rows, vectors),
                    {out.binding(), type == "f32" ? bind(input(values)) : bind(input(shorts)), bind(input(in))});
                compare(weights, in, out.read(), columns, rows, vectors, type);
            }
        }
    }
}

TEST_P(MatVecTest, QuantisedAtEveryEdge) {
    for (const Format& format : formats()) {
        const uint32_t most = format.block == 32 ? 257 : 33;
        for (const uint32_t size : edge_sizes) {
            for (int dimension = 0; dimension < 3; ++dimension) {
                const uint32_t blocks = dimension == 0 ? std::min(size, most) : 1, rows = dimension == 1 ? size : 3;
                const uint32_t columns = blocks * format.block, vectors = dimension == 2 ? size : 1;
                Random random(3);
                const auto table = random_blocks(format, size_t{blocks} * rows, random);
                const auto in = random.values(size_t{columns} * vectors);
                const auto out = output<float>(size_t{rows} * vectors);
                run("mat_vec_" + format.name, packed<MatVec>(columns, blocks, rows, vectors),
                    {out.binding(), bind(input(table)), bind(input(in))});
                compare(decode(format, table), in, out.read(), columns, rows, vectors, format.name);
            }
        }
    }
}

// Two planes of weights for four planes of vectors, with gaps everywhere.
TEST_P(MatVecTest, PlanesShareWeights) {
    const Format& q8 = format("q8_0");
    MatVec block = packed<MatVec>(64, 3, 5, 2);
    block.weight_ne2 = 2;
    block.in_ne2 = 4;
    block.in_ne3 = 2;
    const uint32_t weight_stride[3] = {3, 16, 0}, in_stride[3] = {72, 148, 600}, out_stride[3] = {6, 13, 60};
    std::copy(weight_stride, weight_stride + 3, block.weight_stride);
    std::copy(in_stride, in_stride + 3, block.in_stride);
    std::copy(out_stride, out_stride + 3, block.out_stride);
    Random random(4);
    const auto table = random_blocks(q8, 32, random);
    const auto weights = decode(q8, table);
    const auto in = random.values(1200);
    const auto out = output<float>(120);
    run("mat_vec_q8_0", block, {out.binding(), bind(input(table)), bind(input(in))});
    const auto seen = out.read();
    std::vector<bool> written(120);
    for (uint32_t plane = 0; plane < 8; ++plane) {
        for (uint32_t v = 0; v < 2; ++v) {
            for (uint32_t r = 0; r < 5; ++r) {
                double sum = 0, scale = 0;
                for (uint32_t k = 0; k < 64; ++k) {
                    const Weight& weight = weights[(r * 3 + plane % 4 / 2 * 16) * 32 + k];
                    const double x = in[v * 72 + plane % 4 * 148 + plane / 4 * 600 + k];
                    sum += weight.value * x;
                    scale += weight.magnitude * std::fabs(x);
                }
                const size_t at = v * 6 + plane % 4 * 13 + plane / 4 * 60 + r;
                written[at] = true;
                ASSERT_TRUE(close(seen[at], sum, tolerance("mat_vec").value, scale)) << plane << v << r;
            }
        }
    }
    for (size_t i = 0; i < 120; ++i) {
        ASSERT_TRUE(written[i] || std::memcmp(&seen[i], "\xa5\xa5\xa5\xa5", 4) == 0) << i;
    }
}

// Shares that are no powers of two, and planes whose number the quotients must not round up.
TEST_P(MatVecTest, ManyPlanesOfOddShares) {
    struct Shape {
        uint32_t weight_ne2, in_ne2, weight_ne3, in_ne3;
    };
    for (const Shape& s : {Shape{3, 21, 5, 15}, Shape{1, 49, 7, 7}, Shape{13, 13, 1, 11}, Shape{1, 1, 3, 255}}) {
        MatVec block = packed<MatVec>(32, 32, 1, 1);
        block.weight_ne2 = s.weight_ne2;
        block.weight_ne3 = s.weight_ne3;
        block.in_ne2 = s.in_ne2;
        block.in_ne3 = s.in_ne3;
        block.weight_stride[1] = block.in_stride[1] = 32;
        block.weight_stride[2] = 32 * s.weight_ne2;
        block.in_stride[2] = 32 * s.in_ne2;
        block.out_stride[1] = 1;
        block.out_stride[2] = s.in_ne2;
        const uint32_t planes = s.in_ne2 * s.in_ne3;
        const auto weights = Random(21).values(size_t{32} * s.weight_ne2 * s.weight_ne3);
        const auto in = Random(22).values(size_t{32} * planes);
        const auto out = output<float>(planes);
        run("mat_vec_f32", block, {out.binding(), bind(input(weights)), bind(input(in))});
        const auto seen = out.read();
        for (uint32_t plane = 0; plane < planes; ++plane) {
            const uint32_t w2 = plane % s.in_ne2 / (s.in_ne2 / s.weight_ne2);
            const uint32_t w3 = plane / s.in_ne2 / (s.in_ne3 / s.weight_ne3);
            double sum = 0, scale = 0;
            for (uint32_t k = 0; k < 32; ++k) {
                const double weight = weights[(size_t{w3} * s.weight_ne2 + w2) * 32 + k], x = in[plane * 32 + k];
                sum += weight * x;
                scale += std::fabs(weight * x);
            }
            ASSERT_TRUE(close(seen[plane], sum, tolerance("mat_vec").value, scale)) << plane << " of " << planes;
        }
    }
}

TEST_P(MatVecTest, NanAndInfinity) {
    auto weights = Random(5).values(6 * 64);
    auto in = Random(6).values(64);
    weights[64 + 9] = NAN;
    weights[128 + 9] = INFINITY;
    in[9] = 1;
    const auto out = output<float>(6);
    run("mat_vec_f16", packed<MatVec>(64, 64, 6, 1), {out.binding(), bind(input(to_halves(weights))), bind(input(in))});
    const auto seen = out.read();
    EXPECT_TRUE(std::isnan(seen[1]));
    EXPECT_EQ(seen[2], INFINITY);
    for (const uint32_t row : {0u, 3u, 4u, 5u}) EXPECT_TRUE(std::isfinite(seen[row])) << row;
}

TEST_P(MatVecTest, NoRowsAndNoVectors) {
    const auto none = output<float>(0);
    run("mat_vec_f16", packed<MatVec>(64, 64, 0, 1), {none.binding(), none.binding(), none.binding()});
    run("mat_vec_q4_k", packed<MatVec>(256, 1, 4, 0), {none.binding(), none.binding(), none.binding()});
    none.read();
}

}  // namespace
}  // namespace onebit::hrx::kernels::test
