// A device of each driver for tests that run against every driver, and the names of these tests.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <map>
#include <string>
#include <vector>

#include "hrx/runtime/hrx.hpp"
#include "tests/must.h"

namespace onebit::hrx {

// Nanoseconds; long enough for an emulated device on a loaded machine.
constexpr uint64_t patience = 100'000'000'000;

struct DriverDevice {
    Device device;
    hrx_device_info info{};
    std::string problem;  // why the driver does not start here; then there is no device
};

// The first device of the driver, opened once a process: start-up takes long. Never destroyed: drivers do not like to
// be called while the process ends.
inline const DriverDevice& driver_device(const std::string& driver) {
    static auto* const devices = new std::map<std::string, DriverDevice>;
    const auto found = devices->find(driver);
    if (found != devices->end()) return found->second;
    DriverDevice& entry = (*devices)[driver];
#ifdef ONEBIT_HRX_EMULATOR
    // an emulated gfx1151, unless another library is asked for
    if (driver == "amdgpu") setenv("ONEBIT_HRX_LIBHSA", ONEBIT_HRX_EMULATOR, 0);
#endif
    auto device = Device::open(driver.c_str(), 0);
    if (!device.ok()) {
        entry.problem = device.error().message();
        return entry;
    }
    entry.device = *device;
    entry.info = must(entry.device.info());
    return entry;
}

inline std::vector<std::string> driver_names() {
    std::vector<std::string> names;
    for (uint32_t i = 0; i < hrx_driver_count(); ++i) names.emplace_back(hrx_driver_name(i));
    return names;
}

inline std::string driver_test_name(const testing::TestParamInfo<std::string>& info) { return info.param; }

// The parameter names the driver. Skips where it does not start; fails where ONEBIT_HRX_CTS_REQUIRE names it.
class DriverTest : public testing::TestWithParam<std::string> {
protected:
    void SetUp() override {
        const DriverDevice& entry = driver_device(GetParam());
        if (!entry.problem.empty()) {
            const char* names = std::getenv("ONEBIT_HRX_CTS_REQUIRE");
            if (names != nullptr && ("," + std::string(names) + ",").find("," + GetParam() + ",") != std::string::npos)
                FAIL() << entry.problem;
            GTEST_SKIP() << entry.problem;
        }
        device_ = &entry.device;
        info_ = entry.info;
        queue_ = must(device_->create_queue());
    }

    const Device& device() const { return *device_; }
    const hrx_device_info& info() const { return info_; }
    bool has(hrx_feature feature) const { return (info_.features & feature) != 0; }
    // The test's own: one that a fault has stopped must not fail the tests after it.
    const Queue& queue() const { return queue_; }

private:
    const Device* device_ = nullptr;
    hrx_device_info info_{};
    Queue queue_;
};

}  // namespace onebit::hrx

// A suite of tests that runs against every driver, on a base class made of DriverTest.
#define ONEBIT_DRIVER_TEST(Suite, Base)                                                     \
    class Suite : public Base {};                                                           \
    INSTANTIATE_TEST_SUITE_P(Driver, Suite, testing::ValuesIn(onebit::hrx::driver_names()), \
                             onebit::hrx::driver_test_name)
