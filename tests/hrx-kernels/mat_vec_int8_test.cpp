// If this fails, decoded tokens are wrong where vectors are quantised for speed.
#include "hrx/kernels/mat_vec_int8.h"

#include "tests/hrx-kernels/kernel_testing.h"
#include "tests/hrx-kernels/reference_quants.h"

namespace onebit::hrx::kernels::test {
namespace {

// A quantised vector as the host reads it.
struct Quantised {
    std::vector<double> values;
    std::vector<float> scales;
    std::vector<int> steps, sums;  // sums of 16
};

Quantised read_vector(const std::vector<uint8_t>& bytes, size_t at, uint32_t columns) {
    Quantised vector;
    for (uint32_t block = 0; block < columns / 32; ++block) {
        float scale = 0;
        int16_t sums[2];
        std::memcpy(&scale, bytes.data() + at + columns + size_t{block} * 8, 4);
        std::memcpy(sums, bytes.data() + at + columns + size_t{block} * 8 + 4, 4);
        vector.scales.push_back(scale);
        vector.sums.insert(vector.sums.end(), sums, sums + 2);
        for (uint32_t i = 0; i < 32; ++i) {
            const auto step = static_cast<int8_t>(bytes[at + size_t{block} * 32 + i]);
            vector.steps.push_back(step);
            vector.values.push_back(double{scale} * step);
        }
    }
    return vector;
}

class MatVecInt8Test : public KernelTest {
protected:
    std::vector<uint8_t> quantise(const std::vector<float>& in, uint32_t columns, uint32_t vectors) const {
        QuantiseInt8 block{};
        block.columns = columns;
        block.vectors = vectors;
        block.ne2 = block.ne3 = 1;
        block.in_stride[0] = columns;
        const auto out = output<uint8_t>(int8_vector_bytes(columns) * vectors);
        run("quantise_int8_f32", block, {out.binding(), bind(input(in))});
        return out.read();
    }
};
INSTANTIATE_TEST_SUITE_P(Driver, MatVecInt8Test, testing::ValuesIn(onebit::hrx::driver_names()),
                         onebit::hrx::driver_test_name);

TEST_P(MatVecInt8Test, VectorsAtEveryEdge) {
    for (const uint32_t blocks : {1u, 3u, 4u, 5u, 31u, 32u, 33u, 128u}) {
        const uint32_t columns = blocks * 32, vectors = 3;
        auto in = Random(1).values(size_t{columns} * vectors);
        std::fill_n(in.begin(), 32, 0.0f);
        const auto seen = quantise(in, columns, vectors);
        for (uint32_t v = 0; v < vectors; ++v) {
            const auto vector = read_vector(seen, v * int8_vector_bytes(columns), columns);
            for (uint32_t i = 0; i < columns; ++i) {
                const double scale = vector.scales[i / 32], want = in[size_t{v} * columns + i];
                ASSERT_TRUE(close(vector.values[i], want, tolerance("quantise_int8").value, scale)) << i;
            }
            for (uint32_t i = 0; i < columns / 16; ++i) {
                int sum = 0;
                for (uint32_t k = 0; k < 16; ++k) sum += vector.steps[16 * i + k];
                ASSERT_EQ(vector.sums[i], sum) << i;
            }
        }
    }
}

TEST_P(MatVecInt8Test, ColumnsAndRowsAtEveryEdge) {
    const double allowed = tolerance("mat_vec_int8").value;
    for (const Format& format : formats()) {
        for (const uint32_t size : edge_sizes) {
            for (const bool long_rows : {true, false}) {
                const uint32_t blocks = long_rows ? std::min(size, format.block == 32 ? 257u : 33u) : 1;
                const uint32_t rows = long_rows ? 3 : size, columns = blocks * format.block, vectors = 2;
                Random random(2);
                const auto table = random_blocks(format, size_t{blocks} * rows, random);
                const auto in = quantise(random.values(size_t{columns} * vectors), columns, vectors);
                MatVecInt8 block{};
                block.columns = columns;
                block.rows = rows;
                block.vectors = vectors;
                block.weight_ne2 = block.weight_ne3 = block.in_ne2 = block.in_ne3 = 1;
                block.weight_stride[0] = blocks;
                block.out_stride[0] = rows;
                const auto out = output<float>(size_t{rows} * vectors);
                run("mat_vec_int8_" + format.name, block, {out.binding(), bind(input(table)), bind(input(in))});
                const auto seen = out.read();
                const auto weights = decode(format, table);
                for (uint32_t v = 0; v < vectors; ++v) {
                    const auto vector = read_vector(in, v * int8_vector_bytes(columns), columns);
                    for (uint32_t r = 0; r < rows; ++r) {
                        double sum = 0, scale = 0;
                        for (uint32_t k = 0; k < columns; ++k) {
                            const Weight& weight = weights[size_t{r} * columns + k];
                            sum += weight.value * vector.values[k];
                            scale += weight.magnitude * std::fabs(vector.values[k]);
                        }
                        ASSERT_TRUE(close(seen[size_t{v} * rows + r], sum, allowed, scale))
                            << format.name << " row " << r << " vector " << v << " columns " << columns;
                    }
                }
            }
        }
    }
}

// Two planes of weights for four planes of vectors, quantised from a tensor with gaps.
TEST_P(MatVecInt8Test, PlanesShareWeights) {
    const Format& q8 = format("q8_0");
    constexpr uint32_t columns = 64, rows = 5, vectors = 2, planes = 4;
    QuantiseInt8 quantise{};
    quantise.columns = columns;
    quantise.vectors = vectors;
    quantise.ne2 = planes;
    quantise.ne3 = 1;
    quantise.in_stride[0] = 70;
    quantise.in_stride[1] = 150;
    const auto in = Random(3).values(600);
    const auto vector_bytes = output<uint8_t>(int8_vector_bytes(columns) * vectors * planes);
    run("quantise_int8_f32", quantise, {vector_bytes.binding(), bind(input(in))});
    const auto quantised = vector_bytes.read();
    MatVecInt8 block{};
    block.columns = columns;
    block.rows = rows;
    block.vectors = vectors;
    block.weight_ne2 = 2;
    block.weight_ne3 = block.in_ne3 = 1;
    block.in_ne2 = planes;
    block.weight_stride[0] = 3;
    block.weight_stride[1] = 16;
    block.out_stride[0] = 6;
    block.out_stride[1] = 13;
    Random random(4);
    const auto table = random_blocks(q8, 32, random);
    const auto weights = decode(q8, table);
    const auto out = output<float>(13 * planes);
    run("mat_vec_int8_q8_0", block, {out.binding(), bind(input(table)), bind(input(quantised))});
    const auto seen = out.read();
    for (uint32_t i = 0; i < planes * vectors * rows; ++i) {
        const uint32_t plane = i / (vectors * rows), v = i / rows % vectors, r = i % rows;
        const auto vector = read_vector(quantised, (plane * vectors + v) * int8_vector_bytes(columns), columns);
        double sum = 0, scale = 0;
        for (uint32_t k = 0; k < columns; ++k) {
            const Weight& weight = weights[(r * 3 + plane / 2 * 16) * 32 + k];
            ASSERT_TRUE(close(vector.values[k], in[v * 70 + plane * 150 + k], 0.51, vector.scales[k / 32])) << k;
            sum += weight.value * vector.values[k];
            scale += weight.magnitude * std::fabs(vector.values[k]);
        }
        ASSERT_TRUE(close(seen[plane * 13 + v * 6 + r], sum, tolerance("mat_vec_int8").value, scale)) << i;
    }
}

TEST_P(MatVecInt8Test, NoRowsAndNoVectors) {
    const auto none = output<uint8_t>(0);
    MatVecInt8 block{};
    block.columns = 256;
    block.vectors = block.weight_ne2 = block.weight_ne3 = block.in_ne2 = block.in_ne3 = 1;
    run("mat_vec_int8_q4_k", block, {none.binding(), none.binding(), none.binding()});
    QuantiseInt8 quantise{};
    quantise.columns = 32;
    quantise.ne2 = quantise.ne3 = 1;
    run("quantise_int8_f32", quantise, {none.binding(), none.binding()});
    none.read();
}

}  // namespace
}  // namespace onebit::hrx::kernels::test
