// The program `1bit`.
#include <fcntl.h>
#include <signal.h>

#include <algorithm>
#include <cerrno>

#include "app/command_line.h"

namespace {

// A standard descriptor that is closed would become the number of the next file or socket that is opened, and what is
// printed would go there. Opened the wrong way round, it fails as a closed one does.
void keep_standard_descriptors() {
    for (int fd = 0; fd <= 2; fd++)
        if (::fcntl(fd, F_GETFD) < 0 && errno == EBADF && ::open("/dev/null", fd == 0 ? O_WRONLY : O_RDONLY) < 0)
            return;
}

}  // namespace

int main(int argc, char** argv) {
    using namespace onebit;
    keep_standard_descriptors();
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
