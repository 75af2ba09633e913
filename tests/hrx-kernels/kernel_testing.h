// What the tests of the kernels share: a device a driver, operands between guards, and comparisons.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <string>
#include <vector>

#include "hrx/kernels/shape.h"
#include "hrx/runtime/hrx.hpp"
#include "tests/hrx-cts/driver_device.h"
#include "tests/hrx-kernels/random.h"
#include "tests/hrx-kernels/tolerances.h"

namespace onebit::hrx::kernels::test {

// Sizes at which vectors, waves and workgroups end; one dimension at a time.
inline constexpr uint32_t edge_sizes[] = {1, 31, 32, 33, 255, 256, 257, 1009, 4096};

// got is within value * scale of want; NaN and infinities must be the same.
testing::AssertionResult close(double got, double want, double value, double scale);

// Memory that a kernel writes, between guard bytes that it must not touch. Filled with a pattern before.
template <typename T>
class Output {
public:
    Output(const Device& device, size_t count) : Output(device, std::vector<T>(count), true) {}
    Output(const Device& device, std::vector<T> contents, bool pattern = false) : count_(contents.size()) {
        std::vector<uint8_t> bytes(size(), fill);
        if (!pattern && count_ != 0) std::memcpy(bytes.data() + guard, contents.data(), count_ * sizeof(T));
        buffer_ = must(device.allocate(size()));
        must(buffer_.write(std::span<const uint8_t>(bytes)));
    }
    hrx_binding binding() const { return bind(buffer_, guard, count_ == 0 ? 1 : count_ * sizeof(T)); }
    // Fails the test where a guard byte has changed.
    std::vector<T> read() const {
        const auto bytes = must(buffer_.template read<uint8_t>(size()));
        for (size_t i = 0; i < guard; ++i) {
            EXPECT_EQ(bytes[i], fill) << "written " << guard - i << " bytes before the output";
            EXPECT_EQ(bytes[size() - 1 - i], fill) << "written " << guard - i << " bytes after the output";
        }
        std::vector<T> values(count_);
        if (count_ != 0) std::memcpy(values.data(), bytes.data() + guard, count_ * sizeof(T));
        return values;
    }
    static T untouched() {
        T value;
        std::memset(&value, fill, sizeof value);
        return value;
    }

private:
    static constexpr size_t guard = 256;
    static constexpr uint8_t fill = 0xa5;
    size_t size() const { return count_ * sizeof(T) + 2 * guard; }
    size_t count_;
    Buffer buffer_;
};

class KernelTest : public DriverTest {
protected:
    template <typename T>
    Buffer input(const std::vector<T>& values) const {
        if (values.empty()) return must(device().allocate(1));
        Buffer buffer = must(device().allocate(values.size() * sizeof(T)));
        must(buffer.write(std::span<const T>(values)));
        return buffer;
    }
    template <typename T>
    Output<T> output(size_t count) const {
        return Output<T>(device(), count);
    }
    template <typename T>
    Output<T> in_place(const std::vector<T>& values) const {
        return Output<T>(device(), values);
    }

    template <typename Block>
    void run(const std::string& kernel, const Block& block, const std::vector<hrx_binding>& bindings) const {
        run(kernel, launch(block), constants_of(block), bindings);
    }
    // Runs one dispatch and waits.
    void run(const std::string& kernel, const Launch& launch, std::span<const std::byte> constants,
             const std::vector<hrx_binding>& bindings, uint32_t dynamic_lds_bytes = 0) const;
};

}  // namespace onebit::hrx::kernels::test

#define ONEBIT_KERNEL_TEST(Suite) ONEBIT_DRIVER_TEST(Suite, KernelTest)
