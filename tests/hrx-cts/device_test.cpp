// If this fails, a driver of libhrx reports a device that other rooms cannot identify or whose limits are wrong.
#include <cstring>

#include "base/device_id.h"
#include "tests/hrx-cts/cts.h"

namespace onebit::hrx::cts {
namespace {

ONEBIT_HRX_CTS(DeviceTest);

TEST_P(DeviceTest, ReportsNamesAndLimits) {
    EXPECT_EQ(std::string(info().driver), GetParam());
    EXPECT_GT(std::strlen(info().name), 0u);
    const std::string architecture = info().architecture;
    EXPECT_TRUE(architecture.starts_with("gfx") || architecture.starts_with("sm_")) << architecture;
    EXPECT_GE(info().compute_units, 1u);
    EXPECT_EQ(info().wave_size, 32u);
    EXPECT_GE(info().max_workgroup_size, 256u);
    EXPECT_GE(info().lds_bytes, 32u << 10);
    EXPECT_GE(info().memory_bytes, 16u << 20);
    EXPECT_GE(info().max_buffer_bytes, 16u << 20);
    EXPECT_LE(info().max_buffer_bytes, info().memory_bytes);
    EXPECT_GT(info().clock_mhz, 0u);
    for (int i = 0; i < 3; ++i) {
        EXPECT_GE(info().max_workgroup_dimension[i], 64u);
        EXPECT_GE(info().max_workgroup_count[i], 65535u);
    }
}

TEST_P(DeviceTest, CanBeIdentified) {
    EXPECT_TRUE(info().has_pci_address || info().has_uuid);
    if (info().has_uuid) {
        const uint8_t none[16] = {};
        EXPECT_NE(std::memcmp(info().uuid, none, sizeof none), 0);
    }
    if (info().has_pci_address) {
        EXPECT_LT(info().pci_device, 32);
        EXPECT_LT(info().pci_function, 8);
    }
}

TEST_P(DeviceTest, CountsItsDevices) {
    EXPECT_GE(must(Device::count(GetParam().c_str())), 1u);
    EXPECT_TRUE(fails(Device::open(GetParam().c_str(), 10000), ErrorCode::not_found, "10000"));
}

TEST_P(DeviceTest, ReportsFreeMemory) {
    uint64_t bytes = 0;
    ASSERT_EQ(hrx_device_free_memory(device().get(), &bytes), HRX_OK) << hrx_error_message();
    EXPECT_GT(bytes, 0u);
    EXPECT_LE(bytes, info().memory_bytes);
    EXPECT_EQ(hrx_device_free_memory(device().get(), nullptr), HRX_INVALID_ARGUMENT);
}

TEST_P(DeviceTest, ProbeTellsWhatStarted) {
    struct Seen {
        int started = 0, named = 0;
    } seen;
    const auto note = [](void* user, const hrx_probe_entry* entry) {
        auto* list = static_cast<Seen*>(user);
        list->started += entry->started;
        list->named += entry->library[0] != '\0' && entry->origin[0] != '\0';
    };
    ASSERT_EQ(hrx_driver_probe(GetParam().c_str(), note, &seen), HRX_OK) << hrx_error_message();
    EXPECT_EQ(seen.started, 1);
    EXPECT_GE(seen.named, 1);
}

TEST_P(DeviceTest, ASecondDeviceIsApartFromTheFirst) {
    const Device other = must(Device::open(GetParam().c_str(), 0));
    const Buffer foreign = must(other.allocate(256));
    const Program own = program();
    EXPECT_TRUE(fails(own.fill(foreign, 0, 256, 0), ErrorCode::usage, "another device"));
    const Semaphore semaphore = must(other.create_semaphore());
    const hrx_semaphore_value signals[] = {at(semaphore, 1)};
    EXPECT_TRUE(fails(queue().submit({}, {}, signals), ErrorCode::usage, "another device"));
}

}  // namespace
}  // namespace onebit::hrx::cts
