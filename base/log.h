// Log lines to standard error: "HH:MM:SS.mmm level room: text". One line each, whole lines even from many threads.
#pragma once

#include <string_view>

namespace onebit {

enum class LogLevel { error, warning, info, verbose, debug };

// What is written: this level and those before it. Default: info. Safe from any thread.
void set_log_level(LogLevel level);
LogLevel log_level();

// Writes one line with one write(2); text is made printable first and cut at 16 KiB. room: the part that speaks, such
// as "server".
// Safe from any thread; not from a signal handler. Failure to write is ignored.
void log_line(LogLevel level, std::string_view room, std::string_view text);

inline void log_error(std::string_view room, std::string_view text) { log_line(LogLevel::error, room, text); }
inline void log_warning(std::string_view room, std::string_view text) { log_line(LogLevel::warning, room, text); }
inline void log_info(std::string_view room, std::string_view text) { log_line(LogLevel::info, room, text); }
inline void log_verbose(std::string_view room, std::string_view text) { log_line(LogLevel::verbose, room, text); }

}  // namespace onebit
