#include "app/bench_served.h"

#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <barrier>
#include <chrono>
#include <nlohmann/json.hpp>
#include <random>
#include <thread>

#include "app/chat_client.h"
#include "cpp-httplib/httplib.h"
#include "server/supervisor/child_process.h"

namespace onebit {
namespace {

using Clock = std::chrono::steady_clock;
using Json = nlohmann::json;

constexpr size_t kMostText = 1 << 20, kMostError = 1000;
constexpr int kAnswerSeconds = 3600, kLookMilliseconds = 50;
constexpr std::chrono::seconds kStop{30};
constexpr std::string_view kListening = "listening on http://127.0.0.1:";

double seconds_between(Clock::time_point begin, Clock::time_point end) {
    return std::max(std::chrono::duration<double>(end - begin).count(), 1e-9);
}

// A `1bit serve` of our own; gone with this object. It is quiet: nobody reads its pipe while it serves.
class Server {
public:
    static Result<std::unique_ptr<Server>> start(const ServedRequest& request, const std::string& device) {
        std::unique_ptr<Server> server(new Server);
        server->key_ = "bench-" + std::to_string(std::random_device{}());
        const uint32_t threads = request.threads ? request.threads : std::max(1u, std::thread::hardware_concurrency());
        std::vector<std::string> words = {"serve", request.model_file, "--quiet", "--offline", "--config", "/dev/null"};
        const auto add = [&](const char* flag, std::string value) {
            words.insert(words.end(), {flag, std::move(value)});
        };
        add("--host", "127.0.0.1");
        add("--port", "0");
        add("--api-key", server->key_);
        add("--device", device);
        add("--parallel", std::to_string(std::ranges::max(request.clients)));
        constexpr uint32_t kLeast = 256;  // that serve takes
        add("--ctx-size", std::to_string(std::max(kLeast, request.prompt + request.generate + 8)));
        words.push_back("--");
        add("--ubatch-size", std::to_string(request.ubatch));
        add("--threads", std::to_string(threads));
        add("--threads-batch", std::to_string(threads));
        Result<ChildProcess> child = spawn_child(request.program, words, -1);
        if (!child) return child.error();
        server->child_ = *std::move(child);
        while (server->port_ == 0 && !server->ended())
            if (const size_t at = server->output_.find(kListening);
                at != std::string::npos && server->output_.find('\n', at) != std::string::npos)
                server->port_ = std::atoi(server->output_.c_str() + at + kListening.size());
        // a model that cannot be loaded ends the server, and time limits are the server's own
        while (!server->ended())
            if (const auto health = server->client().Get("/health"); health && health->status == 200) return server;
        return server->failed("its end");
    }

    ~Server() {
        if (child_.pid <= 0) return;
        kill_child(child_.pid, SIGTERM);
        const auto limit = Clock::now() + kStop;
        while (!ended())
            if (Clock::now() > limit) kill_child(child_.pid, SIGKILL);
        ::waitpid(child_.pid, nullptr, 0);
    }

    httplib::Client client() const {
        httplib::Client client("127.0.0.1", port_);
        client.set_read_timeout(kAnswerSeconds);
        client.set_bearer_token_auth(key_);
        return client;
    }

    Error failed(const std::string& found) {
        ended();
        return {ErrorCode::unavailable, "1bit serve", "a server that answers", found + "\n" + output_,
                "start it by hand to see what it says"};
    }

private:
    Server() = default;

    // Waits a little for output and reads it; true once the server has closed its end.
    bool ended() {
        pollfd entry{child_.output.get(), POLLIN, 0};
        ::poll(&entry, 1, kLookMilliseconds);
        char piece[4096];
        ssize_t got = 0;
        while ((got = ::read(entry.fd, piece, sizeof piece)) > 0) output_.append(piece, static_cast<size_t>(got));
        return got == 0;
    }

    ChildProcess child_;
    std::string output_, key_;
    int port_ = 0;
};

struct Stream {
    Clock::time_point begin, first, end;
    uint64_t tokens = 0;
    double decode = 0;  // tokens/s, as the engine measured it
    std::string problem;
};

Stream one_request(const Server& server, const std::string& body) try {
    Stream stream;
    EventReader reader;
    httplib::Client client = server.client();
    std::string said;
    bool any = false;
    stream.begin = Clock::now();
    const auto answer =
        client.Post("/completion", httplib::Headers{}, body, "application/json", [&](const char* data, size_t size) {
            if (said.size() < kMostError) said.append(data, std::min(size, kMostError));
            for (const std::string& event : reader.feed({data, size})) {
                stream.end = Clock::now();
                if (!std::exchange(any, true)) stream.first = stream.end;
                const Json json = Json::parse(event, nullptr, false);
                if (!json.is_object() || !json.value("stop", false)) continue;
                stream.tokens = json.value("tokens_predicted", 0u);
                if (const auto timings = json.find("timings"); timings != json.end() && timings->is_object())
                    stream.decode = timings->value("predicted_per_second", 0.0);
            }
            return true;
        });
    if (!answer) stream.problem = httplib::to_string(answer.error());
    if (answer && answer->status != 200) stream.problem = "status " + std::to_string(answer->status) + ": " + said;
    return stream;
} catch (const std::exception& error) {
    return {{}, {}, {}, 0, 0, error.what()};
}

class Clients {
public:
    Clients(const ServedRequest& request, Server& server) : request_(request), server_(server) {}

