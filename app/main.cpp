// The program `1bit`.
#include <signal.h>

#include <algorithm>

#include "app/command_line.h"

int main(int argc, char** argv) {
    using namespace onebit;
    // so that `1bit models | head -1` ends without a word, even below a parent that ignores the signal
    ::signal(SIGPIPE, SIG_DFL);
    static constexpr AddCommand kCommands[] = {
        add_serve,   add_run, add_models, add_pull,   add_devices, add_plan,        add_bench,  add_verify,
        add_tune,    add_ps,  add_unload, add_doctor, add_version, add_completions, add_engine,
#ifdef ONEBIT_HRX_KERNELS
        add_kernels,
#endif
    };
    return CommandLine(kCommands).run({argv + std::min(argc, 1), argv + argc});
}
