// A real child process that stands in for an engine in the tests of EngineProcess: it has the faults that the real one
// cannot be made to have on demand. Called as: fake_engine engine --socket S --heartbeat-fd N -- OPTIONS...
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <mutex>
#include <string>
#include <thread>

#include "server/supervisor/heartbeat.h"

namespace {

using std::chrono::milliseconds;

struct Options {
    std::map<std::string, std::string> values;
    bool has(const std::string& name) const { return values.count(name) != 0; }
    int number(const std::string& name, int otherwise = 0) const {
        const auto found = values.find(name);
        return found == values.end() ? otherwise : std::atoi(found->second.c_str());
    }
};

std::atomic<bool> ready{false};
int death_signal = 0;   // of the main thread
std::string arguments;  // all of them, with a space behind each
std::mutex loop;        // held by whoever runs "graphs"; /lora-adapters needs it, /health does not

void sleep_ms(int time) { std::this_thread::sleep_for(milliseconds(time)); }

std::string read_file(const char* path) {
    std::ifstream file(path);
    return {std::istreambuf_iterator<char>(file), {}};
}

// What the tests want to know about how we were started.
std::string environment() {
    struct stat in {
    }, null{};
    fstat(0, &in);
    stat("/dev/null", &null);
    std::string text = "pdeathsig=" + std::to_string(death_signal);
    text += " group_leader=" + std::to_string(getpgrp() == getpid());
    text += " null_stdin=" + std::to_string(in.st_rdev == null.st_rdev);
    text += " oom=" + read_file("/proc/self/oom_score_adj");
    sigset_t blocked;
    sigprocmask(SIG_BLOCK, nullptr, &blocked);
    struct sigaction pipe {};
    sigaction(SIGPIPE, nullptr, &pipe);
    text += " term_blocked=" + std::to_string(sigismember(&blocked, SIGTERM));
    text += " pipe_default=" + std::to_string(pipe.sa_handler == SIG_DFL);
    text += " fds=";
    for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
        std::error_code gone;
        const auto target = std::filesystem::read_symlink(entry, gone);
        if (!gone) text += target.string() + ";";
    }
    return text;
}

void fault(const std::string& path, onebit::HeartbeatPage& page) {
    if (path == "/segfault") {
        signal(SIGSEGV, SIG_DFL);  // sanitizers have a handler
        raise(SIGSEGV);
    }
    if (path == "/exit3") _exit(3);
    if (path == "/exit0") _exit(0);
    if (path == "/wedge") {
        loop.lock();  // and never lets go
        for (;;) pause();
    }
    if (path == "/stuck-graph") {
        loop.lock();
        ++page.graphs_begun;
        for (;;) pause();
    }
    if (path.starts_with("/member/")) {  // "/member/2/abort", "/member/1/hang": at work in a member of a tandem
        onebit::TandemReport report;
        report.name = "Tandem0";
        report.members = {{"Vulkan0"}, {"CUDA0"}};
        onebit::write_tandem(page.tandem, report);
        page.running_member = static_cast<uint64_t>(path[8] - '0');
        if (path.ends_with("/abort")) {
            signal(SIGABRT, SIG_DFL);
            raise(SIGABRT);
        }
        loop.lock();
        ++page.graphs_begun;
        for (;;) pause();
    }
    if (path.starts_with("/slow-graph/")) {  // one graph of this many ms, without a step inside
        const std::lock_guard lock(loop);
        ++page.graphs_begun;
        sleep_ms(std::atoi(path.c_str() + 12));
        ++page.graphs_done;
    }
    if (path.starts_with("/compile/")) {  // pipelines every 50 ms for this long, inside one graph
        const std::lock_guard lock(loop);
        ++page.graphs_begun;
        for (int left = std::atoi(path.c_str() + 9); left > 0; left -= 50) sleep_ms(50), ++page.pipelines;
        ++page.graphs_done;
    }
    if (path.starts_with("/longest/")) page.longest_graph_us = std::strtoull(path.c_str() + 9, nullptr, 10);
}

void serve(int client, onebit::HeartbeatPage& page) {
    std::string head;
    char byte;
    while (head.find("\r\n\r\n") == std::string::npos && read(client, &byte, 1) == 1) head += byte;
    const size_t start = head.find(' ') + 1;
    const std::string path = head.substr(start, head.find(' ', start) - start);
    std::string body = "ok";
    int status = 200;
    if (path == "/health" && !ready) status = 503;
    if (path == "/environment") body = environment();
    if (path == "/arguments") body = arguments;
    if (path == "/lora-adapters") {
        const std::lock_guard lock(loop);
        body = "[]";
    } else {
        fault(path, page);
    }
    const std::string answer = "HTTP/1.1 " + std::to_string(status) +
                               " X\r\nContent-Length: " + std::to_string(body.size()) +
                               "\r\nConnection: close\r\n\r\n" + body;
    send(client, answer.data(), answer.size(), MSG_NOSIGNAL);
    close(client);
}

void start_up(const Options& options, onebit::HeartbeatPage& page) {
    const int load = options.number("--load-ms");
    for (int done = 0; done < load; done += 50) {
        sleep_ms(50);
        ++page.load_steps;
        page.load_permille = static_cast<uint64_t>(done) * 1000 / static_cast<uint64_t>(load);
    }
    sleep_ms(options.number("--ready-after"));
    if (!options.has("--never-ready")) ready = true;
}

}  // namespace

int main(int argc, char** argv) {
    prctl(PR_GET_PDEATHSIG, &death_signal);
    std::string socket_path;
    int heartbeat_fd = -1;
    Options options;
    for (int i = 1; i < argc; ++i) arguments += std::string(argv[i]) + " ";
    for (int i = 2; i + 1 < argc; ++i) {
        const std::string word = argv[i];
        if (word == "--socket")
            socket_path = argv[++i];
        else if (word == "--heartbeat-fd")
            heartbeat_fd = std::atoi(argv[++i]);
        else if (word != "--")
            options.values[word] = argv[i + 1], ++i;
    }
    if (options.has("--print")) std::fprintf(stderr, "%s\n", options.values["--print"].c_str());
    if (options.has("--flood")) {
        for (int line = 0; line < options.number("--flood"); ++line)
            std::fprintf(stderr, "0.00.000.%03d I flood line %d of a chatty engine ............................\n",
                         line % 1000, line);
    }
    // fails as often as the file has bytes left to take away
    if (options.has("--fail-while")) {
        const auto& file = options.values["--fail-while"];
        const auto left = std::filesystem::file_size(file);
        if (left > 0) {
            std::filesystem::resize_file(file, left - 1);
            std::fprintf(stderr, "E fake: cannot start yet\n");
            return 1;
        }
    }
    if (options.has("--kill-self")) raise(SIGKILL);
    if (options.has("--exit")) return options.number("--exit");
    if (options.has("--ignore-term")) signal(SIGTERM, SIG_IGN);
    auto heartbeat = onebit::Heartbeat::attach(heartbeat_fd);
    if (!heartbeat) {
        std::fprintf(stderr, "%s\n", heartbeat.error().message().c_str());
        return 2;
    }
    const int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::strncpy(address.sun_path, socket_path.c_str(), sizeof address.sun_path - 1);
    if (bind(listener, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0 || listen(listener, 64) != 0) {
        std::perror("E fake: socket");
        return 1;
    }
    std::thread([&] { start_up(options, heartbeat->page()); }).detach();
    for (;;) {
        const int client = accept(listener, nullptr, nullptr);
        if (client >= 0) std::thread(serve, client, std::ref(heartbeat->page())).detach();
    }
}
