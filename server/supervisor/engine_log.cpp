#include "server/supervisor/engine_log.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "base/error.h"

namespace onebit {
namespace {

bool is_digit_or_dot(char c) { return (c >= '0' && c <= '9') || c == '.'; }

// Errors that llama.cpp and C++ print without a level.
bool says_error(std::string_view text) {
    constexpr std::string_view kStarts[] = {"error",      "Error",        "terminate called", "GGML_ASSERT",
                                            "GGML_ABORT", "Segmentation", "  what():"};
    if (std::any_of(std::begin(kStarts), std::end(kStarts), [&](auto start) { return text.starts_with(start); }))
        return true;
    return text.find("GGML_ASSERT(") != std::string_view::npos || text.find("Sanitizer") != std::string_view::npos;
}

// "03:42:38.123 warning tandem: ...", which base/log.h writes in the engine process.
std::optional<LogLevel> level_of_our_line(std::string_view line, std::string_view* text) {
    constexpr std::string_view kTime = "dd:dd:dd.ddd ";
    if (line.size() < kTime.size()) return std::nullopt;
    for (size_t i = 0; i < kTime.size(); ++i)
        if (kTime[i] == 'd' ? line[i] < '0' || line[i] > '9' : line[i] != kTime[i]) return std::nullopt;
    line.remove_prefix(kTime.size());
    constexpr std::pair<std::string_view, LogLevel> kWords[] = {{"error ", LogLevel::error},
                                                                {"warning ", LogLevel::warning},
                                                                {"info ", LogLevel::info},
                                                                {"verbose ", LogLevel::verbose},
                                                                {"debug ", LogLevel::debug}};
    for (const auto& [word, level] : kWords) {
        if (!line.starts_with(word)) continue;
        if (text != nullptr) *text = line.substr(word.size());
        return level;
    }
    return std::nullopt;
}

}  // namespace

LogLevel level_of_engine_line(std::string_view line, std::string_view* text) {
    if (const auto ours = level_of_our_line(line, text)) return *ours;
    // "0.00.123.456 I srv  load_model: ..." or without the time
    std::string_view rest = line;
    size_t digits = 0;
    while (digits < rest.size() && is_digit_or_dot(rest[digits])) ++digits;
    if (digits > 0 && digits < rest.size() && rest[digits] == ' ') rest.remove_prefix(digits + 1);
    LogLevel level = LogLevel::verbose;
    if (rest.size() > 1 && rest[1] == ' ' && std::string_view("IWED").find(rest[0]) != std::string_view::npos) {
        if (rest[0] == 'W') level = LogLevel::warning;
        if (rest[0] == 'E') level = LogLevel::error;
        if (rest[0] == 'D') level = LogLevel::debug;
        rest.remove_prefix(2);
    } else {
        rest = line;
        if (says_error(rest)) level = LogLevel::error;
    }
    if (text != nullptr) *text = rest;
    return level;
}

void EngineLog::append(std::string_view bytes) {
    while (!bytes.empty()) {
        const size_t end = bytes.find('\n');
        const std::string_view piece = bytes.substr(0, end);
        const size_t room = kLineBytes - std::min(partial_.size(), kLineBytes);
        partial_.append(piece.substr(0, room));
        overlong_ = overlong_ || piece.size() > room;
        if (end == std::string_view::npos) return;
        bytes.remove_prefix(end + 1);
        finish();
    }
}

void EngineLog::finish() {
    if (overlong_) partial_ += "...";
    if (!partial_.empty()) line(partial_);
    partial_.clear();
    overlong_ = false;
}

void EngineLog::line(std::string_view line) {
    std::string shown = printable(line);
    if (shown.find_first_not_of(' ') == std::string::npos) return;
    std::string_view text;
    const LogLevel level = level_of_engine_line(shown, &text);
    if (level <= log_level()) log_line(level, "engine", label_ + ": " + std::string(text));
    if (lines_.size() == kLines) lines_.pop_front();
    lines_.push_back(std::move(shown));
}

std::string EngineLog::summary() const {
    std::string errors, all;
    for (const auto& line : lines_) {
        std::string_view text;
        const LogLevel level = level_of_engine_line(line, &text);
        all.append(all.empty() ? "" : "\n").append(text);
        if (level <= LogLevel::warning) errors.append(errors.empty() ? "" : "\n").append(text);
    }
    return errors.empty() ? all : errors;
}

bool EngineLog::has_errors() const {
    return std::any_of(lines_.begin(), lines_.end(), [](const std::string& line) {
        std::string_view text;
        return level_of_engine_line(line, &text) <= LogLevel::warning;
    });
}

bool EngineLog::tells_wrong_arguments() const {
    // common/arg.cpp
    constexpr std::string_view kStarts[] = {"error: invalid argument", "error while handling argument",
                                            "error while handling environment variable", "invalid device"};
    return std::any_of(lines_.begin(), lines_.end(), [&](const std::string& line) {
        return std::any_of(std::begin(kStarts), std::end(kStarts), [&](auto start) { return line.starts_with(start); });
    });
}

}  // namespace onebit
