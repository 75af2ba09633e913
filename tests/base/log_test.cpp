// If this fails, log lines are torn, lost or carry control characters to the terminal.
#include "base/log.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "base/unique_fd.h"
#include "tests/base/scratch.h"

namespace onebit {
namespace {

// Standard error goes to a file while this lives.
class CapturedStderr {
public:
    explicit CapturedStderr(const std::filesystem::path& path) : path_(path), saved_(::dup(STDERR_FILENO)) {
        UniqueFd file(::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600));
        ::dup2(file.get(), STDERR_FILENO);
    }
    ~CapturedStderr() { ::dup2(saved_.get(), STDERR_FILENO); }
    std::vector<std::string> lines() const {
        std::istringstream stream(test::read_file(path_));
        std::vector<std::string> lines;
        for (std::string line; std::getline(stream, line);) lines.push_back(line);
        return lines;
    }

private:
    std::filesystem::path path_;
    UniqueFd saved_;
};

class Log : public testing::Test {
protected:
    void TearDown() override { set_log_level(LogLevel::info); }
    test::ScratchFolder scratch;
};

TEST_F(Log, WritesTimeLevelRoomAndText) {
    CapturedStderr captured(scratch / "log");
    log_warning("server", "port 8080 is open to the network");
    ASSERT_EQ(captured.lines().size(), 1u);
    EXPECT_THAT(captured.lines()[0],
                testing::MatchesRegex(
                    "[0-9]{2}:[0-9]{2}:[0-9]{2}\\.[0-9]{3} warning server: port 8080 is open to the network"));
}

TEST_F(Log, WritesThisLevelAndThoseBeforeIt) {
    const std::vector<LogLevel> levels = {LogLevel::error, LogLevel::warning, LogLevel::info, LogLevel::verbose,
                                          LogLevel::debug};
    for (size_t most = 0; most < levels.size(); most++) {
        CapturedStderr captured(scratch / ("log" + std::to_string(most)));
        set_log_level(levels[most]);
        EXPECT_EQ(log_level(), levels[most]);
        for (const LogLevel level : levels) log_line(level, "room", "text");
        EXPECT_EQ(captured.lines().size(), most + 1);
    }
}

TEST_F(Log, MakesTextPrintable) {
    CapturedStderr captured(scratch / "log");
    log_info("a\nb", "one\ntwo\x1b[2J\xff");
    ASSERT_EQ(captured.lines().size(), 1u);
    EXPECT_THAT(captured.lines()[0], testing::EndsWith("a b: one two [2J\uFFFD"));
}

TEST_F(Log, EmptyText) {
    CapturedStderr captured(scratch / "log");
    log_info("", "");
    EXPECT_EQ(captured.lines().size(), 1u);
}

TEST_F(Log, CutsHugeTextAndSaysSo) {
    CapturedStderr captured(scratch / "log");
    log_info("room", std::string(16 * 1024, 'x'));
    log_info("room", std::string(16 * 1024 + 1, 'x'));
    const auto lines = captured.lines();
    ASSERT_EQ(lines.size(), 2u);
    EXPECT_THAT(lines[0], testing::EndsWith("x"));
    EXPECT_THAT(lines[1], testing::EndsWith("x (1 bytes more)"));
}

// A pipe takes a write above PIPE_BUF in parts, so lines of many threads could be torn there.
TEST_F(Log, LinesOfManyThreadsStayWhole) {
    int ends[2];
    ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
    UniqueFd reader(ends[0]), writer(ends[1]), saved(::dup(STDERR_FILENO));
    ::dup2(writer.get(), STDERR_FILENO);
    std::string all;
    std::thread collector([&] {
        char piece[4096];
        for (ssize_t count; (count = ::read(reader.get(), piece, sizeof piece)) > 0;)
            all.append(piece, static_cast<size_t>(count));
    });
    constexpr size_t threads = 4, lines = 50, length = 9000;
    std::vector<std::thread> writers;
    for (size_t t = 0; t < threads; t++) {
        writers.emplace_back([t] {
            for (size_t i = 0; i < lines; i++) log_info("room", std::string(length, static_cast<char>('a' + t)));
        });
    }
    for (auto& thread : writers) thread.join();
    ::dup2(saved.get(), STDERR_FILENO);
    writer.reset();
    collector.join();
    std::istringstream stream(all);
    size_t count = 0;
    for (std::string line; std::getline(stream, line); count++) {
        ASSERT_GT(line.size(), length);
        const std::string text = line.substr(line.size() - length);
        ASSERT_EQ(text, std::string(length, text[0]));
    }
    EXPECT_EQ(count, threads * lines);
}

TEST_F(Log, AClosedStandardErrorIsIgnored) {
    UniqueFd saved(::dup(STDERR_FILENO));
    ::close(STDERR_FILENO);
    errno = 42;
    log_error("room", "nobody reads this");
    const int after = errno;
    ::dup2(saved.get(), STDERR_FILENO);
    EXPECT_EQ(after, 42) << "a log line must not disturb the caller's errno";
}

}  // namespace
}  // namespace onebit
