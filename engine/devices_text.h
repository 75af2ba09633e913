// Small helpers of printing that devices, plan, bench and doctor share.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace onebit {

// "512 MiB", "14.1 MiB", "23.4 GiB": three digits are enough to compare by eye.
std::string bytes_text(uint64_t bytes);

// Columns two spaces apart. The first row is the head. All columns but the first are aligned to the right.
std::string text_table(const std::vector<std::vector<std::string>>& rows);

// The same as Markdown.
std::string markdown_table(const std::vector<std::vector<std::string>>& rows);

}  // namespace onebit
