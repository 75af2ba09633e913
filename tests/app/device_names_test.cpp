// If this fails, a device that a person names is not the one that runs, or a missing one is replaced in silence.
#include "app/device_names.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fstream>

namespace onebit {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using Texts = std::vector<std::string>;

PhysicalDevice device(const std::string& name, DeviceKind kind, Texts backends, bool chosen) {
    PhysicalDevice result;
    result.name = name;
    result.kind = kind;
    result.chosen_by_default = chosen;
    for (const std::string& backend : backends) {
        BackendView view;
        view.id.name = backend;
        view.id.backend = backend == "CPU" ? "CPU" : backend.substr(0, backend.size() - 1);
        result.backends.push_back(view);
    }
    return result;
}

std::vector<PhysicalDevice> machine() {
    return {device("Some CPU", DeviceKind::cpu, {"CPU"}, false),
            device("Big GPU", DeviceKind::discrete_gpu, {"Vulkan0", "CUDA0"}, true),
            device("llvmpipe", DeviceKind::software_gpu, {"Vulkan1"}, false)};
}

TEST(DeviceNames, WhatDevicesPrintsIsReadBack) {
    Result<std::vector<PhysicalDevice>> devices = parse_devices(devices_to_json(machine()));
    ASSERT_TRUE(devices) << devices.error().message();
    ASSERT_EQ(devices->size(), 3u);
    EXPECT_EQ((*devices)[1].name, "Big GPU");
    EXPECT_EQ((*devices)[1].kind, DeviceKind::discrete_gpu);
    EXPECT_TRUE((*devices)[1].chosen_by_default);
    ASSERT_EQ((*devices)[1].backends.size(), 2u);
    EXPECT_EQ((*devices)[1].backends[1].id.name, "CUDA0");
    EXPECT_EQ((*devices)[2].kind, DeviceKind::software_gpu);
}

TEST(DeviceNames, WhatIsNoListIsAnError) {
    for (const char* wrong :
         {"", "x", "[]", "{}", "{\"devices\":1}", "{\"devices\":[1]}", "{\"devices\":[{\"kind\":\"cpu\"}]}",
          "{\"devices\":[{\"kind\":\"toaster\",\"backends\":[]}]}",
          "{\"devices\":[{\"kind\":\"cpu\",\"backends\":[{}]}]}"})
        EXPECT_FALSE(parse_devices(wrong).ok()) << wrong;
    EXPECT_TRUE(parse_devices("{\"devices\":[]}").ok());
}

// DEV17
TEST(DeviceNames, AMissingDeviceIsNeverReplaced) {
    for (const char* missing : {"HRX0", "CUDA7", "vulkan9", "no-such-device", "hrx"}) {
        Result<Texts> names = ggml_names({missing}, machine());
        ASSERT_FALSE(names) << missing;
        EXPECT_EQ(names.error().code, ErrorCode::not_found);
        EXPECT_THAT(names.error().message(), HasSubstr(missing));
    }
    EXPECT_FALSE(ggml_names({"Vulkan0", "HRX0"}, machine()).ok());
}

TEST(DeviceNames, NamesInAnyCase) {
    EXPECT_EQ(*ggml_names({"vulkan0"}, machine()), Texts{"Vulkan0"});
    EXPECT_EQ(*ggml_names({"VULKAN"}, machine()), Texts{"Vulkan0"});
    EXPECT_EQ(*ggml_names({"cuda"}, machine()), Texts{"CUDA0"});
    EXPECT_EQ(*ggml_names({"cpu"}, {}), Texts{"CPU"});
    EXPECT_EQ(*ggml_names({"NONE"}, machine()), Texts{"CPU"});
    EXPECT_EQ(*ggml_names({"cpu", "Vulkan0"}, machine()), Texts{"Vulkan0"});
    EXPECT_EQ(ggml_names({""}, machine()).error().code, ErrorCode::usage);
}

// DEV11, DEV13: without a name one backend of each GPU, and never software Vulkan
TEST(DeviceNames, WithoutANameTheDefaults) {
    EXPECT_EQ(ggml_names({}, machine())->size(), 1u);
    std::vector<PhysicalDevice> software = {machine()[0], machine()[2]};
    EXPECT_EQ(*ggml_names({}, software), Texts{"CPU"});
    EXPECT_EQ(*ggml_names({"vulkan"}, software), Texts{"Vulkan1"});
}

// a stored route may choose between the backends of one GPU, when nobody named any
TEST(DeviceNames, BackendsOfTheOneGpuAreOpenWhenNoneIsNamed) {
    ServeConfig config;
    note_devices(config, true, machine());
    EXPECT_EQ(config.defaults.open_devices, (Texts{"Vulkan0", "CUDA0"}));
    EXPECT_EQ(config.device_identities.at("CUDA0"), "CUDA0, Big GPU, ");
    EXPECT_EQ(config.device_identities.at("CUDA0"), device_identity(machine(), "CUDA0"));
    EXPECT_EQ(device_identity(machine(), "HRX0"), "HRX0, , ");

    ServeConfig named;
    note_devices(named, false, machine());
    EXPECT_TRUE(named.defaults.open_devices.empty());
    ServeConfig prefill;
    prefill.defaults.prefill_device = {"CUDA0"};
    note_devices(prefill, true, machine());
    EXPECT_TRUE(prefill.defaults.open_devices.empty());

    std::vector<PhysicalDevice> two = machine();
    two.push_back(device("Other GPU", DeviceKind::discrete_gpu, {"CUDA1"}, true));
    ServeConfig many;
    note_devices(many, true, two);
    EXPECT_TRUE(many.defaults.open_devices.empty()) << "several GPUs share the layers";
    ServeConfig software;
    note_devices(software, true, {machine()[0], machine()[2]});
    EXPECT_TRUE(software.defaults.open_devices.empty()) << "software Vulkan is never chosen by itself";

    EXPECT_TRUE(left_open({}));
    EXPECT_TRUE(left_open({"auto"}));
    EXPECT_FALSE(left_open({"vulkan"}));
    EXPECT_FALSE(left_open({"auto", "vulkan"}));
}

TEST(DeviceNames, TheDriverIsReadBack) {
    std::vector<PhysicalDevice> devices = machine();
    devices[1].backends[0].driver = "NVIDIA 580.159.04";
    const auto read = parse_devices(devices_to_json(devices));
    ASSERT_TRUE(read) << read.error().message();
    EXPECT_EQ(device_identity(*read, "Vulkan0"), "Vulkan0, Big GPU, NVIDIA 580.159.04");
}

TEST(DeviceNames, CpuOnly) {
    EXPECT_FALSE(cpu_only({}));
    EXPECT_TRUE(cpu_only({"cpu"}));
    EXPECT_TRUE(cpu_only({"CPU", "none"}));
    EXPECT_FALSE(cpu_only({"cpu", "Vulkan0"}));
}

TEST(DeviceNames, AChildThatFailsSaysHow) {
    std::string name = testing::TempDir() + "devices-XXXXXX";
    std::filesystem::path folder = mkdtemp(name.data());
    auto script = [&](const std::string& body) {
        std::filesystem::path file = folder / "program";
        std::ofstream(file) << "#!/bin/sh\n" << body << "\n";
        ::chmod(file.c_str(), 0700);
        return file;
    };
    Result<std::vector<PhysicalDevice>> crashed = ask_devices(script("echo no driver >&2; kill -SEGV $$"));
    ASSERT_FALSE(crashed);
    EXPECT_THAT(crashed.error().message(), AllOf(HasSubstr("signal 11"), HasSubstr("no driver")));
    Result<std::vector<PhysicalDevice>> failed = ask_devices(script("exit 3"));
    ASSERT_FALSE(failed);
    EXPECT_THAT(failed.error().message(), HasSubstr("exit code 3"));
    EXPECT_FALSE(ask_devices(script("echo hello")).ok());
    EXPECT_TRUE(ask_devices(script("echo '{\"devices\":[]}'")).ok());
    EXPECT_FALSE(ask_devices(folder / "none").ok());
    std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace onebit
