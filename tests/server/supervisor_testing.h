// Helpers of the supervisor's tests: a raw client that may misbehave, and an engine made of a local HTTP server.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <thread>

#include <cpp-httplib/httplib.h>
#include <nlohmann/json.hpp>

#include "base/unique_fd.h"
#include "server/supervisor/engine_handle.h"

namespace onebit::testing {

constexpr auto kPatience = std::chrono::seconds(60);

template <typename Condition>
bool wait_until(Condition condition) {
    auto until = std::chrono::steady_clock::now() + kPatience;
    while (!condition()) {
        if (std::chrono::steady_clock::now() > until) return false;
        std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
    return true;
}

class TempFolder {
public:
    TempFolder() {
        std::string path = "/tmp/1bit-test-XXXXXX";
        path_ = ::mkdtemp(path.data());
    }
    ~TempFolder() {
        std::error_code ignored;
        std::filesystem::remove_all(path_, ignored);
    }
    const std::filesystem::path& path() const { return path_; }

private:
    std::filesystem::path path_;
};

// A connection whose bytes the test alone decides.
class RawClient {
public:
    explicit RawClient(int port) {
        fd_.reset(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
        sockaddr_in address{};
        address.sin_family = AF_INET;
        address.sin_port = htons(static_cast<uint16_t>(port));
        address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        if (::connect(fd_.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)) < 0) fd_.reset();
    }
    bool connected() const { return static_cast<bool>(fd_); }
    bool send(std::string_view bytes) {
        while (!bytes.empty()) {
            ssize_t sent = ::send(fd_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
            if (sent <= 0) return false;
            bytes.remove_prefix(static_cast<size_t>(sent));
        }
        return true;
    }
    // Reads until the text so far holds `part`; false at the end of the connection.
    bool read_until(const std::string& part, size_t times = 1) {
        auto seen = [&] {
            size_t found = 0;
            for (size_t at = text.find(part); at != std::string::npos && found < times;
                 at = text.find(part, at + part.size()))
                found++;
            return found >= times;
        };
        while (!seen())
            if (!read_some()) return false;
        return true;
    }
    // Reads to the end of the connection; false if it does not come.
    bool read_to_end() {
        while (read_some()) {
        }
        return ended;
    }
    void close() { fd_.reset(); }
    void end_sending() { ::shutdown(fd_.get(), SHUT_WR); }

    std::string text;
    bool ended = false;

private:
    bool read_some() {
        pollfd entry{fd_.get(), POLLIN, 0};
        if (::poll(&entry, 1, static_cast<int>(std::chrono::milliseconds(kPatience).count())) <= 0) return false;
        char piece[65536];
        ssize_t got = ::recv(fd_.get(), piece, sizeof(piece), 0);
        if (got <= 0) {
            ended = true;
            return false;
        }
        text.append(piece, static_cast<size_t>(got));
        return true;
    }
    UniqueFd fd_;
};

inline std::string raw_post(const std::string& path, const std::string& body, const std::string& more = "") {
    return "POST " + path + " HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n" + more +
           "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body;
}

// Stands for an engine: cpp-httplib on a Unix socket, with routes that stream, wait, fail and repeat what came.
class HttpEngine final : public EngineHandle {
public:
    static constexpr const char* kLastOutput = "loading /home/somebody/m.gguf";
    explicit HttpEngine(std::string name = "m") : name_(std::move(name)) {
        server_.set_address_family(AF_UNIX);
        server_.new_task_queue = [] { return new httplib::ThreadPool(16, 512); };
        server_.set_keep_alive_timeout(1);
        set_routes();
        server_.bind_to_port(socket().string(), 80);
        thread_ = std::thread([this] { server_.listen_after_bind(); });
        server_.wait_until_ready();
    }
    ~HttpEngine() override { stop(); }

    EngineStatus status() const override {
        EngineStatus status;
        status.state = state;
        status.pid = ::getpid();
        status.resident_bytes = 4096;
        status.load_progress = progress;
        if (state == EngineState::failed) status.last_failure = "signal 9 (Killed): out of memory";
        if (state == EngineState::failed || restarting) status.last_output = kLastOutput;
        if (member_failed) status.failed_member = "CUDA0";
        status.stalled = stalled;
        if (restarting) {
            status.last_failure = "killed by signal 11 (Segmentation fault)";
            status.retry_after = std::chrono::seconds(7);
        }
        return status;
    }
    std::filesystem::path socket() const override { return folder_.path() / "engine.sock"; }
    uint64_t generation() const override { return 1; }
    std::vector<DeviceMemory> memory() const override { return {{"CPU", 100, 20, 3, 8}, {"Vulkan0", 400, 80, 7, 24}}; }
    std::shared_ptr<StreamTable> streams() const override { return table && table->taken_up ? table : nullptr; }
    Result<void> wait_ready(std::chrono::milliseconds limit) const override {
        auto until = std::chrono::steady_clock::now() +
                     std::min<std::chrono::milliseconds>(limit, std::chrono::milliseconds(20));
        do {
            if (state == EngineState::ready) return {};
            if (state != EngineState::starting)
                return Error{ErrorCode::unavailable, name_, "an engine", status().whole_failure(), ""};
            std::this_thread::sleep_for(std::chrono::milliseconds(1));
        } while (std::chrono::steady_clock::now() < until);
        return Error{ErrorCode::timeout, name_, "", "", ""};
    }
    void request_begun() override { requests++; }
    void request_ended() override { requests--; }
    void stop() override {
        if (stopped_.exchange(true)) return;
        state = EngineState::stopped;
        open_gate();
        server_.stop();
        thread_.join();
    }

    // As far as a request can see it: streams break off, nobody listens.
    void die() {
        state = EngineState::failed;
        broken = true;
        open_gate();
    }
    void open_gate() {
        std::lock_guard lock(mutex_);
        gate_ = true;
        changed_.notify_all();
    }

    std::shared_ptr<StreamTable> table;  // set before it is used: takes clients' sockets
    std::atomic<EngineState> state{EngineState::ready};
    std::atomic<double> progress{0};
    std::atomic<int> requests{0}, active{0}, noticed_closed{0}, served{0}, sent_events{0};
    std::atomic<bool> broken{false}, member_failed{false}, stalled{false}, restarting{false};
    // whether /props says that the chat template has tools; without either it says nothing of that
    std::atomic<bool> has_tools{false}, has_no_tools{false};

private:
    struct Active {
        std::atomic<int>& count;
        explicit Active(std::atomic<int>& c) : count(c) { count++; }
        ~Active() { count--; }
    };

    void wait_at_gate(const httplib::Request& request) {
        std::unique_lock lock(mutex_);
        while (!gate_) {
            changed_.wait_for(lock, std::chrono::milliseconds(5));
            if (!request.is_connection_closed()) continue;
            noticed_closed++;
            return;
        }
    }

    void set_routes() {
        auto repeat = [this](const httplib::Request& request, httplib::Response& response) {
            served++;
            std::string text = request.method + " " + request.target + "\n";
            for (const auto& [name, value] : request.headers) text += name + ": " + value + "\n";
            text += "\n" + request.body;
            response.set_header("X-Engine", name_);
            response.set_header("Access-Control-Allow-Origin", "*");
            response.set_content(text, "text/plain");
        };
        for (const char* path : {"/echo", "/props/echo", "/v1/echo", "/apply-template", "/v1/messages/count_tokens"}) {
            server_.Get(path, repeat);
            server_.Post(path, repeat);
            server_.Put(path, repeat);
            server_.Patch(path, repeat);
            server_.Delete(path, repeat);
        }
        auto digest = [this](const httplib::Request&, httplib::Response& response,
                             const httplib::ContentReader& reader) {
            served++;
            size_t bytes = 0;
            uint64_t sum = 1469598103934665603ull;
            reader([&](const char* data, size_t size) {
                for (size_t i = 0; i < size; i++) sum = (sum ^ static_cast<unsigned char>(data[i])) * 1099511628211ull;
                bytes += size;
                return true;
            });
            response.set_content(std::to_string(bytes) + " " + std::to_string(sum), "text/plain");
        };
        server_.Post("/digest", digest);
        server_.Get("/props", [this](const httplib::Request&, httplib::Response& response) {
            const std::string tools = has_tools ? "true" : "false";
            const std::string caps =
                R"(,"chat_template_caps":{"supports_tools":)" + tools + R"(,"supports_tool_calls":)" + tools + "}";
            response.set_content(R"({"default_generation_settings":{"n_ctx":2048},"total_slots":4,"name":")" + name_ +
                                     "\"" + (has_tools || has_no_tools ? caps : "") + "}",
                                 "application/json");
        });
        server_.Get("/metrics", [](const httplib::Request&, httplib::Response& response) {
            response.set_content("# HELP llamacpp:n n\n# TYPE llamacpp:n counter\nllamacpp:n 7\n", "text/plain");
        });
        server_.Get("/cached", [](const httplib::Request&, httplib::Response& response) {
            response.status = 304;
            response.set_header("ETag", "\"x\"");
        });
        server_.Get("/nothing", [](const httplib::Request&, httplib::Response& response) { response.status = 204; });
        server_.Post("/fail", [](const httplib::Request&, httplib::Response& response) {
            response.status = 500;
            response.set_content(R"({"error":{"message":"no luck","type":"server_error","code":500}})",
                                 "application/json");
        });
        // a 500 with the body's own words
        server_.Post("/v1/embeddings", [this](const httplib::Request& request, httplib::Response& response) {
            served++;
            const auto body = nlohmann::json::parse(request.body);
            response.status = body.value("status", 500);
            const nlohmann::json error = {
                {"message", body["says"]}, {"type", "server_error"}, {"code", response.status}};
            response.set_content(nlohmann::json{{"error", error}}.dump(), "application/json");
        });
        server_.Get("/large", [](const httplib::Request&, httplib::Response& response) {
            response.set_content(std::string(3u << 20, 'L'), "application/octet-stream");
        });
        // body: {"events":N,"wait":true,"delay_ms":D}; waits at the gate after the first event if asked
        auto stream = [this](const httplib::Request& request, httplib::Response& response) {
            served++;
            auto number = [&](const std::string& key, int fallback) {
                size_t at = request.body.find("\"" + key + "\":");
                return at == std::string::npos ? fallback : std::atoi(request.body.c_str() + at + key.size() + 3);
            };
            int events = number("events", 3), delay = number("delay_ms", 0);
            bool wait = request.body.find("\"wait\":true") != std::string::npos;
            if (request.body.find("\"late\":true") != std::string::npos) {
                Active running(active);
                wait_at_gate(request);
                if (request.body.find("\"fault\":true") != std::string::npos) {
                    response.status = 500;
                    response.set_content(
                        R"({"error":{"message":"Failed to parse messages: x","type":"server_error","code":500}})",
                        "application/json");
                    return;
                }
                if (request.body.find("\"reject\":true") != std::string::npos) {
                    response.status = 400;
                    response.set_content(
                        R"({"error":{"message":"too long","type":"exceed_context_size_error","code":400}})",
                        "application/json");
                    return;
                }
            }
            auto running = std::make_shared<Active>(active);
            auto sent = std::make_shared<int>(0);
            auto closed = request.is_connection_closed;
            const bool plain = request.body.find("\"plain\":true") != std::string::npos;
            response.set_chunked_content_provider(
                plain ? "text/plain" : "text/event-stream",
                [=, this](size_t, httplib::DataSink& sink) {
                    if (*sent == 1 && wait) {
                        std::unique_lock lock(mutex_);
                        while (!gate_ && !closed()) changed_.wait_for(lock, std::chrono::milliseconds(5));
                    }
                    if (broken) return false;
                    if (closed()) {
                        noticed_closed++;
                        return false;
                    }
                    if (delay) std::this_thread::sleep_for(std::chrono::milliseconds(delay));
                    if (*sent == events) {
                        std::string end = "data: [DONE]\n\n";
                        sink.write(end.data(), end.size());
                        sink.done();
                        return true;
                    }
                    std::string event = "data: {\"n\":" + std::to_string((*sent)++) + "}\n\n";
                    sent_events++;
                    return sink.write(event.data(), event.size());
                },
                [running](bool) {});
        };
        server_.Post("/v1/chat/completions", stream);
        server_.Post("/v1/messages", stream);
        server_.Post("/completion", [this](const httplib::Request& request, httplib::Response& response) {
            Active running(active);
            served++;
            wait_at_gate(request);
            response.set_content("{\"content\":\"done\"}", "application/json");
        });
    }

    std::string name_;
    TempFolder folder_;
    httplib::Server server_;
    std::thread thread_;
    std::mutex mutex_;
    std::condition_variable changed_;
    bool gate_ = false;
    std::atomic<bool> stopped_{false};
};

}  // namespace onebit::testing
