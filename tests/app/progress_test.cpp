// If this fails, a download's progress floods a log, or draws over the edge of a terminal.
#include "app/progress.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

namespace onebit {
namespace {

using std::chrono::milliseconds;
using testing::HasSubstr;

TEST(Progress, ALineForEachTenthWithoutATerminal) {
    Progress progress(false, 80);
    int lines = 0;
    for (uint64_t done = 0; done <= 1000; ++done) {
        std::string text = progress.update("m.gguf", done, 1000, milliseconds(done));
        lines += int(std::count(text.begin(), text.end(), '\n'));
        EXPECT_EQ(text.find('\r'), std::string::npos);
        EXPECT_EQ(text.find('\x1b'), std::string::npos);
    }
    EXPECT_EQ(lines, 11);
    EXPECT_EQ(progress.finish(), "");
}

TEST(Progress, ABarThatFitsTheTerminal) {
    for (unsigned columns : {20u, 40u, 80u, 200u})
        for (const std::string& file :
             {std::string("m"), std::string(300, 'x') + ".gguf", std::string("Zürich-\xff\x1b[31m.gguf")}) {
            Progress progress(true, columns);
            milliseconds now{0};
            for (uint64_t done :
                 {uint64_t(0), uint64_t(1), uint64_t(1) << 39, (uint64_t(1) << 40) - 1, uint64_t(1) << 40}) {
                std::string text = progress.update(file, done, uint64_t(1) << 40, now += milliseconds(5000));
                ASSERT_FALSE(text.empty());
                EXPECT_EQ(text.find("\x1b[31m"), std::string::npos);
                size_t shown = 0;
                for (unsigned char c : text.substr(0, text.rfind('\x1b'))) shown += c != '\r' && (c & 0xC0) != 0x80;
                // the numbers are shown whole, so a very narrow terminal may wrap
                EXPECT_TRUE(columns < 80 || shown < columns) << shown;
            }
            EXPECT_EQ(progress.finish(), "\n");
        }
}

TEST(Progress, IsDrawnTenTimesASecondAtMost) {
    Progress progress(true, 80);
    int drawn = 0;
    for (int ms = 0; ms < 1000; ++ms) drawn += !progress.update("m", uint64_t(ms), 100000, milliseconds(ms)).empty();
    EXPECT_LE(drawn, 11);
    EXPECT_GE(drawn, 9);
    EXPECT_THAT(progress.update("m", 100000, 100000, milliseconds(1000)), HasSubstr("100 %"));
}

TEST(Progress, ANewFileEndsTheOldLine) {
    Progress progress(true, 80);
    progress.update("a", 1, 2, milliseconds(0));
    EXPECT_EQ(progress.update("b", 1, 2, milliseconds(1))[0], '\n');
}

TEST(Progress, UnknownAndWrongSizes) {
    Progress progress(false, 80);
    EXPECT_THAT(progress.update("m", 5, 0, milliseconds(0)), HasSubstr("unknown size"));
    Progress more(false, 80);
    EXPECT_THAT(more.update("m", 10, 5, milliseconds(0)), HasSubstr("100 %"));
    EXPECT_THAT(Progress(false, 80).update("m", UINT64_MAX, UINT64_MAX, milliseconds(0)), HasSubstr("100 %"));
}

}  // namespace
}  // namespace onebit
