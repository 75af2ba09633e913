// If this fails, the kernel that docs/hrx-kernels.md shows is not the one that is built and run here.
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

namespace {

std::string read(const char* file) {
    std::ifstream stream(file);
    std::ostringstream text;
    text << stream.rdbuf();
    return text.str();
}

TEST(Guide, ShowsTheExampleAsItIsBuilt) {
    const std::string guide = read(ONEBIT_LOOM_GUIDE), example = read(ONEBIT_LOOM_EXAMPLE);
    ASSERT_FALSE(example.empty());
    const std::string body = example.substr(example.find('\n') + 1);
    EXPECT_NE(guide.find("```cpp\n" + body + "```"), std::string::npos);
}

}  // namespace
