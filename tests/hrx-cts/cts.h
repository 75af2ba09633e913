// What the conformance tests of libhrx share: one device a driver, its kernels, and short forms of the calls.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "hrx/runtime/hrx.hpp"
#include "tests/hrx-cts/driver_device.h"

namespace onebit::hrx::cts {

constexpr uint64_t second = 1'000'000'000;
constexpr uint32_t workgroup = 64;  // of the kernels in hrx/kernels/cts

// The call failed with this code, and its message holds the text.
template <typename T>
testing::AssertionResult fails(const Result<T>& result, ErrorCode code, const std::string& text = "") {
    if (result.ok()) return testing::AssertionFailure() << "it worked";
    if (result.error().code != code) {
        return testing::AssertionFailure() << to_string(result.error().code) << ": " << result.error().message();
    }
    if (result.error().message().find(text) == std::string::npos) {
        return testing::AssertionFailure() << "'" << text << "' is not in: " << result.error().message();
    }
    return testing::AssertionSuccess();
}

template <typename T>
T must_at(const std::vector<T>& list, size_t index) {
    if (index >= list.size()) throw std::runtime_error("index " + std::to_string(index) + " beyond the end");
    return list[index];
}

class CtsTest : public DriverTest {
protected:
    Result<Executable> load_kernels() const;
    const Executable& kernels() const;
    uint32_t kernel(const char* name) const { return must(kernels().find(name)); }

    Buffer words(std::span<const uint32_t> values, hrx_memory memory = HRX_MEMORY_DEVICE) const;
    Buffer zeros(size_t count, hrx_memory memory = HRX_MEMORY_DEVICE) const;
    static std::vector<uint32_t> read(const Buffer& buffer, size_t count) { return must(buffer.read<uint32_t>(count)); }

    // A dispatch of a kernel over `groups` workgroups of 64.
    Result<uint32_t> dispatch(const Program& program, const char* name, uint32_t groups,
                              const std::vector<hrx_binding>& bindings, const std::vector<uint32_t>& constants) const;
    Program program(uint32_t flags = 0) const { return must(device().create_program(flags)); }
    // Submits and waits.
    void run(const Program& program) const;
};

// The image of hrx/kernels/cts for an architecture; sm_NN takes the PTX of sm_80.
std::vector<std::byte> kernel_image(const std::string& architecture);

}  // namespace onebit::hrx::cts

#define ONEBIT_HRX_CTS(Suite) ONEBIT_DRIVER_TEST(Suite, CtsTest)
