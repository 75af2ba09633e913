// Reads lines from a descriptor and returns at once when the user interrupts.
#pragma once

#include <optional>
#include <string>

#include "app/interrupt.h"

namespace onebit {

class LineReader {
public:
    LineReader(int fd, const Interrupt& interrupt) : fd_(fd), interrupt_(interrupt) {}

    // The next line without its end; nothing at the end of input or on an interrupt. Lines are at most 1 MiB long,
    // what is longer comes as several.
    std::optional<std::string> next();

private:
    int fd_;
    const Interrupt& interrupt_;
    std::string buffer_;
    bool ended_ = false;
};

}  // namespace onebit
