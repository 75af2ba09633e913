// Reads an engine's output: splits it into lines, forwards them to our log, keeps the last ones for an error report.
#pragma once

#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include "base/log.h"

namespace onebit {

// How important a line is to who reads the supervisor's log: our own lines keep their level, llama.cpp's warnings and
// errors too, all else of llama.cpp's is verbose. *text becomes the line without time and level.
LogLevel level_of_engine_line(std::string_view line, std::string_view* text);

// Not thread-safe: the watcher of the engine uses it.
class EngineLog {
public:
    explicit EngineLog(std::string label) : label_(std::move(label)) {}

    void append(std::string_view bytes);  // any bytes; lines may be cut anywhere
    void finish();                        // the stream ended: an unfinished line counts as one
    void clear() { partial_.clear(), lines_.clear(); }

    // The last lines, at most kLines of at most kLineBytes each, printable.
    std::vector<std::string> last_lines() const { return {lines_.begin(), lines_.end()}; }
    // The same as one text for a report: the warnings and errors among them if there are any, else all.
    std::string summary() const;

    // There are some.
    bool has_errors() const;

    // One of the last lines is what llama.cpp says of arguments that it does not take.
    bool tells_wrong_arguments() const;

    static constexpr size_t kLines = 20, kLineBytes = 1000;

private:
    void line(std::string_view line);
    std::string label_, partial_;
    bool overlong_ = false;
    std::deque<std::string> lines_;
};

}  // namespace onebit
