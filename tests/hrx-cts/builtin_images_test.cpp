// Breaks when the images in the library depend on the machine that built them, or one is found for a chip it is not
// for.
#include "hrx/runtime/builtin_images.h"

#include <gtest/gtest.h>

namespace onebit::hrx::runtime {
namespace {

std::string text_of(const std::string& target) {
    const auto image = builtin_image(target);
    return {reinterpret_cast<const char*>(image.data()), image.size()};
}

// With the version of a CUDA that is installed, an older driver would refuse it; without one it would not compile.
TEST(BuiltinImages, PtxIsOfTheOldestVersionThatKnowsTheChip) {
    const std::string ptx = text_of("sm_80");
    if (ptx.empty()) GTEST_SKIP() << "built without clang 19";
    EXPECT_NE(ptx.find(".version 7.5\n.target sm_80\n"), std::string::npos) << ptx.substr(0, 200);
}

TEST(BuiltinImages, NoneForAnUnknownChip) {
    for (const char* target : {"", "sm_8", "sm_800", "gfx115", "gfx9999"})
        EXPECT_TRUE(builtin_image(target).empty()) << target;
}

}  // namespace
}  // namespace onebit::hrx::runtime
