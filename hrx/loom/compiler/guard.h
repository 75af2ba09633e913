// Keeps LLVM from ending the process: its fatal errors come back to the caller of run_guarded.
#pragma once

#include <functional>
#include <string>

namespace onebit::loom {

struct Fatal {
    bool happened = false;
    bool out_of_memory = false;
    std::string reason;
};

// Runs work on this thread. A fatal error of LLVM leaves it at once, without running destructors: what work owns then
// leaks, so it must hold no lock and nothing that others wait for.
Fatal run_guarded(const std::function<void()>& work);

}  // namespace onebit::loom
