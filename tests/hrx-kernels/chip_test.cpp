// If this fails, the tests that say they run the images of another chip of gfx11 run those of gfx1151.
#include <cstdlib>

#include "tests/hrx-kernels/kernel_testing.h"

namespace onebit::hrx::kernels::test {
namespace {

ONEBIT_KERNEL_TEST(ChipTest);

TEST_P(ChipTest, TheEmulatedOneIsThatOfTheEnvironment) {
    if (std::string(GetParam()) != "amdgpu") GTEST_SKIP() << "not an AMD GPU";
    if (std::string(info().name).find("emulator") == std::string::npos) GTEST_SKIP() << "a real GPU";
    const char* wanted = std::getenv("ONEBIT_EMULATOR_CHIP");
    EXPECT_EQ(std::string(info().architecture), wanted != nullptr ? wanted : "gfx1151");
}

}  // namespace
}  // namespace onebit::hrx::kernels::test
