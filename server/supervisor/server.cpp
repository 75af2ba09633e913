#include "server/supervisor/server.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <thread>

#include "base/log.h"
#include "server/supervisor/banner.h"
#include "server/supervisor/engine_factory.h"
#include "server/supervisor/engine_folder.h"
#include "server/supervisor/run_program.h"
#include "server/supervisor/supervisor.h"

namespace onebit {
namespace fs = std::filesystem;
namespace {

// What an engine gets to end by itself, within the time that requests have left.
constexpr auto kLeastGrace = std::chrono::seconds(1), kMostGrace = std::chrono::seconds(10);

// The handler's only way out: the write end of a pipe that run_server polls.
std::atomic<int> signal_pipe{-1};

extern "C" void on_signal(int signal) {
    int saved = errno;
    char byte = static_cast<char>(signal);
    if (::write(signal_pipe.load(), &byte, 1) < 0) {
        // full: earlier signals are waiting to be seen
    }
    errno = saved;
}

class SignalPipe {
public:
    SignalPipe() {
        int ends[2];
        if (::pipe2(ends, O_CLOEXEC | O_NONBLOCK) == 0) {
            read_.reset(ends[0]);
            write_.reset(ends[1]);
        }
        signal_pipe = write_.get();
        for (size_t i = 0; i < kSignals.size(); i++) {
            struct sigaction action {};
            action.sa_handler = on_signal;
            action.sa_flags = SA_RESTART;
            ::sigaction(kSignals[i], &action, &old_[i]);
        }
        struct sigaction ignore {};
        ignore.sa_handler = SIG_IGN;
        ::sigaction(SIGPIPE, &ignore, &old_pipe_);
    }
    ~SignalPipe() {
        for (size_t i = 0; i < kSignals.size(); i++) ::sigaction(kSignals[i], &old_[i], nullptr);
        ::sigaction(SIGPIPE, &old_pipe_, nullptr);
        signal_pipe = -1;
    }
    int fd() const { return read_.get(); }
    // The next signal within the limit, 0 if none came; negative: for ever.
    int next(int milliseconds) {
        pollfd entry{read_.get(), POLLIN, 0};
        if (::poll(&entry, 1, milliseconds) <= 0) return 0;
        char byte = 0;
        return ::read(read_.get(), &byte, 1) == 1 ? byte : 0;
    }
    void wake() { on_signal(0); }

private:
    static constexpr std::array<int, 3> kSignals = {SIGTERM, SIGINT, SIGHUP};
    UniqueFd read_, write_;
    std::array<struct sigaction, 3> old_{};
    struct sigaction old_pipe_ {};
};

// A thousand connections and their engines need more descriptors than the usual soft limit.
void raise_descriptor_limit() {
    rlimit limit{};
    if (::getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= 16384) return;
    limit.rlim_cur = std::min<rlim_t>(limit.rlim_max, 16384);
    ::setrlimit(RLIMIT_NOFILE, &limit);
}

void print_line(const std::string& line) {
    std::printf("%s\n", line.c_str());
    std::fflush(stdout);
}

// Drivers may crash or hang, so a child asks; its line comes when it comes.
void report_devices(const fs::path& program, const std::vector<std::string>& wanted, const std::atomic<bool>& cancel) {
    Result<ProgramResult> asked = run_program(program, {"devices", "--json"}, std::chrono::seconds(60), &cancel);
    if (cancel) return;
    if (!asked.ok()) return log_warning("server", "devices: " + asked.error().message());
    std::string line = devices_line(asked->output, wanted);
    if (!line.empty()) return print_line(line);
    if (asked->exit_code == 0) return;
    std::string tail = asked->error_output.size() > 400 ? asked->error_output.substr(asked->error_output.size() - 400)
                                                        : asked->error_output;
    log_warning("server", "devices: '1bit devices' ended with " + asked->outcome() + (tail.empty() ? "" : ": " + tail));
}

Result<void> check(const ServeConfig& config) {
    auto wrong = [](std::string key, std::string expected, std::string found) {
        return Error{ErrorCode::usage, std::move(key), std::move(expected), std::move(found), ""};
    };
    if (config.max_models == 0) return wrong("max_models", "at least 1", "0");
    if (config.max_request_bytes == 0) return wrong("max_request_bytes", "at least 1", "0");
    if (config.read_timeout.count() <= 0)
        return wrong("read_timeout", "more than 0 s", std::to_string(config.read_timeout.count()));
    for (const std::string& key : config.api_keys)
        if (!is_usable_api_key(key))
            return wrong("api_keys", "keys that a header can carry: text in one line without spaces around it",
                         key.empty() ? "an empty one" : "another");
    return {};
}

}  // namespace

Result<void> run_server(ServerContext context) {
    ONEBIT_RETURN_IF_ERROR(check(context.config));
    raise_descriptor_limit();
    const bool fixed = !context.config.model.empty();
    std::string model = context.config.default_model, to_try;
    if (fixed) {
        // before the port opens: a name that means nothing is no server
        Result<ModelTarget> target = resolve_model(context.config, context.folders, context.config.model, false);
        if (!target.ok()) return target.error();
        model = to_try = target->id;
    } else {
        to_try = name_to_try(context.config, context.folders);
    }
    // a signal must not end the process before its folder is removed
    SignalPipe signals;
    Result<EngineFolder> folder = EngineFolder::create();
    if (!folder.ok()) return folder.error();

    std::atomic<bool> cancel{false};
    EngineFactory factory;
    factory.program = context.program;
    factory.runtime_folder = folder->path();
    factory.offline = context.config.offline;
    factory.check_memory = context.config.check_memory;
    factory.start_timeout = context.config.start_timeout;
    factory.hang_timeout = context.config.hang_timeout;
    factory.announce = print_line;
    factory.cancel = &cancel;
    std::mutex refused_mutex;
    std::optional<Error> refused;  // a fixed model that never loaded is no server
    SupervisorParts parts;
    parts.make_engine = [&](const ModelTarget& target) { return factory.make(target); };
    parts.load_failed = [&](const std::string&, const Error& error) {
        if (!fixed) return;
        std::lock_guard lock(refused_mutex);
        refused = error;
        signals.wake();
    };
    const ServeConfig config = context.config;
    const fs::path program = context.program;
    std::vector<std::string> wanted_devices = config.defaults.devices;
    wanted_devices.insert(wanted_devices.end(), config.defaults.prefill_device.begin(),
                          config.defaults.prefill_device.end());

    Supervisor supervisor(std::move(context), std::move(parts));
    Result<uint16_t> port = supervisor.bind();
    if (!port.ok()) return port.error();
    ONEBIT_RETURN_IF_ERROR(supervisor.start_models());
    std::thread listener([&] { supervisor.serve(); });
    for (const std::string& line : start_lines(config, *port, model, to_try)) print_line(line);
    if (std::string warning = exposure_warning(config); !warning.empty()) log_warning("server", warning);
    std::thread devices([&] { report_devices(program, wanted_devices, cancel); });

    Result<void> result;
    bool draining = false;
    auto drain_until = std::chrono::steady_clock::time_point::max();
    for (;;) {
        int signal = signals.next(draining ? 50 : -1);
        {
            std::lock_guard lock(refused_mutex);
            if (refused && !supervisor.has_served()) {
                result = *refused;
                break;
            }
            refused.reset();
        }
        if (signal == SIGHUP) {
            if (Result<void> done = supervisor.reload(); !done.ok()) log_verbose("server", done.error().message());
        } else if (signal == SIGTERM || signal == SIGINT) {
            if (draining) {
                log_warning("server", "a second signal: stopping at once");
                drain_until = std::chrono::steady_clock::now();
                break;
            }
            draining = true;
            drain_until = std::chrono::steady_clock::now() + config.drain_timeout;
            cancel = true;
            log_info("server", "stopping: running requests have " + std::to_string(config.drain_timeout.count()) +
                                   " s to end, a second signal ends them");
            supervisor.drain();
        }
        if (draining && (supervisor.quiet() || std::chrono::steady_clock::now() >= drain_until)) break;
    }
    cancel = true;
    const auto now = std::chrono::steady_clock::now();
    const auto kill_at = std::max(now + kLeastGrace, std::min(now + kMostGrace, drain_until));
    std::atomic<bool> stopped{false};
    std::thread stopper([&] {
        supervisor.stop(kill_at);
        stopped = true;
        signals.wake();
    });
    while (!stopped)
        if (const int signal = signals.next(100); signal == SIGTERM || signal == SIGINT) supervisor.kill_engines();
    stopper.join();
    listener.join();
    devices.join();
    return result;
}

}  // namespace onebit
