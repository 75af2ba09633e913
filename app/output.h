// What commands print: results to standard output, everything else to standard error.
#pragma once

#include <string_view>

#include "base/error.h"

namespace onebit {

// Writes to standard output; main() reports a failure at the end.
void print(std::string_view text);

// "error: MESSAGE" on standard error. Returns the exit code that belongs to it.
int report(const Error& error);

// One line on standard error for a person who waits; nothing with --quiet.
void tell(std::string_view text);

bool output_is_terminal();
bool error_is_terminal();
bool input_is_terminal();

// Flushes standard output. 0, or 1 with a message when it could not be written, as on a full disk.
int close_output();

}  // namespace onebit
