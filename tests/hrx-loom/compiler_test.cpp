// If this fails, libloom ends the process, or takes what it should refuse.
#include <thread>

#include "hrx/loom/bitcode_seal.h"
#include "hrx/loom/image_check.h"
#include "hrx/loom/image_info.h"
#include "tests/hrx-loom/fixture.h"

namespace onebit::loom::test {
namespace {

std::string text_of(const std::vector<std::byte>& bytes) {
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

TEST(Compiler, EveryTargetGivesAnImageForItself) {
    for (const Target& target : targets) {
        const auto image = must(library()->compile(request("case_polynomial", target.name.data()), LOOM_IMAGE)).bytes;
        EXPECT_TRUE(check_image("case_polynomial", target, image).ok()) << target.name;
        EXPECT_FALSE(check_image("case_windows", target, image).ok()) << target.name;
        for (const Target& other : targets) {
            if (&other == &target) continue;
            EXPECT_FALSE(check_image("case_polynomial", other, image).ok()) << other.name;
        }
    }
}

TEST(Compiler, PtxNamesItsChipAndTheOldestVersionThatKnowsIt) {
    const struct {
        const char *target, *version;
    } cases[] = {{"sm_80", ".version 7.5\n"},
                 {"sm_86", ".version 7.5\n"},
                 {"sm_89", ".version 7.8\n"},
                 {"sm_90", ".version 7.8\n"}};
    for (const auto& [target, version] : cases) {
        const std::string ptx = text_of(must(library()->compile(request("case_windows", target), LOOM_IMAGE)).bytes);
        EXPECT_NE(ptx.find(version), std::string::npos) << target;
        EXPECT_NE(ptx.find(std::string(".target ") + target + "\n"), std::string::npos) << target;
        EXPECT_NE(ptx.find(".maxntid 64"), std::string::npos) << target;
    }
}

TEST(Compiler, TheSameRequestGivesTheSameBytesOnAllThreads) {
    const auto want = must(library()->compile(request("case_windows", "gfx1151"), LOOM_IMAGE)).bytes;
    std::vector<std::thread> threads;
    std::vector<int> same(4);
    for (int& result : same) {
        threads.emplace_back([&want, &result] {
            for (int i = 0; i < 5; i++) {
                const auto other = library()->compile(request("case_greedy", "sm_90"), LOOM_IMAGE);
                const auto got = library()->compile(request("case_windows", "gfx1151"), LOOM_IMAGE);
                result += got.ok() && other.ok() && got->bytes == want ? 1 : 0;
            }
        });
    }
    for (auto& thread : threads) thread.join();
    EXPECT_EQ(same, std::vector<int>(4, 5));
}

TEST(Compiler, WhatLlvmCannotCompileIsAnErrorEachTime) {
    for (int i = 0; i < 3; i++) {
        const auto foreign = library()->compile(request("case_foreign", "sm_90", {{"use", 1}}), LOOM_IMAGE);
        ASSERT_FALSE(foreign.ok());
        EXPECT_NE(foreign.error().message().find("case_foreign"), std::string::npos) << foreign.error().message();
        EXPECT_FALSE(foreign.error().found.empty());
        const auto greedy = library()->compile(request("case_greedy", "gfx1151", {{"words", 2}}), LOOM_IMAGE);
        ASSERT_FALSE(greedy.ok());
        EXPECT_NE(greedy.error().message().find("case_greedy"), std::string::npos) << greedy.error().message();
        EXPECT_TRUE(library()->compile(request("case_greedy", "gfx1151"), LOOM_IMAGE).ok());
        EXPECT_TRUE(library()->compile(request("case_foreign", "sm_90"), LOOM_IMAGE).ok());
    }
}

TEST(Compiler, DamagedBitcodeIsRefused) {
    const Kernel& kernel = *must(find_kernel("case_generation"));
    const auto refused = [&](std::vector<std::byte> bitcode) {
        Kernel copy = kernel;
        copy.amdgcn = bitcode;
        const Request wanted{&copy, find_target("gfx1151"), {}};
        const auto compiled = library()->compile(wanted, LOOM_IMAGE);
        return !compiled.ok() && !compiled.error().message().empty();
    };
    const std::vector<std::byte> sound(kernel.amdgcn.begin(), kernel.amdgcn.end());
    EXPECT_FALSE(refused(sound));
    for (size_t i = 0; i < sound.size(); i++) {
        auto damaged = sound;
        damaged[i] ^= std::byte{0x10};
        ASSERT_TRUE(refused(damaged)) << "byte " << i;
    }
    for (const size_t size :
         {size_t{0}, size_t{1}, size_t{7}, size_t{8}, seal_bytes - 1, seal_bytes, seal_bytes + 1, sound.size() - 1}) {
        EXPECT_TRUE(refused({sound.begin(), sound.begin() + static_cast<std::ptrdiff_t>(size)})) << size;
    }
    auto longer = sound;
    longer.push_back({});
    EXPECT_TRUE(refused(longer));
    // for the other vendor
    EXPECT_TRUE(refused({kernel.nvptx.begin(), kernel.nvptx.end()}));
}

TEST(Compiler, AMissingLibraryIsNamed) {
    const auto opened = Library::open("/nowhere/libloom.so");
    ASSERT_FALSE(opened.ok());
    EXPECT_EQ(opened.error().code, ErrorCode::unavailable);
    EXPECT_NE(opened.error().message().find("/nowhere/libloom.so"), std::string::npos);
    EXPECT_FALSE(Library::open(ONEBIT_HRX_EMULATOR).ok());
}

TEST(Compiler, ImageInfoIsWhatTheAssemblySays) {
    for (const char* name : {"case_windows", "row_scale", "case_right_sum"}) {
        const auto wanted = request(name, "gfx1151");
        const auto image = must(library()->compile(wanted, LOOM_IMAGE)).bytes;
        const std::string assembly = text_of(must(library()->compile(wanted, LOOM_ASSEMBLY)).bytes);
        const auto info = must(read_image_info(name, image));
        const auto says = [&](const std::string& key, uint32_t value) {
            return assembly.find(key + std::to_string(value) + "\n") != std::string::npos;
        };
        EXPECT_TRUE(says(".vgpr_count:     ", info.vector_registers)) << name << info.vector_registers;
        EXPECT_TRUE(says(".sgpr_count:     ", info.scalar_registers)) << name;
        EXPECT_TRUE(says(".group_segment_fixed_size: ", info.lds_bytes)) << name << info.lds_bytes;
        EXPECT_GT(info.code_bytes, 0u);
        for (size_t size = 0; size < image.size(); size++) {
            (void)read_image_info(name, std::span(image).first(size)).ok();
            EXPECT_FALSE(check_image(name, *wanted.target, std::span(image).first(size)).ok()) << size;
        }
    }
}

// Register files and granules as LLVM has them: its own estimate for a kernel without LDS.
TEST(Compiler, Occupancy) {
    const Target& strix_halo = *find_target("gfx1151");
    const Target& strix_point = *find_target("gfx1150");
    const auto waves = [](const Target& target, uint32_t registers) {
        return estimate_occupancy(target, registers, 0, 256).waves();
    };
    EXPECT_EQ(waves(strix_halo, 0), 16u);
    EXPECT_EQ(waves(strix_halo, 96), 16u);
    EXPECT_EQ(waves(strix_halo, 97), 12u);
    EXPECT_EQ(waves(strix_halo, 256), 5u);
    EXPECT_EQ(waves(strix_point, 64), 16u);
    EXPECT_EQ(waves(strix_point, 65), 12u);
    EXPECT_EQ(waves(strix_point, 256), 4u);
    EXPECT_EQ(estimate_occupancy(strix_halo, 32, 65536, 256).waves(), 4u);
    EXPECT_EQ(estimate_occupancy(strix_halo, 32, 65536, 32).waves(), 1u);
    EXPECT_EQ(estimate_occupancy(strix_halo, 32, 1, 256).waves(), 16u);
    // what an image claims need not be so
    EXPECT_EQ(estimate_occupancy(strix_halo, UINT32_MAX, UINT32_MAX, UINT32_MAX).waves(), 1u);
}

}  // namespace
}  // namespace onebit::loom::test