    Result<void> read_text() {
        const Json body = {{"content", request_.text.substr(0, kMostText)}, {"add_special", false}};
        const auto dumped = body.dump(-1, ' ', false, Json::error_handler_t::replace);
        const auto answer = server_.client().Post("/tokenize", dumped, "application/json");
        if (!answer || answer->status != 200) return server_.failed("no answer from /tokenize");
        const Json json = Json::parse(answer->body, nullptr, false);
        if (json.is_object()) tokens_ = json.value("tokens", std::vector<int32_t>());
        if (tokens_.empty()) return Error{ErrorCode::usage, "--text", "at least one token", "0", "take a longer text"};
        return {};
    }

    // Adds one round to the cell; nothing is kept of a warm-up.
    Result<void> round(ServedCell& cell, bool warm_up) {
        std::vector<std::string> bodies(cell.clients);
        for (std::string& body : bodies) body = next_body();
        std::vector<Stream> streams(cell.clients);
        std::barrier begin(static_cast<ptrdiff_t>(cell.clients));
        std::vector<std::thread> threads;
        threads.reserve(cell.clients);
        for (size_t i = 0; i < cell.clients; i++)
            threads.emplace_back([&, i] {
                begin.arrive_and_wait();
                streams[i] = one_request(server_, bodies[i]);
            });
        for (std::thread& thread : threads) thread.join();
        Clock::time_point first = Clock::time_point::max(), last = Clock::time_point::min();
        for (const Stream& stream : streams) {
            if (!stream.problem.empty()) return server_.failed(stream.problem);
            if (stream.tokens != request_.generate)
                return server_.failed(std::to_string(stream.tokens) + " of " + std::to_string(request_.generate) +
                                      " tokens");
            first = std::min(first, stream.begin);
            last = std::max(last, stream.end);
        }
        if (warm_up) return {};
        cell.tokens_per_second.push_back(double(cell.clients) * request_.generate / seconds_between(first, last));
        for (const Stream& stream : streams) {
            cell.first_token_ms.push_back(seconds_between(stream.begin, stream.first) * 1000);
            if (stream.decode > 0) cell.decode_tokens_per_second.push_back(stream.decode);
        }
        return {};
    }

private:
    // Each prompt begins elsewhere in the text, so that none is in a cache.
    std::string next_body() {
        std::vector<int32_t> prompt(request_.prompt);
        for (int32_t& token : prompt) token = tokens_[place_++ % tokens_.size()];
        return Json{{"prompt", prompt}, {"n_predict", request_.generate}, {"temperature", 0}, {"ignore_eos", true},
                    {"stream", true},   {"cache_prompt", false}}
            .dump();
    }

    const ServedRequest& request_;
    Server& server_;
    std::vector<int32_t> tokens_;
    size_t place_ = 0;
};

Result<void> measure_device(const ServedRequest& request, const std::string& device, std::vector<ServedCell>& cells) {
    const auto tell = [&](const std::string& step) {
        if (request.progress) request.progress(step);
    };
    tell("serving on " + device);
    Result<std::unique_ptr<Server>> server = Server::start(request, device);
    if (!server) return server.error();
    Clients clients(request, **server);
    ONEBIT_RETURN_IF_ERROR(clients.read_text());
    for (const uint32_t count : request.clients) {
        ServedCell cell{device, count, request.prompt, request.generate, {}, {}, {}};
        for (uint32_t r = 0; r <= request.rounds; r++) {
            tell(device + " served to " + std::to_string(count) + " at a time, " +
                 (r == 0 ? "warm-up" : "round " + std::to_string(r) + " of " + std::to_string(request.rounds)));
            ONEBIT_RETURN_IF_ERROR(clients.round(cell, r == 0));
        }
        cells.push_back(std::move(cell));
    }
    return {};
}

}  // namespace

Result<std::vector<ServedCell>> measure_served(const ServedRequest& request) try {
    std::vector<ServedCell> cells;
    if (request.clients.empty()) return cells;
    for (const std::string& device : request.devices) ONEBIT_RETURN_IF_ERROR(measure_device(request, device, cells));
    return cells;
} catch (const std::exception& error) {
    return Error{ErrorCode::internal, "bench", "a measurement of the server", error.what(), ""};
}

}  // namespace onebit
