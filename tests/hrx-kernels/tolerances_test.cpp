// If this fails, the documents promise other tolerances than the tests hold the kernels to.
#include "tests/hrx-kernels/tolerances.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <vector>

namespace onebit::hrx::kernels::test {
namespace {

std::string trimmed(const std::string& text) {
    const size_t first = text.find_first_not_of(' '), last = text.find_last_not_of(' ');
    return first == std::string::npos ? "" : text.substr(first, last - first + 1);
}

TEST(Tolerances, AreThoseOfTheDocuments) {
    std::ifstream file(ONEBIT_HRX_DOCS "/hrx-kernels-reference.md");
    ASSERT_TRUE(file) << "no docs/hrx-kernels-reference.md";
    std::vector<std::vector<std::string>> rows;
    bool inside = false;
    for (std::string line; std::getline(file, line);) {
        if (line.starts_with("| kernels | tolerance | relative to |")) inside = true;
        if (!line.starts_with("|")) inside = false;
        if (!inside || line.starts_with("|-") || line.starts_with("| kernels")) continue;
        std::vector<std::string> cells;
        size_t from = 1;
        for (size_t bar = line.find('|', from); bar != std::string::npos; bar = line.find('|', from)) {
            cells.push_back(trimmed(line.substr(from, bar - from)));
            from = bar + 1;
        }
        ASSERT_EQ(cells.size(), 3u) << line;
        rows.push_back(cells);
    }
    ASSERT_EQ(rows.size(), std::size(tolerances));
    for (size_t i = 0; i < rows.size(); ++i) {
        EXPECT_EQ(rows[i][0], tolerances[i].kernels);
        EXPECT_EQ(std::strtod(rows[i][1].c_str(), nullptr), tolerances[i].value) << rows[i][0];
        EXPECT_EQ(rows[i][2], tolerances[i].scale) << rows[i][0];
    }
}

}  // namespace
}  // namespace onebit::hrx::kernels::test
