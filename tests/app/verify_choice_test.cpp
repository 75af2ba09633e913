// If this fails, verify compares other devices than those that were named, or a device with itself.
#include "app/verify_choice.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace onebit {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

PhysicalDevice device(DeviceKind kind, const std::vector<std::string>& backends, bool chosen) {
    PhysicalDevice result;
    result.name = backends.front();
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

const std::vector<PhysicalDevice> only_cpu = {device(DeviceKind::cpu, {"CPU"}, false)};
const std::vector<PhysicalDevice> machine = {device(DeviceKind::cpu, {"CPU"}, false),
                                             device(DeviceKind::discrete_gpu, {"Vulkan0", "CUDA0"}, true)};

TEST(ParseDeviceChoice, NamesAndFlagsOfServe) {
    auto choice = parse_device_choice("--a", "vulkan");
    ASSERT_TRUE(choice.ok());
    EXPECT_EQ(choice->devices, "vulkan");
    EXPECT_FALSE(choice->is_split());
    choice = parse_device_choice("--a", "  --device Vulkan0   --prefill-device=cuda --prefill-min-tokens 512 ");
    ASSERT_TRUE(choice.ok()) << choice.error().message();
    EXPECT_EQ(choice->devices, "Vulkan0");
    EXPECT_EQ(choice->prefill_device, "cuda");
    EXPECT_EQ(choice->prefill_min_tokens, 512u);
    choice = parse_device_choice("--a", "--prefill-min-tokens auto --prefill-device cuda --device vulkan");
    ASSERT_TRUE(choice.ok());
    EXPECT_FALSE(choice->prefill_min_tokens);
    EXPECT_TRUE(choice->is_split());
}

TEST(ParseDeviceChoice, WrongOnesAreUsageErrorsThatNameTheFlag) {
    for (const char* text :
         {"", "   ", "vulkan cuda", "--device", "--device=", "--prefill-device cpu", "--devise vulkan", "-x y",
          "--device vulkan --prefill-device", "--device vulkan --prefill-min-tokens 32",
          "--device vulkan --prefill-device cpu --prefill-min-tokens 0",
          "--device vulkan --prefill-device cpu --prefill-min-tokens 4294967296",
          "--device vulkan --prefill-device cpu --prefill-min-tokens many", "--device vulkan cuda"}) {
        const auto choice = parse_device_choice("--third", text);
        ASSERT_FALSE(choice.ok()) << text;
        EXPECT_EQ(choice.error().code, ErrorCode::usage);
        EXPECT_EQ(choice.error().subject, "--third");
    }
}

TEST(ChooseSides, DefaultsAreGpuAgainstCpu) {
    const auto sides = choose_sides("", "", "", machine);
    ASSERT_TRUE(sides.ok()) << sides.error().message();
    EXPECT_EQ(sides->reference.devices, "cpu");
    EXPECT_FALSE(sides->third);
    const auto none = choose_sides("", "", "", only_cpu);
    ASSERT_FALSE(none.ok());
    EXPECT_EQ(none.error().code, ErrorCode::usage);
}

// the reference of a split is its owner alone, and the other member shows what is usual
TEST(ChooseSides, DefaultsOfASplit) {
    auto sides = choose_sides("--device vulkan --prefill-device CUDA0", "", "", machine);
    ASSERT_TRUE(sides.ok()) << sides.error().message();
    EXPECT_EQ(sides->reference.devices, "vulkan");
    ASSERT_TRUE(sides->third);
    EXPECT_EQ(sides->third->devices, "CUDA0");
    sides = choose_sides("--device vulkan --prefill-device CUDA0", "cuda", "", machine);
    ASSERT_TRUE(sides.ok());
    EXPECT_FALSE(sides->third) << "the reference under another name";
}

TEST(ChooseSides, TheCpuIsTheThirdOfTwoGpus) {
    auto sides = choose_sides("Vulkan0", "CUDA0", "", machine);
    ASSERT_TRUE(sides.ok());
    ASSERT_TRUE(sides->third);
    EXPECT_EQ(sides->third->devices, "cpu");
    sides = choose_sides("Vulkan0", "CUDA0", "none", machine);
    EXPECT_FALSE(sides->third);
    sides = choose_sides("cpu", "none", "Vulkan0", machine);
    ASSERT_TRUE(sides->third);
    EXPECT_FALSE(choose_sides("Metal0", "cpu", "", machine).ok());
}

TEST(ResolveChoice, PlainNamesBecomeGgmlNames) {
    DeviceChoice choice;
    choice.devices = "cuda";
    auto resolved = resolve_choice(choice, machine, {});
    ASSERT_TRUE(resolved.ok());
    EXPECT_THAT(resolved->devices, ElementsAre("CUDA0"));
    EXPECT_FALSE(resolved->split);
    choice.devices = "none";
    resolved = resolve_choice(choice, machine, {});
    ASSERT_TRUE(resolved.ok());
    EXPECT_THAT(resolved->devices, ElementsAre("CPU"));
    choice.devices = "Metal0";
    EXPECT_EQ(resolve_choice(choice, machine, {}).error().code, ErrorCode::not_found);
}

TEST(ResolveChoice, ASplitIsMadeOfTheTwoDevices) {
    const auto choice = parse_device_choice("--a", "--device vulkan --prefill-device cuda --prefill-min-tokens 64");
    ASSERT_TRUE(choice.ok());
    std::string asked;
    const MakeSplit make = [&asked](const std::string& decode, const std::string& prefill,
                                    std::optional<uint32_t> least) -> Result<SplitDevice> {
        asked = decode + "+" + prefill + "+" + std::to_string(least.value_or(0));
        SplitDevice split;
        split.device = "Tandem0";
        split.min_tokens = 64;
        split.counters = [] { return std::vector<MemberTokens>{{"CUDA0", 1, 2}}; };
        return split;
    };
    const auto resolved = resolve_choice(*choice, machine, make);
    ASSERT_TRUE(resolved.ok()) << resolved.error().message();
    EXPECT_EQ(asked, "Vulkan0+CUDA0+64");
    EXPECT_THAT(resolved->devices, ElementsAre("Tandem0"));
    EXPECT_TRUE(resolved->split);
    EXPECT_EQ(resolved->prefill_min_tokens, 64u);
    EXPECT_EQ(resolved->counters().size(), 1u);
    EXPECT_THAT(resolved->label, HasSubstr("prefill CUDA0, decode Vulkan0"));
    const auto same = parse_device_choice("--a", "--device Vulkan0 --prefill-device vulkan");
    EXPECT_FALSE(resolve_choice(*same, machine, make)->split) << "one device for both is no split";
    const auto several = parse_device_choice("--a", "--device Vulkan0,CUDA0 --prefill-device vulkan");
    EXPECT_EQ(resolve_choice(*several, machine, make).error().code, ErrorCode::usage);
}

}  // namespace
}  // namespace onebit
