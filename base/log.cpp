#include "base/log.h"

#include <sys/time.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <ctime>
#include <mutex>
#include <new>
#include <string>

#include "base/error.h"

namespace onebit {

namespace {

std::atomic<LogLevel> current_level{LogLevel::info};

// Never destroyed: threads may still log while the process ends.
std::mutex& write_mutex() {
    static auto* mutex = new std::mutex;
    return *mutex;
}

constexpr size_t max_text = 16 << 10;

const char* name(LogLevel level) {
    switch (level) {
        case LogLevel::error:
            return "error";
        case LogLevel::warning:
            return "warning";
        case LogLevel::info:
            return "info";
        case LogLevel::verbose:
            return "verbose";
        case LogLevel::debug:
            return "debug";
    }
    return "info";
}

std::string time_of_day() {
    timeval now{};
    gettimeofday(&now, nullptr);
    tm local{};
    localtime_r(&now.tv_sec, &local);
    char text[32];
    std::snprintf(text, sizeof text, "%02d:%02d:%02d.%03d", local.tm_hour, local.tm_min, local.tm_sec,
                  static_cast<int>(now.tv_usec / 1000));
    return text;
}

}  // namespace

void set_log_level(LogLevel level) { current_level.store(level, std::memory_order_relaxed); }

LogLevel log_level() { return current_level.load(std::memory_order_relaxed); }

void log_line(LogLevel level, std::string_view room, std::string_view text) {
    if (level > log_level()) return;
    const int saved_errno = errno;
    try {
        std::string line = time_of_day();
        line.append(" ").append(name(level)).append(" ").append(printable(room)).append(": ");
        line += printable(text.substr(0, max_text));
        if (text.size() > max_text) line += " (" + std::to_string(text.size() - max_text) + " bytes more)";
        line += '\n';
        std::lock_guard lock(write_mutex());
        for (std::string_view rest = line; !rest.empty();) {
            const ssize_t written = ::write(STDERR_FILENO, rest.data(), rest.size());
            if (written < 0 && errno == EINTR) continue;
            if (written <= 0) break;
            rest.remove_prefix(static_cast<size_t>(written));
        }
    } catch (const std::bad_alloc&) {
        // a line that finds no memory is one that cannot be written
    }
    errno = saved_errno;
}

}  // namespace onebit
