#include "app/line_reader.h"

#include <poll.h>
#include <unistd.h>

#include <cerrno>

namespace onebit {
namespace {

constexpr size_t kLongest = 1 << 20;

}  // namespace

std::optional<std::string> LineReader::next() {
    for (;;) {
        size_t end = buffer_.find('\n');
        if (end == std::string::npos && (buffer_.size() >= kLongest || (ended_ && !buffer_.empty())))
            end = buffer_.size();
        if (end != std::string::npos) {
            std::string line = buffer_.substr(0, end);
            buffer_.erase(0, end + 1);
            if (!line.empty() && line.back() == '\r') line.pop_back();
            return line;
        }
        if (ended_ || interrupt_.pending()) return std::nullopt;
        pollfd entries[2] = {{fd_, POLLIN, 0}, {interrupt_.fd(), POLLIN, 0}};
        if (::poll(entries, 2, -1) < 0 && errno != EINTR) ended_ = true;
        if (interrupt_.pending()) return std::nullopt;
        if (!entries[0].revents) continue;
        char piece[4096];
        ssize_t got = ::read(fd_, piece, sizeof piece);
        if (got > 0)
            buffer_.append(piece, size_t(got));
        else if (got == 0 || errno != EINTR)
            ended_ = true;
    }
}

}  // namespace onebit
