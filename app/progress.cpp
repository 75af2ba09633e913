#include "app/progress.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>

#include "app/output.h"
#include "base/log.h"
#include "engine/devices_text.h"

namespace onebit {
namespace {

constexpr std::chrono::milliseconds kBetween{100};

unsigned terminal_columns() {
    winsize size{};
    return ::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col >= 20 ? size.ws_col : 80;
}

std::string time_text(uint64_t seconds) {
    char text[32];
    if (seconds >= 3600)
        std::snprintf(text, sizeof text, "%uh%02um", unsigned(seconds / 3600), unsigned(seconds / 60 % 60));
    else
        std::snprintf(text, sizeof text, "%um%02us", unsigned(seconds / 60), unsigned(seconds % 60));
    return text;
}

}  // namespace

Progress::Progress()
    : terminal_(error_is_terminal()), silent_(log_level() < LogLevel::info), columns_(terminal_columns()) {}

std::string Progress::update(const std::string& file, uint64_t done, uint64_t total, std::chrono::milliseconds now) {
    bool fresh = file != file_;
    std::string before;
    if (fresh) {
        before = finish();
        file_ = file;
        first_done_ = done;
        begun_ = now;
        last_tenth_ = -1;
    }
    bool complete = total > 0 && done >= total;
    int percent = total ? int(std::min<uint64_t>(done, total) / (double(total) / 100)) : 0;
    std::string shown = printable(file);
    if (!terminal_) {
        if (!fresh && percent / 10 == last_tenth_) return before;
        last_tenth_ = percent / 10;
        return before + shown + ": " + std::to_string(percent) + " %, " + bytes_text(done) + " of " +
               (total ? bytes_text(total) : "unknown size") + "\n";
    }
    if (!fresh && !complete && now - last_ < kBetween) return before;
    last_ = now;
    open_ = true;
    std::string right = " " + std::to_string(percent) + " % of " + (total ? bytes_text(total) : "?");
    double seconds = double((now - begun_).count()) / 1000;
    if (seconds > 1 && done > first_done_) {
        double rate = double(done - first_done_) / seconds;
        right += ", " + bytes_text(uint64_t(rate)) + "/s";
        if (!complete && total > done) right += ", " + time_text(uint64_t(double(total - done) / rate)) + " left";
    }
    // the bar takes what the name and the numbers leave; a long name is cut at its front
    size_t room = columns_ > right.size() + 1 ? columns_ - right.size() - 1 : 0;
    size_t name_room = std::min<size_t>(room / 2, shown.size());
    std::string name = shown.substr(shown.size() - name_room);
    while (!name.empty() && (static_cast<unsigned char>(name[0]) & 0xC0) == 0x80) name.erase(0, 1);
    size_t width = room > name_room + 3 ? std::min<size_t>(room - name_room - 3, 40) : 0;
    std::string bar;
    if (width >= 5) {
        size_t filled = width * size_t(percent) / 100;
        bar = " [" + std::string(filled, '=') + std::string(width - filled, ' ') + "]";
    }
    return before + "\r" + name + bar + right + "\x1b[K";
}

std::string Progress::finish() {
    if (!open_) return "";
    open_ = false;
    return "\n";
}

void Progress::show(const std::string& file, uint64_t done, uint64_t total) {
    if (silent_) return;
    auto now = std::chrono::steady_clock::now().time_since_epoch();
    std::string text = update(file, done, total, std::chrono::duration_cast<std::chrono::milliseconds>(now));
    std::fwrite(text.data(), 1, text.size(), stderr);
}

void Progress::end() {
    std::string text = finish();
    std::fwrite(text.data(), 1, text.size(), stderr);
}

}  // namespace onebit
