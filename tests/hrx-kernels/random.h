// Numbers that tests and benchmarks fill operands with.
#pragma once

#include <cstdint>
#include <random>
#include <vector>

#include "tests/hrx-kernels/half.h"

namespace onebit::hrx::kernels::test {

// The same numbers each time.
class Random {
public:
    explicit Random(uint32_t seed = 1) : engine_(seed) {}
    float value(float low = -2, float high = 2) {
        return low + (high - low) * static_cast<float>(engine_() >> 8) * 0x1p-24f;
    }
    uint32_t below(uint32_t end) { return static_cast<uint32_t>(engine_() % end); }
    uint8_t byte() { return static_cast<uint8_t>(engine_()); }
    std::vector<float> values(size_t count, float low = -2, float high = 2) {
        std::vector<float> list(count);
        for (float& value : list) value = this->value(low, high);
        return list;
    }

private:
    std::mt19937 engine_;
};

inline std::vector<uint16_t> to_halves(const std::vector<float>& values) {
    std::vector<uint16_t> halves;
    halves.reserve(values.size());
    for (const float value : values) halves.push_back(to_half(value));
    return halves;
}

}  // namespace onebit::hrx::kernels::test
