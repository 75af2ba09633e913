// The known name that a mistyped one most likely meant, for errors about commands, flags, keys and models.
#pragma once

#include <algorithm>
#include <cctype>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace onebit {

// Insertions, deletions, replacements and swaps of neighbours that lead from a to b, without regard to case.
inline size_t edit_distance(std::string_view a, std::string_view b) {
    auto same = [](char x, char y) {
        return std::tolower(static_cast<unsigned char>(x)) == std::tolower(static_cast<unsigned char>(y));
    };
    std::vector<size_t> before_last, last(b.size() + 1), row(b.size() + 1);
    for (size_t j = 0; j <= b.size(); ++j) last[j] = j;
    for (size_t i = 1; i <= a.size(); ++i) {
        row[0] = i;
        for (size_t j = 1; j <= b.size(); ++j) {
            row[j] = std::min({last[j] + 1, row[j - 1] + 1, last[j - 1] + (same(a[i - 1], b[j - 1]) ? 0 : 1)});
            if (i > 1 && j > 1 && same(a[i - 1], b[j - 2]) && same(a[i - 2], b[j - 1]))
                row[j] = std::min(row[j], before_last[j - 2] + 1);
        }
        before_last = last;
        last = row;
    }
    return last[b.size()];
}

// "" when nothing is near: more than a third of the name would have to change. Names over 100 bytes have no neighbour.
inline std::string nearest_name(std::string_view name, const std::vector<std::string>& known) {
    std::string nearest;
    size_t least = std::max<size_t>(2, name.size() / 3) + 1;
    if (name.empty() || name.size() > 100) return nearest;
    for (const std::string& candidate : known) {
        if (candidate.size() > 100) continue;
        size_t distance = edit_distance(name, candidate);
        bool begins = name.size() >= 3 && candidate.compare(0, name.size(), name) == 0;
        if (begins) distance = std::min<size_t>(distance, 1);
        // a short name is not mended by replacing all of it
        if (distance < least && (begins || distance < std::max(name.size(), candidate.size()))) {
            least = distance;
            nearest = candidate;
        }
    }
    return nearest;
}

}  // namespace onebit
