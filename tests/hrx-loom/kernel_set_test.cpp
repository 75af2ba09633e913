// If this fails, a kernel of the set lacks an image that the build should have made, or its code uses an instruction
// that LLVM 19 handles wrongly.
#include <set>

#include "hrx/loom/image_check.h"
#include "tests/hrx-loom/fixture.h"

namespace onebit::loom::test {
namespace {

TEST(KernelSet, EveryKernelHasASoundImageForEveryTarget) {
    ASSERT_FALSE(kernel_set().empty());
    std::set<std::string_view> names;
    for (const Kernel& kernel : kernel_set()) {
        EXPECT_TRUE(names.insert(kernel.name).second) << kernel.name << " is there twice";
        EXPECT_EQ(must(find_kernel(kernel.name))->name, kernel.name);
        for (const char* target : {"gfx1100", "gfx1101", "gfx1102", "gfx1103", "gfx1150", "gfx1151", "gfx1152",
                                   "gfx1200", "gfx1201", "sm_80", "sm_90"}) {
            const auto image = generic_image(kernel, target);
            ASSERT_TRUE(image.ok()) << kernel.name << ": " << image.error().message();
            EXPECT_EQ(image->target, target);
            const auto sound = check_image(kernel.name, *find_target(target), image->bytes);
            EXPECT_TRUE(sound.ok()) << kernel.name << " for " << target << ": " << sound.error().message();
        }
    }
}

TEST(KernelSet, NoKernelUsesWhatLlvmMovesIntoDivergentCode) {
    for (const Kernel& kernel : kernel_set()) {
        const auto made = must(make_request(kernel, "gfx1151", {}));
        const auto assembly = must(library()->compile(made, LOOM_ASSEMBLY)).bytes;
        const std::string text(reinterpret_cast<const char*>(assembly.data()), assembly.size());
        EXPECT_EQ(text.find("v_permlane"), std::string::npos) << kernel.name;
    }
}

}  // namespace
}  // namespace onebit::loom::test
