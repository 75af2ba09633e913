#include "tests/hrx-kernels/reference_quants.h"

#include <cmath>
#include <cstring>
#include <stdexcept>

#include "hrx/kernels/iq3_xxs_codebook.h"

namespace onebit::hrx::kernels::test {
namespace {

double half_at(const uint8_t* bytes) { return from_half(static_cast<uint16_t>(bytes[0] | bytes[1] << 8)); }
int low(uint8_t byte) { return byte & 15; }
int high(uint8_t byte) { return byte >> 4; }

Weight weight(double scale, double q, double offset = 0) {
    return {scale * q + offset, std::fabs(scale * q) + std::fabs(offset)};
}

std::vector<Weight> decode_q8_0(const uint8_t* block) {
    std::vector<Weight> weights;
    for (int i = 0; i < 32; ++i) weights.push_back(weight(half_at(block), static_cast<int8_t>(block[2 + i])));
    return weights;
}

std::vector<Weight> decode_q4_0(const uint8_t* block) {
    std::vector<Weight> weights;
    const double scale = half_at(block);
    for (int i = 0; i < 32; ++i) {
        const uint8_t byte = block[2 + i % 16];
        weights.push_back(weight(scale, i < 16 ? low(byte) : high(byte), -8 * scale));
    }
    return weights;
}

std::vector<Weight> decode_q4_k(const uint8_t* block) {
    std::vector<Weight> weights;
    const double d = half_at(block), m = half_at(block + 2);
    const uint8_t* packed = block + 4;
    for (int i = 0; i < 256; ++i) {
        const int sub = i / 32;
        int scale = packed[sub] & 63, minimum = packed[sub + 4] & 63;
        if (sub >= 4) {
            scale = low(packed[sub + 4]) | packed[sub - 4] >> 6 << 4;
            minimum = high(packed[sub + 4]) | packed[sub] >> 6 << 4;
        }
        const uint8_t byte = block[16 + i / 64 * 32 + i % 32];
        weights.push_back(weight(d * scale, sub % 2 == 0 ? low(byte) : high(byte), -m * minimum));
    }
    return weights;
}

std::vector<Weight> decode_q6_k(const uint8_t* block) {
    std::vector<Weight> weights;
    const double d = half_at(block + 208);
    for (int i = 0; i < 256; ++i) {
        const int half = i / 128, within = i % 128;
        const uint8_t lower = block[half * 64 + within % 64], upper = block[128 + half * 32 + within % 32];
        const int bits = (within < 64 ? low(lower) : high(lower)) | (upper >> within / 32 * 2 & 3) << 4;
        const double scale = d * static_cast<int8_t>(block[192 + i / 16]);
        weights.push_back(weight(scale, bits, -32 * scale));
    }
    return weights;
}

std::vector<Weight> decode_iq3_xxs(const uint8_t* block) {
    std::vector<Weight> weights;
    for (int i = 0; i < 256; ++i) {
        const int group = i / 32, eight = i % 32 / 8;
        uint32_t word = 0;
        std::memcpy(&word, block + 66 + 4 * group, 4);
        const int digit = iq3_xxs_codes[block[2 + i / 4]] >> 3 * (i % 4) & 7;
        const uint32_t signs = word >> 7 * eight & 127;
        const bool negative = i % 8 == 7 ? __builtin_popcount(signs) % 2 == 1 : (signs >> i % 8 & 1) == 1;
        const double magnitude = digit == 7 ? 62 : 8 * digit + 4;
        weights.push_back(weight(half_at(block) * (0.5 + (word >> 28)) / 2, negative ? -magnitude : magnitude));
    }
    return weights;
}

}  // namespace

const std::vector<Format>& formats() {
    static const auto* const list = new std::vector<Format>{
        {"q8_0", "q8_0", 32, 34, decode_q8_0, {0}},           {"q4_0", "q4_0", 32, 18, decode_q4_0, {0}},
        {"q4_k", "q4_K", 256, 144, decode_q4_k, {0, 2}},      {"q6_k", "q6_K", 256, 210, decode_q6_k, {208}},
        {"iq3_xxs", "iq3_xxs", 256, 98, decode_iq3_xxs, {0}},
    };
    return *list;
}

const Format& format(const std::string& name) {
    for (const Format& entry : formats()) {
        if (entry.name == name) return entry;
    }
    throw std::out_of_range("no format " + name);
}

std::vector<uint8_t> random_blocks(const Format& format, size_t blocks, Random& random) {
    std::vector<uint8_t> bytes(blocks * format.bytes);
    for (uint8_t& byte : bytes) byte = random.byte();
    for (size_t i = 0; i < blocks; ++i) {
        for (const uint32_t offset : format.halves) {
            const uint16_t half = to_half(random.value(0.01f, 0.02f));
            std::memcpy(bytes.data() + i * format.bytes + offset, &half, 2);
        }
    }
    return bytes;
}

std::vector<Weight> decode(const Format& format, const std::vector<uint8_t>& blocks) {
    std::vector<Weight> weights;
    for (size_t at = 0; at < blocks.size(); at += format.bytes) {
        const auto block = format.decode(blocks.data() + at);
        weights.insert(weights.end(), block.begin(), block.end());
    }
    return weights;
}

}  // namespace onebit::hrx::kernels::test
