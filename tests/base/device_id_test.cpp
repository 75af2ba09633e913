// If this fails, one GPU is listed twice or two GPUs as one, or a hostile address is taken for a device.
#include "base/device_id.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace onebit {
namespace {

using namespace std::string_literals;

TEST(PciAddressText, ParsesEveryFormThatDriversPrint) {
    EXPECT_EQ(*parse_pci_address("0000:c4:00.0"), (PciAddress{0, 0xc4, 0, 0}));
    EXPECT_EQ(*parse_pci_address("c4:00.0"), (PciAddress{0, 0xc4, 0, 0}));
    EXPECT_EQ(*parse_pci_address("00000000:C4:1F.7"), (PciAddress{0, 0xc4, 0x1f, 7})) << "CUDA";
    EXPECT_EQ(*parse_pci_address("10000:01:00.0"), (PciAddress{0x10000, 1, 0, 0})) << "Intel VMD";
    EXPECT_EQ(*parse_pci_address("ffffffff:ff:1f.7"), (PciAddress{0xffffffff, 0xff, 0x1f, 7}));
}

TEST(PciAddressText, ComesBackAsItWas) {
    for (const char* text : {"0000:c4:00.0", "10000:01:1f.7", "ffffffff:ff:1f.7"}) {
        EXPECT_EQ(to_string(*parse_pci_address(text)), text);
    }
    EXPECT_EQ(to_string(*parse_pci_address("C4:00.0")), "0000:c4:00.0");
}

TEST(PciAddressText, RefusesAnythingElse) {
    for (const std::string& text : {""s,
                                    ":"s,
                                    "0"s,
                                    "c4:00"s,
                                    "c4:00.8"s,
                                    "c4:20.0"s,
                                    "c4:00.0 "s,
                                    " c4:00.0"s,
                                    "c4-00.0"s,
                                    "c4:00:0"s,
                                    ":c4:00.0"s,
                                    "000:c4:00.0"s,
                                    "000000000:c4:00.0"s,
                                    "0000c4:00.0"s,
                                    "0000-c4:00.0"s,
                                    "-001:c4:00.0"s,
                                    "+001:c4:00.0"s,
                                    "0x01:c4:00.0"s,
                                    "0000:-4:00.0"s,
                                    "0000:c4:-1.0"s,
                                    "0000:c4:00.-"s,
                                    "0000:c4:00.00"s,
                                    "0000:c4:00.0\n"s,
                                    "0000:c4:00.0\0"s,
                                    "0000:g4:00.0"s,
                                    "0000:c4:00.\xff"s,
                                    std::string(1 << 20, 'a')}) {
        const auto result = parse_pci_address(text);
        ASSERT_FALSE(result.ok()) << text.substr(0, 40);
        EXPECT_EQ(result.error().code, ErrorCode::usage);
        EXPECT_LT(result.error().message().size(), 500u) << "a huge input is not repeated whole";
    }
}

TEST(DeviceUuidText, ParsesEveryFormThatDriversPrint) {
    const DeviceUuid uuid = {0x01, 0x23, 0x45, 0x67, 0x89, 0xab, 0xcd, 0xef,
                             0xfe, 0xdc, 0xba, 0x98, 0x76, 0x54, 0x32, 0x10};
    for (const char* text : {"0123456789abcdeffedcba9876543210", "01234567-89ab-cdef-fedc-ba9876543210",
                             "GPU-01234567-89AB-CDEF-FEDC-BA9876543210", "GPU-0123456789abcdeffedcba9876543210"}) {
        ASSERT_TRUE(parse_device_uuid(text).ok()) << text;
        EXPECT_EQ(*parse_device_uuid(text), uuid);
    }
    EXPECT_EQ(to_string(uuid), "01234567-89ab-cdef-fedc-ba9876543210");
}

TEST(DeviceUuidText, RefusesAnythingElse) {
    for (const std::string& text :
         {""s, "GPU-"s, "-"s, "0123456789abcdeffedcba987654321"s, "0123456789abcdeffedcba98765432100"s,
          "GPU-GPU-0123456789abcdeffedcba9876543210"s, "MIG-01234567-89ab-cdef-fedc-ba9876543210"s,
          "0123456-789ab-cdef-fedc-ba9876543210"s, "01234567-89ab-cdef-fedcba-9876543210"s, std::string(36, '-'),
          std::string(32, '-'), std::string(32, '\0'), "g123456789abcdeffedcba9876543210"s,
          "-123456789abcdeffedcba9876543210"s, "+123456789abcdeffedcba9876543210"s, "0x23456789abcdeffedcba9876543210"s,
          " 0123456789abcdeffedcba987654321"s, std::string(1 << 20, '0')}) {
        const auto result = parse_device_uuid(text);
        ASSERT_FALSE(result.ok()) << text.substr(0, 40);
        EXPECT_EQ(result.error().code, ErrorCode::usage);
        EXPECT_LT(result.error().message().size(), 500u);
    }
}

const PciAddress bus1{0, 1, 0, 0}, bus2{0, 2, 0, 0};
const DeviceUuid uuid1 = {1}, uuid2 = {2};

// DEV: one physical GPU is one entry, whatever backends see it.
TEST(SameHardware, AddressDecidesWhereBothHaveOne) {
    const DeviceId vulkan{"Vulkan", "Vulkan0", bus1, uuid1}, cuda{"CUDA", "CUDA0", bus1, uuid2};
    EXPECT_TRUE(vulkan.same_hardware(cuda)) << "drivers may make up different UUIDs";
    const DeviceId second{"CUDA", "CUDA1", bus2, uuid1};
    EXPECT_FALSE(vulkan.same_hardware(second)) << "two identical cards";
}

TEST(SameHardware, UuidDecidesWhereAnAddressIsMissing) {
    const DeviceId vulkan{"Vulkan", "Vulkan0", bus1, uuid1};
    EXPECT_TRUE(vulkan.same_hardware({"CUDA", "CUDA0", {}, uuid1}));
    EXPECT_TRUE((DeviceId{"CUDA", "CUDA0", {}, uuid1}).same_hardware(vulkan));
    EXPECT_FALSE(vulkan.same_hardware({"CUDA", "CUDA0", {}, uuid2}));
    EXPECT_FALSE(vulkan.same_hardware({"Vulkan", "Vulkan0", {}, {}}))
        << "nothing to compare, so not known to be the same";
}

TEST(SameHardware, NamesDecideWithoutEither) {
    const DeviceId cpu{"CPU", "CPU", {}, {}};
    EXPECT_TRUE(cpu.same_hardware(cpu));
    EXPECT_FALSE(cpu.same_hardware({"BLAS", "BLAS", {}, {}}));
}

TEST(SameHardware, AUuidOfZerosIsNone) {
    const DeviceId a{"Vulkan", "Vulkan0", {}, DeviceUuid{}}, b{"Vulkan", "Vulkan1", {}, DeviceUuid{}};
    EXPECT_FALSE(a.same_hardware(b)) << "some drivers leave the UUID at zero";
    EXPECT_TRUE(a.same_hardware(a));
}

}  // namespace
}  // namespace onebit
