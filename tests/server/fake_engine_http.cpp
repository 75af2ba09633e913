// A stand-in for the program `1bit` in tests of run_server: `serve` is the real supervisor, `engine` answers HTTP with
// the faults that a real engine cannot be made to have, `plan` and `devices` answer, crash or hang as the environment
// says.
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string>
#include <thread>

#include "server/supervisor/server.h"

namespace {

using onebit::Result;

void sleep_ms(int time) { std::this_thread::sleep_for(std::chrono::milliseconds(time)); }

int number(const std::string& text, const std::string& key, int fallback) {
    size_t at = text.find("\"" + key + "\":");
    return at == std::string::npos ? fallback : std::atoi(text.c_str() + at + key.size() + 3);
}

bool send_all(int fd, std::string_view bytes) {
    while (!bytes.empty()) {
        ssize_t sent = ::send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL);
        if (sent <= 0) return false;
        bytes.remove_prefix(static_cast<size_t>(sent));
    }
    return true;
}

std::string chunk(const std::string& data) {
    char size[16];
    std::snprintf(size, sizeof(size), "%zx\r\n", data.size());
    return size + data + "\r\n";
}

void answer(int fd, const std::string& status, const std::string& body) {
    send_all(fd, "HTTP/1.1 " + status + "\r\nContent-Type: application/json\r\nContent-Length: " +
                     std::to_string(body.size()) + "\r\nConnection: close\r\n\r\n" + body);
}

void serve_one(int fd) {
    std::string text;
    char piece[65536];
    size_t head_end = std::string::npos, length = 0;
    while (head_end == std::string::npos || text.size() < head_end + 4 + length) {
        ssize_t got = ::recv(fd, piece, sizeof(piece), 0);
        if (got <= 0) {
            ::close(fd);
            return;
        }
        text.append(piece, static_cast<size_t>(got));
        head_end = text.find("\r\n\r\n");
        size_t at = text.find("Content-Length: ");
        if (head_end != std::string::npos && at < head_end) length = std::strtoul(text.c_str() + at + 16, nullptr, 10);
    }
    std::string body = text.substr(head_end + 4);
    auto asked = [&](const char* word) { return body.find("\"" + std::string(word) + "\":true") != std::string::npos; };
    if (text.starts_with("GET /health")) {
        answer(fd, "200 OK", "{\"status\":\"ok\"}");
    } else if (text.starts_with("GET /props")) {
        answer(fd, "200 OK", "{\"default_generation_settings\":{\"n_ctx\":512},\"total_slots\":2}");
    } else if (text.starts_with("GET /")) {
        answer(fd, "404 Not Found", "{\"error\":{\"message\":\"no\",\"type\":\"not_found_error\",\"code\":404}}");
    } else if (asked("die")) {
        std::fprintf(stderr, "E the engine is about to die\n");
        ::kill(::getpid(), SIGKILL);
    } else if (asked("abort")) {
        ::signal(SIGABRT, SIG_DFL);  // sanitizers have a handler
        ::raise(SIGABRT);
    } else if (asked("garbage")) {
        send_all(fd, "this is not HTTP\r\n\r\n");
    } else if (asked("never")) {
        while (::recv(fd, piece, sizeof(piece), 0) > 0) {
        }
    } else if (asked("short")) {
        send_all(fd, "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nabc");
    } else if (asked("dribble")) {
        std::string whole = "HTTP/1.1 200 OK\r\nX-A: b\r\nTransfer-Encoding: chunked\r\n\r\n" + chunk("slow") +
                            "3;x=y\r\nly!\r\n0\r\nT: v\r\n\r\n";
        for (char c : whole) {
            if (!send_all(fd, {&c, 1})) break;
            sleep_ms(1);
        }
    } else {
        int events = number(body, "events", 3), die_after = number(body, "die_after", -1);
        send_all(fd, "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n");
        for (int i = 0; i < events; i++) {
            if (i == die_after) ::kill(::getpid(), SIGKILL);
            if (!send_all(fd, chunk("data: {\"n\":" + std::to_string(i) + "}\n\n"))) break;
            sleep_ms(number(body, "delay_ms", 0));
            while (asked("hold") && ::recv(fd, piece, sizeof(piece), 0) > 0) {
            }
        }
        send_all(fd, "0\r\n\r\n");
    }
    ::close(fd);
}

int engine(int argc, char** argv) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    std::string path;
    for (int i = 2; i + 1 < argc; i++)
        if (std::string(argv[i]) == "--socket") path = argv[i + 1];
    if (const char* record = std::getenv("FAKE_ARGUMENTS")) {
        std::ofstream file(record, std::ios::app);
        for (int i = 2; i < argc; i++) file << argv[i] << " ";
        file << "\n";
    }
    if (std::getenv("FAKE_ENGINE_FAILS")) {
        std::fprintf(stderr, "error: this engine does not like its arguments\n");
        return 1;
    }
    if (std::getenv("FAKE_ENGINE_REFUSES")) {
        std::fprintf(stderr, "error: invalid argument: --bogus\n");
        return 1;
    }
    int listener = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::strncpy(address.sun_path, path.c_str(), sizeof(address.sun_path) - 1);
    if (::bind(listener, reinterpret_cast<sockaddr*>(&address), sizeof(address)) != 0 || ::listen(listener, 128) != 0)
        return 1;
    ::signal(
        SIGTERM, std::getenv("FAKE_ENGINE_STAYS") ? SIG_IGN : [](int) { ::_exit(0); });
    for (;;) {
        int fd = ::accept(listener, nullptr, nullptr);
        if (fd >= 0) std::thread(serve_one, fd).detach();
    }
}

int plan() {
    std::string how = std::getenv("FAKE_PLAN") ? std::getenv("FAKE_PLAN") : "fits";
    if (how == "crash") {
        std::fprintf(stderr, "the driver fell over\n");
        ::signal(SIGSEGV, SIG_DFL);  // sanitizers have a handler
        ::raise(SIGSEGV);
    }
    if (how == "full") {
        std::puts(
            "{\"fits\":false,\"table\":\"device  needed  free\\nCPU  9 GiB  1 GiB\\n\",\"rows\":[],\"notes\":[\"a "
            "context of 512 would fit\"]}");
        return 3;
    }
    std::puts("{\"fits\":true,\"table\":\"\",\"rows\":[],\"notes\":[]}");
    return 0;
}

// serve FILE|"" [PORT]: the rest of the configuration is the tests' own.
int serve(int argc, char** argv) {
    onebit::ServerContext context;
    context.config.model = argc > 2 ? argv[2] : "";
    context.config.port = argc > 3 ? static_cast<uint16_t>(std::atoi(argv[3])) : 0;
    const char* drain = std::getenv("FAKE_DRAIN");
    context.config.drain_timeout = std::chrono::seconds(drain ? std::atoi(drain) : 60);
    context.program = argv[0];
    Result<void> done = onebit::run_server(std::move(context));
    if (done.ok()) return 0;
    std::fprintf(stderr, "%s\n", done.error().message().c_str());
    return onebit::exit_code(done.error().code);
}

}  // namespace

int main(int argc, char** argv) {
    std::string command = argc > 1 ? argv[1] : "";
    if (command == "serve") return serve(argc, argv);
    if (command == "engine") return engine(argc, argv);
    if (command == "plan") return plan();
    if (command == "devices") {
        std::puts(
            "{\"devices\":[{\"name\":\"Test CPU\",\"chosen_by_default\":true,\"backends\":[{\"device\":\"CPU\"}]}]}");
        return 0;
    }
    return 2;
}
