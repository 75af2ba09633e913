// Progress of a download on standard error: a bar on a terminal, a line at every tenth otherwise.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace onebit {

class Progress {
public:
    Progress(bool terminal, unsigned columns) : terminal_(terminal), columns_(columns) {}
    Progress();  // of standard error; silent with --quiet

    // The text to write for this state, "" if there is nothing new to show. now: a clock that never goes back.
    std::string update(const std::string& file, uint64_t done, uint64_t total, std::chrono::milliseconds now);
    // Ends a bar's line.
    std::string finish();

    void show(const std::string& file, uint64_t done, uint64_t total);
    void end();

private:
    bool terminal_ = false, silent_ = false, open_ = false;
    unsigned columns_ = 80;
    std::string file_;
    uint64_t first_done_ = 0;
    int last_tenth_ = -1;
    std::chrono::milliseconds begun_{0}, last_{-1000};
};

}  // namespace onebit
