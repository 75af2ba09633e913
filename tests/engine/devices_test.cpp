// If this fails, 1bit devices shows GPUs twice or with wrong memory, or picks the wrong one by itself.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "engine/devices.h"
#include "engine/devices_host.h"
#include "engine/devices_text.h"
#include "tests/engine/temp_tree.h"

namespace onebit {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr uint64_t MiB = 1ull << 20, GiB = 1ull << 30;

RawDevice raw(const std::string& backend, const std::string& name, const std::string& description, DeviceKind kind,
              uint64_t total, uint64_t free, const std::string& pci = {}) {
    RawDevice device;
    device.id.backend = backend;
    device.id.name = name;
    if (!pci.empty()) device.id.pci = parse_pci_address(pci).value();
    device.description = description;
    device.kind = kind;
    device.total_bytes = total;
    device.free_bytes = free;
    return device;
}

RawDevice cpu(uint64_t total = 128 * GiB, uint64_t free = 100 * GiB) {
    return raw("CPU", "CPU", "Some CPU", DeviceKind::cpu, total, free);
}

void write_amd(const TempTree& tree, const std::string& pci, uint64_t vram, uint64_t vram_used, uint64_t gtt,
               uint64_t gtt_used, const std::string& vendor) {
    const std::string folder = "bus/pci/devices/" + pci + "/mem_info_";
    tree.write(folder + "vram_total", std::to_string(vram) + "\n");
    tree.write(folder + "vram_used", std::to_string(vram_used) + "\n");
    tree.write(folder + "gtt_total", std::to_string(gtt) + "\n");
    tree.write(folder + "gtt_used", std::to_string(gtt_used) + "\n");
    tree.write(folder + "vram_vendor", vendor + "\n");
}

TEST(GroupDevices, NothingGivesNothing) {
    EXPECT_TRUE(group_devices({}, "/nonexistent").empty());
    EXPECT_TRUE(default_devices({}).empty());
}

TEST(GroupDevices, CpuAloneIsTheDefault) {
    const auto devices = group_devices({cpu()}, "/nonexistent");
    ASSERT_EQ(devices.size(), 1u);
    EXPECT_TRUE(devices[0].chosen_by_default);
    EXPECT_TRUE(default_devices(devices).empty());
}

TEST(GroupDevices, ApuIsCarveOutPlusSharedMemory) {  // DEV01, DEV02
    const TempTree tree;
    write_amd(tree, "0000:c4:00.0", 512 * MiB, 100 * MiB, 105 * GiB, 5 * GiB, "unknown");
    const auto devices = group_devices(
        {raw("Vulkan", "Vulkan0", "Radeon 8060S", DeviceKind::integrated_gpu, 512 * MiB, 400 * MiB, "0000:c4:00.0"),
         cpu(128 * GiB, 120 * GiB)},
        tree.path());
    ASSERT_EQ(devices.size(), 2u);
    EXPECT_EQ(devices[0].kind, DeviceKind::cpu);
    const PhysicalDevice& gpu = devices[1];
    EXPECT_EQ(gpu.kind, DeviceKind::integrated_gpu);
    EXPECT_EQ(gpu.total_bytes, 512 * MiB + 105 * GiB);
    EXPECT_EQ(gpu.free_bytes, 412 * MiB + 100 * GiB);
    EXPECT_EQ(gpu.carve_out_bytes, 512 * MiB);
    EXPECT_EQ(gpu.shared_bytes, 105 * GiB);
    EXPECT_THAT(devices_to_text(devices), HasSubstr("carve-out 512 MiB + shared with the CPU 105 GiB"));
}

TEST(GroupDevices, ApuCalledDiscreteByItsDriverIsStillOnePool) {  // DEV01: HIP sees the carve-out only
    const TempTree tree;
    write_amd(tree, "0000:c4:00.0", 2 * GiB, 0, 60 * GiB, 0, "unknown");
    const auto devices = group_devices(
        {cpu(), raw("ROCm", "ROCm0", "gfx1151", DeviceKind::discrete_gpu, 2 * GiB, 2 * GiB, "0000:c4:00.0")},
        tree.path());
    ASSERT_EQ(devices.size(), 2u);
    EXPECT_EQ(devices[1].kind, DeviceKind::integrated_gpu);
    EXPECT_EQ(devices[1].total_bytes, 62 * GiB);
}

TEST(GroupDevices, DiscreteAmdKeepsItsOwnMemory) {
    const TempTree tree;
    write_amd(tree, "0000:03:00.0", 4 * GiB, 0, 32 * GiB, 0, "samsung");
    const auto devices = group_devices(
        {cpu(), raw("Vulkan", "Vulkan0", "RX 6400", DeviceKind::discrete_gpu, 4 * GiB, 3 * GiB, "0000:03:00.0")},
        tree.path());
    EXPECT_EQ(devices[1].kind, DeviceKind::discrete_gpu);
    EXPECT_EQ(devices[1].total_bytes, 4 * GiB);
    EXPECT_FALSE(devices[1].carve_out_bytes);
}

TEST(GroupDevices, SharedPartIsNoMoreThanTheMachineHasLeft) {
    const TempTree tree;
    write_amd(tree, "0000:c4:00.0", 1 * GiB, 0, 100 * GiB, 0, "unknown");
    const auto devices = group_devices(
        {cpu(128 * GiB, 10 * GiB),
         raw("Vulkan", "Vulkan0", "APU", DeviceKind::integrated_gpu, 101 * GiB, 101 * GiB, "0000:c4:00.0")},
        tree.path());
    EXPECT_EQ(devices[1].free_bytes, 11 * GiB);
}

TEST(GroupDevices, UsedAboveTotalInSysfsDoesNotWrap) {
    const TempTree tree;
    write_amd(tree, "0000:c4:00.0", 1 * GiB, 9 * GiB, 8 * GiB, 900 * GiB, "unknown");
    const auto devices = group_devices(
        {raw("Vulkan", "Vulkan0", "APU", DeviceKind::integrated_gpu, 9 * GiB, 9 * GiB, "0000:c4:00.0")}, tree.path());
    EXPECT_EQ(devices[0].free_bytes, 0u);
}

TEST(GroupDevices, ZeroIsUnknownAndTheGpuStaysUsable) {  // DEV09
    const auto devices = group_devices(
        {cpu(), raw("Vulkan", "Vulkan0", "GPU", DeviceKind::discrete_gpu, 0, 0, "0000:01:00.0")}, "/nonexistent");
    EXPECT_FALSE(devices[1].total_bytes);
    EXPECT_FALSE(devices[1].free_bytes);
    EXPECT_THAT(default_devices(devices), ElementsAre("Vulkan0"));
    EXPECT_THAT(devices_to_text(devices), HasSubstr("memory unknown"));
    EXPECT_TRUE(nlohmann::json::parse(devices_to_json(devices))["devices"][1]["total_bytes"].is_null());
}

TEST(GroupDevices, FreeIsNeverMoreThanTotal) {
    auto devices =
        group_devices({raw("Vulkan", "Vulkan0", "GPU", DeviceKind::discrete_gpu, 8 * GiB, 9 * GiB)}, "/none");
    EXPECT_EQ(devices[0].free_bytes, 8 * GiB);
    devices =
        group_devices({raw("Vulkan", "Vulkan0", "GPU", DeviceKind::discrete_gpu, 8 * GiB, UINT64_MAX - 5)}, "/none");
    EXPECT_EQ(devices[0].free_bytes, 0u) << "a budget below zero is nothing free, not everything";
}

TEST(GroupDevices, OneGpuUnderTwoBackendsIsOneEntry) {  // DEV11
    const auto devices = group_devices(
        {raw("CUDA", "CUDA0", "NVIDIA H200", DeviceKind::discrete_gpu, 140 * GiB, 139 * GiB, "0000:1b:00.0"),
         raw("Vulkan", "Vulkan0", "NVIDIA H200", DeviceKind::discrete_gpu, 141 * GiB, 138 * GiB, "0000:1b:00.0"),
         cpu()},
        "/nonexistent");
    ASSERT_EQ(devices.size(), 2u);
    EXPECT_EQ(devices[1].backends.size(), 2u);
    EXPECT_EQ(devices[1].total_bytes, 141 * GiB);
    EXPECT_EQ(devices[1].free_bytes, 138 * GiB);
    EXPECT_THAT(default_devices(devices), ElementsAre("CUDA0")) << "layers are never split over both";
}

TEST(GroupDevices, EqualNamesAtTwoAddressesAreTwoGpus) {
    const auto devices =
        group_devices({raw("Vulkan", "Vulkan0", "Same", DeviceKind::discrete_gpu, GiB, GiB, "0000:01:00.0"),
                       raw("Vulkan", "Vulkan1", "Same", DeviceKind::discrete_gpu, GiB, GiB, "0000:02:00.0")},
                      "/nonexistent");
    ASSERT_EQ(devices.size(), 2u);
    EXPECT_THAT(default_devices(devices), ElementsAre("Vulkan0", "Vulkan1"));
}

TEST(GroupDevices, SoftwareVulkanIsCalledThatAndNeverChosen) {  // DEV13
    for (const char* name : {"llvmpipe (LLVM 15.0.6, 256 bits)", "SwiftShader Device (LLVM 10.0.0)"}) {
        const auto devices =
            group_devices({raw("Vulkan", "Vulkan0", name, DeviceKind::discrete_gpu, 2 * GiB, 2 * GiB), cpu()}, "/none");
        ASSERT_EQ(devices.size(), 2u);
        EXPECT_EQ(devices[1].name, "CPU (software Vulkan)");
        EXPECT_EQ(devices[1].kind, DeviceKind::software_gpu);
        EXPECT_FALSE(devices[1].chosen_by_default);
        EXPECT_TRUE(default_devices(devices).empty());
    }
}

TEST(GroupDevices, IntegratedBesideDiscreteIsListedButNotChosen) {  // DEV14
    const auto devices =
        group_devices({raw("Vulkan", "Vulkan0", "iGPU", DeviceKind::integrated_gpu, GiB, GiB, "0000:00:02.0"),
                       raw("Vulkan", "Vulkan1", "dGPU", DeviceKind::discrete_gpu, GiB, GiB, "0000:01:00.0"), cpu()},
                      "/nonexistent");
    ASSERT_EQ(devices.size(), 3u);
    EXPECT_THAT(default_devices(devices), ElementsAre("Vulkan1"));
    EXPECT_THAT(select_devices("Vulkan0", devices).value(), ElementsAre("Vulkan0"));
}

std::vector<PhysicalDevice> two_gpus() {
    return group_devices({raw("CUDA", "CUDA0", "A", DeviceKind::discrete_gpu, GiB, GiB, "0000:02:00.0"),
                          raw("CUDA", "CUDA1", "B", DeviceKind::discrete_gpu, GiB, GiB, "0000:01:00.0"),
                          raw("Vulkan", "Vulkan0", "B", DeviceKind::discrete_gpu, GiB, GiB, "0000:01:00.0"),
                          raw("Vulkan", "Vulkan1", "llvmpipe", DeviceKind::discrete_gpu, GiB, GiB), cpu()},
                         "/nonexistent");
}

TEST(SelectDevices, IndexNameAndAddressMeanTheSameGpu) {  // DEV15
    const auto devices = two_gpus();
    ASSERT_EQ(devices.size(), 4u);
    EXPECT_THAT(select_devices("2", devices).value(), ElementsAre("CUDA1"));
    EXPECT_THAT(select_devices("cuda1", devices).value(), ElementsAre("CUDA1"));
    EXPECT_THAT(select_devices("0000:01:00.0", devices).value(), ElementsAre("CUDA1"));
    EXPECT_THAT(select_devices("01:00.0", devices).value(), ElementsAre("CUDA1"));
    EXPECT_THAT(select_devices("vulkan", devices).value(), ElementsAre("Vulkan0"));
    EXPECT_THAT(select_devices("Vulkan0,CUDA0,vulkan0", devices).value(), ElementsAre("Vulkan0", "CUDA0"));
    EXPECT_EQ(device_line(devices, "CUDA1"), "CUDA1 (B, 0000:01:00.0)");
    EXPECT_EQ(device_line(devices, "HRX0"), "HRX0");
}

TEST(SelectDevices, AutoAndNone) {
    const auto devices = two_gpus();
    EXPECT_THAT(select_devices("auto", devices).value(), ElementsAre("CUDA0", "CUDA1"));
    EXPECT_THAT(select_devices("", devices).value(), ElementsAre("CUDA0", "CUDA1"));
    EXPECT_THAT(select_devices("none", devices).value(), ElementsAre("CPU"));
    EXPECT_THAT(select_devices("cpu", devices).value(), ElementsAre("CPU"));
}

TEST(SelectDevices, AMissingOneIsNeverReplaced) {  // DEV17
    const auto devices = two_gpus();
    for (const char* name : {"hrx", "Vulkan7", "99", "0000:99:00.0", "18446744073709551616", "Vulkan"}) {
        const auto chosen = select_devices(name, devices);
        if (std::string(name) == "Vulkan") {
            EXPECT_TRUE(chosen.ok());
            continue;
        }
        ASSERT_FALSE(chosen.ok()) << name;
        EXPECT_EQ(chosen.error().code, ErrorCode::not_found);
        EXPECT_THAT(chosen.error().message(), HasSubstr("CUDA0, CUDA1, Vulkan0"));
    }
    for (const char* text : {",", "CUDA0,", ",CUDA0", "CUDA0,,CUDA1"}) {
        ASSERT_FALSE(select_devices(text, devices).ok()) << text;
        EXPECT_EQ(select_devices(text, devices).error().code, ErrorCode::usage);
    }
}

TEST(DevicesJson, CarriesGgmlNamesAndSurvivesHostileText) {
    const auto devices = group_devices(
        {raw("Vulkan", "Vulkan0", "bad \xff\x01 name", DeviceKind::discrete_gpu, GiB, GiB, "0000:01:00.0")}, "/none");
    const auto json = nlohmann::json::parse(devices_to_json(devices));
    EXPECT_EQ(json["devices"][0]["backends"][0]["device"], "Vulkan0");
    EXPECT_EQ(json["devices"][0]["backends"][0]["pci"], "0000:01:00.0");
    EXPECT_EQ(json["default"][0], "Vulkan0");
}

TEST(HostMemory, ReadsTheMachine) {
    const HostMemory memory = read_host_memory();
    EXPECT_GT(memory.total, 0u);
    EXPECT_GT(memory.available, 0u);
    EXPECT_LE(memory.available, memory.total);
}

TEST(HostMemory, NothingReadableIsUnknown) {
    const HostMemory memory = read_host_memory("/nonexistent");
    EXPECT_EQ(memory.total, 0u);
    EXPECT_EQ(memory.available, 0u);
}

TEST(HostMemory, TheTightestGroupAboveCounts) {
    const TempTree tree;
    tree.write("proc/meminfo", "MemTotal: 1000000 kB\nMemFree: 5 kB\nMemAvailable: 900000 kB\n");
    tree.write("proc/self/cgroup", "0::/a/b\n");
    tree.write("sys/fs/cgroup/a/b/memory.max", "max\n");
    tree.write("sys/fs/cgroup/a/memory.max", "400000000\n");
    tree.write("sys/fs/cgroup/a/memory.current", "300000000\n");
    tree.write("sys/fs/cgroup/a/memory.stat", "anon 1\ninactive_file 100000000\n");
    const HostMemory memory = read_host_memory(tree.path());
    EXPECT_TRUE(memory.limited);
    EXPECT_EQ(memory.total, 400000000u);
    EXPECT_EQ(memory.available, 200000000u);
}

TEST(HostMemory, VersionOneOfControlGroups) {
    const TempTree tree;
    tree.write("proc/meminfo", "MemTotal: 1000000 kB\nMemAvailable: 900000 kB\n");
    tree.write("proc/self/cgroup", "5:cpu,memory:/host/path/not/here\n1:name=systemd:/\n");
    tree.write("sys/fs/cgroup/memory/memory.limit_in_bytes", "100000000\n");
    tree.write("sys/fs/cgroup/memory/memory.usage_in_bytes", "900000000\n");
    const HostMemory memory = read_host_memory(tree.path());
    EXPECT_EQ(memory.total, 100000000u);
    EXPECT_EQ(memory.available, 0u);
}

TEST(HostMemory, HostileFilesAreIgnored) {
    const TempTree tree;
    tree.write("proc/meminfo", "MemTotal: 99999999999999999999 kB\nMemAvailable: -5 kB\nMemTotal\n\n:::");
    tree.write("proc/self/cgroup", "nonsense\n0:\n::\n0::relative\n");
    const HostMemory memory = read_host_memory(tree.path());
    EXPECT_LE(memory.available, memory.total);
}

TEST(BytesText, Units) {
    EXPECT_EQ(bytes_text(0), "0 B");
    EXPECT_EQ(bytes_text(1023), "1023 B");
    EXPECT_EQ(bytes_text(1024), "1.0 KiB");
    EXPECT_EQ(bytes_text(512 * MiB), "512 MiB");
    EXPECT_EQ(bytes_text(GiB + GiB / 2), "1.5 GiB");
    EXPECT_EQ(bytes_text(UINT64_MAX), "16.0 EiB");
}

TEST(Tables, AlignTextOfAnyScript) {
    EXPECT_EQ(text_table({}), "");
    EXPECT_EQ(text_table({{"a", "b"}, {"ä", "22"}}), "a   b\nä  22\n");
    EXPECT_EQ(markdown_table({{"a", "b"}, {"x|y", "1"}}), "| a | b |\n|---|---:|\n| x\\|y | 1 |\n");
}

}  // namespace
}  // namespace onebit
