// If this fails, tensors are copied or converted wrongly: caches, transposed views and casts hold wrong numbers.
#include <bit>
#include <functional>

#include "hrx/kernels/copy.h"
#include "tests/hrx-kernels/kernel_testing.h"

namespace onebit::hrx::kernels::test {
namespace {

ONEBIT_KERNEL_TEST(CopyTest);

// A conversion on raw bits of either size; the pair's name is that of the kernel.
struct Pair {
    std::string name;
    uint32_t in_bytes, out_bytes;
    std::function<uint32_t(uint32_t)> convert;
};

float as_float(uint32_t bits) { return std::bit_cast<float>(bits); }
uint32_t as_bits(double value) { return std::bit_cast<uint32_t>(static_cast<float>(value)); }
uint16_t low(uint32_t bits) { return static_cast<uint16_t>(bits); }

const std::vector<Pair>& pairs() {
    static const auto* const list = new std::vector<Pair>{
        {"b32_b32", 4, 4, [](uint32_t x) { return x; }},
        {"b16_b16", 2, 2, [](uint32_t x) { return x; }},
        {"b8_b8", 1, 1, [](uint32_t x) { return x; }},
        {"f32_f16", 4, 2, [](uint32_t x) { return to_half(as_float(x)); }},
        {"f32_bf16", 4, 2, [](uint32_t x) { return to_bfloat(as_float(x)); }},
        {"f16_f32", 2, 4, [](uint32_t x) { return as_bits(from_half(low(x))); }},
        {"f16_bf16", 2, 2, [](uint32_t x) { return to_bfloat(static_cast<float>(from_half(low(x)))); }},
        {"bf16_f32", 2, 4, [](uint32_t x) { return x << 16; }},
        {"bf16_f16", 2, 2, [](uint32_t x) { return to_half(from_bfloat(low(x))); }},
        {"f32_i32", 4, 4,
         [](uint32_t x) {
             const double value = as_float(x);
             if (std::isnan(value)) return 0u;
             return static_cast<uint32_t>(
                 static_cast<int32_t>(std::fmin(std::fmax(value, -2147483648.0), 2147483520.0)));
         }},
        {"i32_f32", 4, 4, [](uint32_t x) { return as_bits(static_cast<int32_t>(x)); }},
    };
    return *list;
}

bool is_nan(uint32_t bits, uint32_t bytes, const std::string& type) {
    if (type == "f32") return std::isnan(as_float(bits));
    if (type == "bf16") return std::isnan(from_bfloat(low(bits)));
    return bytes == 2 && type == "f16" && std::isnan(from_half(low(bits)));
}

std::vector<uint8_t> pack(const std::vector<uint32_t>& values, uint32_t bytes) {
    std::vector<uint8_t> packed(values.size() * bytes);
    for (size_t i = 0; i < values.size(); ++i) std::memcpy(packed.data() + i * bytes, &values[i], bytes);
    return packed;
}
std::vector<uint32_t> unpack(const std::vector<uint8_t>& packed, uint32_t bytes) {
    std::vector<uint32_t> values(packed.size() / bytes);
    for (size_t i = 0; i < values.size(); ++i) std::memcpy(&values[i], packed.data() + i * bytes, bytes);
    return values;
}

// Ordinary numbers of the source type, and at the start those where conversions go wrong.
std::vector<uint32_t> numbers(const Pair& pair, size_t count) {
    static const float special[] = {
        0.0f,           -0.0f,          1.0f,          INFINITY,      -INFINITY, NAN,           65504.0f,
        65519.0f,       65520.0f,       -65520.0f,     1e30f,         -1e30f,    2147483520.0f, 2147483648.0f,
        -2147483648.0f, 5.96e-8f,       2.98e-8f,      2.9802325e-8f, 6.1e-5f,   1.00390625f,   1.01171875f,
        1.00048828125f, 1.00146484375f, 3.4028235e38f, 0.5f,          1.5f,      -1.5f,         1e-40f};
    Random random(7);
    const std::string from = pair.name.substr(0, pair.name.find('_'));
    std::vector<uint32_t> values(count);
    for (size_t i = 0; i < count; ++i) {
        const float value = i < std::size(special) ? special[i] : random.value(-1000, 1000);
        values[i] = std::bit_cast<uint32_t>(value);
        if (from == "f16") values[i] = to_half(value);
        if (from == "bf16") values[i] = to_bfloat(value);
        if (from == "b16" || from == "b8") values[i] &= pair.in_bytes == 1 ? 0xffu : 0xffffu;
    }
    return values;
}

// out[i] is the conversion of in[map(i)]; any NaN counts as NaN, except where bits are copied.
void compare(const Pair& pair, const std::vector<uint32_t>& got, const std::vector<uint32_t>& want) {
    const std::string to = pair.name.substr(pair.name.find('_') + 1);
    ASSERT_EQ(got.size(), want.size());
    for (size_t i = 0; i < got.size(); ++i) {
        if (is_nan(want[i], pair.out_bytes, to)) {
            ASSERT_TRUE(is_nan(got[i], pair.out_bytes, to)) << pair.name << " element " << i;
        } else {
            ASSERT_EQ(got[i], want[i]) << pair.name << " element " << i;
        }
    }
}

TEST_P(CopyTest, FlatAtEveryEdge) {
    for (const Pair& pair : pairs()) {
        for (const uint32_t count : edge_sizes) {
            const auto values = numbers(pair, count);
            const Buffer in = input(pack(values, pair.in_bytes));
            const auto out = output<uint8_t>(size_t{count} * pair.out_bytes);
            run("copy_flat_" + pair.name, FlatCopy{{}, {}, count}, {out.binding(), bind(in)});
            std::vector<uint32_t> want(count);
            for (uint32_t i = 0; i < count; ++i) want[i] = pair.convert(values[i]);
            compare(pair, unpack(out.read(), pair.out_bytes), want);
        }
    }
}

// A transposed source with gaps, into a packed destination of another shape.
TEST_P(CopyTest, StridedAtEveryEdge) {
    for (const Pair& pair : pairs()) {
        for (const uint32_t size : edge_sizes) {
            for (uint32_t dimension = 0; dimension < 4; ++dimension) {
                // one pair sees every size in every dimension, the others the most awkward
                if (pair.name != "f32_f16" && size != 33 && size != 257) continue;
                Copy block{};
                uint32_t ne[4] = {3, 2, 1, 2};
                ne[dimension] = size;
                const uint32_t count = ne[0] * ne[1] * ne[2] * ne[3];
                // dimension 1 innermost, one element of gap
                const uint32_t stride[4] = {ne[1] + 1, 1, (ne[1] + 1) * ne[0], (ne[1] + 1) * ne[0] * ne[2]};
                const auto values = numbers(pair, size_t{stride[3]} * ne[3]);
                std::vector<uint32_t> want(count);
                for (uint32_t i = 0; i < count; ++i) {
                    want[i] = pair.convert(values[offset_of(unravel(i, ne), stride)]);
                }
                std::copy(ne, ne + 4, block.in_ne);
                std::copy(stride, stride + 4, block.in_stride);
                const uint32_t out_ne[4] = {count, 1, 1, 1}, out_stride[4] = {1, count, count, count};
                std::copy(out_ne, out_ne + 4, block.out_ne);
                std::copy(out_stride, out_stride + 4, block.out_stride);
                block.count = count;
                const Buffer in = input(pack(values, pair.in_bytes));
                const auto out = output<uint8_t>(size_t{count} * pair.out_bytes);
                run("copy_" + pair.name, block, {out.binding(), bind(in)});
                compare(pair, unpack(out.read(), pair.out_bytes), want);
            }
        }
    }
}

TEST_P(CopyTest, GapsOfTheDestinationStay) {
    Copy block{};
    const uint32_t ne[4] = {5, 3, 1, 1}, in_stride[4] = {1, 5, 15, 15}, out_stride[4] = {2, 16, 48, 48};
    std::copy(ne, ne + 4, block.in_ne);
    std::copy(ne, ne + 4, block.out_ne);
    std::copy(in_stride, in_stride + 4, block.in_stride);
    std::copy(out_stride, out_stride + 4, block.out_stride);
    block.count = 15;
    std::vector<uint32_t> values(15);
    for (uint32_t i = 0; i < 15; ++i) values[i] = i + 1;
    const auto out = output<uint32_t>(48);
    run("copy_b32_b32", block, {out.binding(), bind(input(values))});
    const auto seen = out.read();
    for (uint32_t i = 0; i < 48; ++i) {
        const uint32_t row = i / 16, column = i % 16;
        const bool written = column % 2 == 0 && column / 2 < 5;
        ASSERT_EQ(seen[i], written ? row * 5 + column / 2 + 1 : Output<uint32_t>::untouched()) << i;
    }
}

TEST_P(CopyTest, NothingToCopy) {
    const auto out = output<uint32_t>(0);
    run("copy_flat_b32_b32", FlatCopy{{}, {}, 0}, {out.binding(), bind(input(std::vector<uint32_t>{}))});
    out.read();
}

}  // namespace
}  // namespace onebit::hrx::kernels::test
