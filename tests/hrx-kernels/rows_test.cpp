// If this fails, tokens get the wrong embedding, or keys and values land in the wrong place of the cache.
#include "hrx/kernels/rows.h"
#include "tests/hrx-kernels/kernel_testing.h"
#include "tests/hrx-kernels/reference_quants.h"

namespace onebit::hrx::kernels::test {
namespace {

ONEBIT_KERNEL_TEST(RowsTest);

GetRows get_block(uint32_t columns, uint32_t units, uint32_t table_rows, uint32_t picked) {
    GetRows block{};
    block.columns = columns;
    block.table_rows = table_rows;
    block.picked = picked;
    block.ne2 = block.ne3 = 1;
    block.out_stride[0] = columns;
    block.table_stride[0] = units;
    block.index_stride[0] = 1;
    return block;
}

std::vector<int32_t> picks(uint32_t count, uint32_t rows, uint32_t seed) {
    Random random(seed);
    std::vector<int32_t> list(count);
    for (int32_t& index : list) index = static_cast<int32_t>(random.below(rows));
    return list;
}

TEST_P(RowsTest, GetPlainAtEveryEdge) {
    for (const uint32_t size : edge_sizes) {
        for (int dimension = 0; dimension < 3; ++dimension) {
            const uint32_t columns = dimension == 0 ? size : 5, rows = dimension == 1 ? size : 4;
            const uint32_t picked = dimension == 2 ? size : 3;
            const auto table = Random(1).values(size_t{columns} * rows);
            const auto halves = to_halves(table);
            std::vector<uint16_t> brains;
            for (const float value : table) brains.push_back(to_bfloat(value));
            const auto indices = picks(picked, rows, 2);
            const Buffer index_buffer = input(indices);
            for (const std::string type : {"f32", "f16", "bf16"}) {
                const auto out = output<float>(size_t{columns} * picked);
                const Buffer in = type == "f32" ? input(table) : input(type == "f16" ? halves : brains);
                run("get_rows_" + type, get_block(columns, columns, rows, picked),
                    {out.binding(), bind(in), bind(index_buffer)});
                const auto seen = out.read();
                for (size_t i = 0; i < seen.size(); ++i) {
                    const size_t at = static_cast<size_t>(indices[i / columns]) * columns + i % columns;
                    const double want = type == "f32"   ? table[at]
                                        : type == "f16" ? from_half(halves[at])
                                                        : from_bfloat(brains[at]);
                    ASSERT_EQ(seen[i], want) << type << i;
                }
            }
        }
    }
}

TEST_P(RowsTest, GetQuantisedAtEveryEdge) {
    const double allowed = tolerance("get_rows quantised").value;
    for (const Format& format : formats()) {
        for (const uint32_t size : edge_sizes) {
            for (int dimension = 0; dimension < 3; ++dimension) {
                const uint32_t blocks = dimension == 0 ? std::min(size, 257u) : 2;
                const uint32_t rows = dimension == 1 ? size : 3, count = dimension == 2 ? size : 4;
                const uint32_t columns = blocks * format.block;
                Random random(3);
                const auto table = random_blocks(format, size_t{blocks} * rows, random);
                const auto weights = decode(format, table);
                const auto indices = picks(count, rows, 4);
                const auto out = output<float>(size_t{columns} * count);
                run("get_rows_" + format.name, get_block(columns, blocks, rows, count),
                    {out.binding(), bind(input(table)), bind(input(indices))});
                const auto seen = out.read();
                for (size_t i = 0; i < seen.size(); ++i) {
                    const Weight& want = weights[static_cast<size_t>(indices[i / columns]) * columns + i % columns];
                    ASSERT_TRUE(close(seen[i], want.value, allowed, want.magnitude)) << format.name << " " << i;
                }
            }
        }
    }
}

TEST_P(RowsTest, GetFromPlanesAndWildIndices) {
    GetRows block = get_block(6, 6, 4, 3);
    block.ne2 = 2;
    block.ne3 = 3;
    const uint32_t out_stride[3] = {8, 24, 48}, table_stride[3] = {6, 24, 48}, index_stride[3] = {1, 4, 8};
    std::copy(out_stride, out_stride + 3, block.out_stride);
    std::copy(table_stride, table_stride + 3, block.table_stride);
    std::copy(index_stride, index_stride + 3, block.index_stride);
    const auto table = Random(4).values(144);
    auto indices = picks(24, 4, 5);
    indices[0] = -1;
    indices[5] = 4;
    indices[9] = 0x7fffffff;
    indices[10] = -0x7fffffff;
    const auto out = output<float>(144);
    run("get_rows_f32", block, {out.binding(), bind(input(table)), bind(input(indices))});
    const auto seen = out.read();
    for (uint32_t i = 0; i < 144; ++i) {
        const uint32_t column = i % 8, i0 = i / 8 % 3, i2 = i / 24 % 2, i3 = i / 48;
        if (column >= 6) {
            ASSERT_EQ(std::memcmp(&seen[i], "\xa5\xa5\xa5\xa5", 4), 0) << i;
            continue;
        }
        const int32_t index = indices[i0 + i2 * 4 + i3 * 8];
        if (index < 0 || index >= 4) {
            ASSERT_TRUE(std::isnan(seen[i])) << i;
        } else {
            ASSERT_EQ(seen[i], table[static_cast<size_t>(index) * 6 + i2 * 24 + i3 * 48 + column]) << i;
        }
    }
}

SetRows set_block(uint32_t columns, uint32_t units, uint32_t out_rows, uint32_t given) {
    SetRows block{};
    block.columns = columns;
    block.out_rows = out_rows;
    block.given = given;
    block.ne2 = block.ne3 = block.index_ne1 = block.index_ne2 = 1;
    block.out_stride[0] = units;
    block.in_stride[0] = columns;
    block.index_stride[0] = 1;
    return block;
}

// Distinct rows, so that the result is defined.
std::vector<int64_t> places(uint32_t count, uint32_t rows) {
    std::vector<int64_t> list(count);
    for (uint32_t i = 0; i < count; ++i) list[i] = (i * 7 + 3) % rows;
    return list;
}

template <typename T>
void compare_rows(const std::vector<T>& seen, const std::vector<T>& want, uint32_t columns,
                  const std::vector<int64_t>& indices) {
    std::vector<T> expected(seen.size(), Output<T>::untouched());
    for (size_t i = 0; i < indices.size(); ++i) {
        if (indices[i] < 0 || static_cast<size_t>(indices[i]) * columns >= seen.size()) continue;
        std::copy_n(want.begin() + static_cast<std::ptrdiff_t>(i * columns), columns,
                    expected.begin() + static_cast<std::ptrdiff_t>(indices[i]) * columns);
    }
    ASSERT_EQ(std::memcmp(seen.data(), expected.data(), seen.size() * sizeof(T)), 0) << columns << " columns";
}

TEST_P(RowsTest, SetPlainAtEveryEdge) {
    for (const uint32_t size : edge_sizes) {
        for (const bool wide : {true, false}) {
            const uint32_t columns = wide ? size : 5, given = wide ? 2 : size, rows = given == 4096 ? 4099 : given + 4;
            const auto in = Random(6).values(size_t{columns} * given);
            // 7 and the number of rows must have no common factor for distinct places
            const auto indices = places(given, rows % 7 == 0 ? rows - 1 : rows);
            const SetRows block = set_block(columns, columns, rows, given);
            const Buffer from = input(in), index_buffer = input(indices);
            const auto floats = output<float>(size_t{columns} * rows);
            run("set_rows_f32", block, {floats.binding(), bind(from), bind(index_buffer)});
            compare_rows(floats.read(), in, columns, indices);
            const auto halves = output<uint16_t>(size_t{columns} * rows);
            run("set_rows_f16", block, {halves.binding(), bind(from), bind(index_buffer)});
            compare_rows(halves.read(), to_halves(in), columns, indices);
            std::vector<uint16_t> want;
            for (const float value : in) want.push_back(to_bfloat(value));
            const auto brains = output<uint16_t>(size_t{columns} * rows);
            run("set_rows_bf16", block, {brains.binding(), bind(from), bind(index_buffer)});
            compare_rows(brains.read(), want, columns, indices);
        }
    }
}

TEST_P(RowsTest, SetQ8) {
    const Format& q8 = format("q8_0");
    for (const uint32_t blocks : {1u, 7u, 8u, 9u, 33u}) {
        const uint32_t columns = blocks * 32;
        auto in = Random(7).values(size_t{columns} * 2);
        std::fill_n(in.begin(), 32, 0.0f);
        const auto out = output<uint8_t>(size_t{blocks} * 34 * 3);
        run("set_rows_q8_0", set_block(columns, blocks, 3, 2),
            {out.binding(), bind(input(in)), bind(input(std::vector<int64_t>{2, 0}))});
        const auto seen = out.read();
        for (size_t i = 0; i < size_t{blocks} * 34; ++i) ASSERT_EQ(seen[size_t{blocks} * 34 + i], 0xa5);
        for (size_t row = 0; row < 2; ++row) {
            const size_t at = row == 0 ? 2 : 0;
            const auto weights = decode(q8, {seen.begin() + static_cast<std::ptrdiff_t>(at * blocks * 34),
                                             seen.begin() + static_cast<std::ptrdiff_t>((at + 1) * blocks * 34)});
            for (uint32_t i = 0; i < columns; ++i) {
                double largest = 0;
                for (uint32_t k = 0; k < 32; ++k) {
                    largest = std::fmax(largest, std::fabs(in[row * columns + i / 32 * 32 + k]));
                }
                // the scale is an f16, so that the largest weight is off by as much again
                const double step = largest / 127;
                ASSERT_TRUE(close(weights[i].value, in[row * columns + i], tolerance("set_rows q8_0").value,
                                  step + largest * 0x1p-10))
                    << i;
            }
        }
    }
}

TEST_P(RowsTest, SetIntoPlanesAndWildIndices) {
    SetRows block = set_block(4, 4, 5, 4);
    block.ne2 = 2;
    block.out_stride[1] = 20;
    block.in_stride[1] = 16;
    const auto in = Random(8).values(32);
    const std::vector<int64_t> indices = {4, -1, 5, int64_t{1} << 32};
    const auto out = output<float>(40);
    run("set_rows_f32", block, {out.binding(), bind(input(in)), bind(input(indices))});
    const auto seen = out.read();
    for (uint32_t i = 0; i < 40; ++i) {
        if (i % 20 < 16) {
            ASSERT_EQ(std::memcmp(&seen[i], "\xa5\xa5\xa5\xa5", 4), 0) << i;
        } else {
            ASSERT_EQ(seen[i], in[i / 20 * 16 + i % 4]) << i;
        }
    }
}

TEST_P(RowsTest, NoRows) {
    const auto none = output<float>(0);
    run("get_rows_f32", get_block(4, 4, 4, 0), {none.binding(), none.binding(), none.binding()});
    run("set_rows_f32", set_block(4, 4, 4, 0), {none.binding(), none.binding(), none.binding()});
    none.read();
}

}  // namespace
}  // namespace onebit::hrx::kernels::test
