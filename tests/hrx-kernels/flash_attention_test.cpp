// If this fails, models attend to the wrong tokens, or to none.
#include "hrx/kernels/flash_attention.h"

#include "hrx/kernels/softmax.h"
#include "tests/hrx-kernels/kernel_testing.h"

namespace onebit::hrx::kernels::test {
namespace {

struct Shape {
    uint32_t head_size = 64, tokens = 3, heads = 2, keys = 40, kv_heads = 1, sequences = 1;
    bool mask = true;
    float max_bias = 0, softcap = 0;
};

// Operands, packed as (head size, heads, tokens or keys, sequences).
struct Case {
    FlashAttention block{};
    uint32_t head_size = 0;
    std::vector<float> query;
    std::vector<uint16_t> key, value, mask;
};

Case make_case(const Shape& s) {
    Case c;
    c.head_size = s.head_size;
    FlashAttention& b = c.block;
    b.tokens = s.tokens;
    b.heads = s.heads;
    b.keys = s.keys;
    b.kv_heads = s.kv_heads;
    b.sequences = s.sequences;
    b.use_mask = s.mask ? 1 : 0;
    b.splits = 1;
    const uint32_t row = s.head_size * s.heads, kv_row = s.head_size * s.kv_heads;
    const uint32_t query_stride[3] = {row, s.head_size, row * s.tokens};
    const uint32_t kv_stride[3] = {kv_row, s.head_size, kv_row * s.keys};
    std::copy(query_stride, query_stride + 3, b.query_stride);
    std::copy(query_stride, query_stride + 3, b.out_stride);
    std::copy(kv_stride, kv_stride + 3, b.key_stride);
    std::copy(kv_stride, kv_stride + 3, b.value_stride);
    b.mask_stride[0] = s.keys;
    b.mask_stride[1] = s.keys * s.tokens;
    b.scale = 1 / std::sqrt(static_cast<float>(s.head_size));
    b.max_bias = s.max_bias;
    b.softcap = s.softcap;
    b.slope_heads = slope_heads_of(s.heads);
    Random random(s.head_size + s.tokens + s.keys);
    c.query = random.values(size_t{row} * s.tokens * s.sequences);
    c.key = to_halves(random.values(size_t{kv_row} * s.keys * s.sequences));
    c.value = to_halves(random.values(size_t{kv_row} * s.keys * s.sequences));
    for (uint32_t i = 0; i < s.sequences * s.tokens * s.keys; ++i) {
        // the last tokens see all keys, those before some less; a few keys are hidden
        const uint32_t token = i / s.keys % s.tokens, key = i % s.keys;
        const bool hidden = key + s.tokens > s.keys + token || (key % 7 == 3 && s.keys > 1);
        c.mask.push_back(to_half(hidden ? -INFINITY : (s.max_bias != 0 ? -0.25 * (key % 5) : 0)));
    }
    return c;
}

double slope(const FlashAttention& b, uint32_t head) {
    if (b.max_bias == 0) return 1;
    const uint32_t n = b.slope_heads;
    return head < n ? std::pow(2, -b.max_bias * (head + 1) / n)
                    : std::pow(2, -b.max_bias / 2 * (2 * (head - n) + 1) / n);
}

std::vector<double> reference_row(const Case& c, uint32_t sequence, uint32_t token, uint32_t head) {
    const FlashAttention& b = c.block;
    const uint32_t kv_head = head / (b.heads / b.kv_heads);
    const float* query = c.query.data() + size_t{sequence} * b.query_stride[2] + size_t{token} * b.query_stride[0] +
                         size_t{head} * b.query_stride[1];
    std::vector<double> logits(b.keys), out(c.head_size);
    double highest = -INFINITY, sum = 0;
    for (uint32_t k = 0; k < b.keys; ++k) {
        const size_t at = size_t{sequence} * b.key_stride[2] + size_t{k} * b.key_stride[0] + kv_head * b.key_stride[1];
        double product = 0;
        for (uint32_t d = 0; d < c.head_size; ++d) product += query[d] * from_half(c.key[at + d]);
        product *= b.scale;
        if (b.softcap != 0) product = b.softcap * std::tanh(product / b.softcap);
        const size_t mask_at = size_t{sequence} * b.mask_stride[1] + size_t{token} * b.mask_stride[0] + k;
        const double mask = b.use_mask != 0 ? from_half(c.mask[mask_at]) : 0;
        logits[k] = mask == -INFINITY ? -INFINITY : product + slope(b, head) * mask;
        highest = std::fmax(highest, logits[k]);
    }
    for (uint32_t k = 0; k < b.keys; ++k) {
        if (logits[k] == -INFINITY) continue;
        const double weight = std::exp(logits[k] - highest);
        const size_t at =
            size_t{sequence} * b.value_stride[2] + size_t{k} * b.value_stride[0] + kv_head * b.value_stride[1];
        sum += weight;
        for (uint32_t d = 0; d < c.head_size; ++d) out[d] += weight * from_half(c.value[at + d]);
    }
    for (double& value : out) value = sum == 0 ? 0 : value / sum;
    return out;
}

void compare(const Case& c, const std::vector<float>& seen, const std::string& name) {
    const FlashAttention& b = c.block;
    for (uint32_t i = 0; i < b.sequences * b.tokens * b.heads; ++i) {
        const uint32_t head = i % b.heads, token = i / b.heads % b.tokens, sequence = i / b.heads / b.tokens;
        const auto want = reference_row(c, sequence, token, head);
        for (uint32_t d = 0; d < c.head_size; ++d) {
            // values are within 2
            ASSERT_TRUE(close(seen[size_t{i} * c.head_size + d], want[d], tolerance("flash_attention").value, 2))
                << name << " head size " << c.head_size << " keys " << b.keys << " tokens " << b.tokens << ": head "
                << head << " token " << token << " element " << d;
        }
    }
}

class FlashAttentionTest : public KernelTest {
protected:
    std::vector<float> many(const Case& c) const {
        const auto out = output<float>(c.query.size());
        run("flash_attention_d" + std::to_string(c.head_size), launch_flash_attention(c.block, c.head_size),
            constants_of(c.block),
            {out.binding(), bind(input(c.query)), bind(input(c.key)), bind(input(c.value)), bind(input(c.mask))});
        return out.read();
    }
    std::vector<float> few(const Case& c, uint32_t splits) const {
        FlashAttention block = c.block;
        block.splits = splits;
        const auto partial = output<float>(flash_decode_partial_floats(block, c.head_size));
        run("flash_decode_d" + std::to_string(c.head_size), launch_flash_decode(block), constants_of(block),
            {partial.binding(), bind(input(c.query)), bind(input(c.key)), bind(input(c.value)), bind(input(c.mask))});
        FlashCombine combine{};
        combine.head_size = c.head_size;
        combine.tokens = block.tokens;
        combine.heads = block.heads;
        combine.sequences = block.sequences;
        combine.splits = splits;
        std::copy(block.out_stride, block.out_stride + 3, combine.out_stride);
        const auto out = output<float>(c.query.size());
        run("flash_combine", combine, {out.binding(), bind(input(partial.read()))});
        return out.read();
    }
    void check(const Shape& shape, const std::vector<uint32_t>& splits = {1, 3}) const {
        const Case c = make_case(shape);
        compare(c, many(c), "flash_attention");
        for (const uint32_t count : splits) compare(c, few(c, count), "flash_decode");
    }
};
INSTANTIATE_TEST_SUITE_P(Driver, FlashAttentionTest, testing::ValuesIn(onebit::hrx::driver_names()),
                         onebit::hrx::driver_test_name);

TEST_P(FlashAttentionTest, KeysAtEveryEdge) {
    for (const uint32_t keys : edge_sizes) check({.tokens = std::min(keys, 2u), .keys = keys});
}

TEST_P(FlashAttentionTest, TokensAtEveryEdge) {
    for (const uint32_t tokens : {1u, 15u, 16u, 17u, 31u, 32u, 33u, 63u, 64u, 65u, 255u, 256u, 257u}) {
        check({.tokens = tokens, .heads = 1, .keys = tokens + 2}, {2});
    }
    for (const uint32_t tokens : {1009u, 4096u}) {
        const Case c = make_case({.tokens = tokens, .heads = 1, .keys = 33, .mask = false});
        compare(c, many(c), "flash_attention");
    }
}

TEST_P(FlashAttentionTest, HeadSizes) {
    for (const uint32_t head_size : {64u, 80u, 96u, 128u, 256u}) {
        check({.head_size = head_size, .tokens = 19, .keys = 45});
        check({.head_size = head_size, .tokens = 1, .keys = 33, .mask = false}, {1, 2, 40});
    }
}

TEST_P(FlashAttentionTest, HeadsShareKeysInSequences) {
    check({.tokens = 5, .heads = 8, .keys = 21, .kv_heads = 2, .sequences = 3});
    check({.tokens = 2, .heads = 33, .keys = 5, .kv_heads = 33});
    check({.tokens = 2, .heads = 9, .keys = 40, .kv_heads = 1, .max_bias = 8});
    check({.tokens = 18, .heads = 2, .keys = 40, .softcap = 2});
}

TEST_P(FlashAttentionTest, MaskedKeysMayHoldAnything) {
    Case c = make_case({.tokens = 2, .heads = 1, .keys = 37});
    const Case clean = c;
    for (uint32_t k = 3; k < 37; k += 7) {
        for (uint32_t d = 0; d < 64; ++d) c.key[k * 64 + d] = to_half(d % 2 == 0 ? NAN : INFINITY);
    }
    compare(clean, many(c), "flash_attention");
    for (uint32_t k = 3; k < 37; k += 7) {
        for (uint32_t d = 0; d < 64; ++d) c.value[k * 64 + d] = to_half(NAN);
    }
    compare(clean, few(c, 3), "flash_decode");
}

TEST_P(FlashAttentionTest, NothingToSeeGivesZeros) {
    Case c = make_case({.tokens = 20, .keys = 33});
    for (uint32_t k = 0; k < 33; ++k) c.mask[5 * 33 + k] = to_half(-INFINITY);
    compare(c, many(c), "flash_attention");
    compare(c, few(c, 2), "flash_decode");
    Case none = make_case({.tokens = 2, .keys = 0, .mask = false});
    none.block.mask_stride[0] = 0;
    compare(none, many(none), "flash_attention");
    compare(none, few(none, 2), "flash_decode");
}

TEST_P(FlashAttentionTest, NanStaysInItsToken) {
    Case c = make_case({.tokens = 20, .heads = 1, .keys = 33, .mask = false});
    c.query[7 * 64 + 3] = NAN;
    for (const auto& seen : {many(c), few(c, 2)}) {
        for (uint32_t i = 0; i < seen.size(); ++i) ASSERT_EQ(std::isnan(seen[i]), i / 64 == 7) << i;
    }
}

TEST_P(FlashAttentionTest, NoTokens) {
    const Case c = make_case({.tokens = 0, .keys = 4});
    many(c);
    few(c, 1);
}

}  // namespace
}  // namespace onebit::hrx::kernels::test
