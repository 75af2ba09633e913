// The block formats of quantised weights, decoded in double, one weight after the other.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "tests/hrx-kernels/random.h"

namespace onebit::hrx::kernels::test {

struct Weight {
    double value;
    double magnitude;  // abs(scale * q) + abs(offset): what rounding is relative to
};

struct Format {
    std::string name;       // as kernels are called
    std::string ggml_name;  // as ggml's traits are called
    uint32_t block, bytes;
    std::function<std::vector<Weight>(const uint8_t* block)> decode;
    std::vector<uint32_t> halves;  // offsets of its f16 fields
};

const std::vector<Format>& formats();
const Format& format(const std::string& name);

// Blocks of random bits, whose f16 fields are of ordinary size.
std::vector<uint8_t> random_blocks(const Format& format, size_t blocks, Random& random);
std::vector<Weight> decode(const Format& format, const std::vector<uint8_t>& blocks);

}  // namespace onebit::hrx::kernels::test
