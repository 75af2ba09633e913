// A light HTTP client for measuring servers: N clients at once, each streaming one completion after another.
// Prints one JSON line: tokens per second, time to first token, events, errors, and a digest of the texts, so that a
// faster server that answers something else is seen.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;

struct Sample {
    double first_event_ms = 0;
    double seconds = 0;
    long events = 0;
    size_t text_hash = 0;
    bool good = false;
};

int connect_to(int port) {
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<uint16_t>(port));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) {
        close(fd);
        return -1;
    }
    const int one = 1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    return fd;
}

// One streamed completion; counts "data: " lines that carry a token and hashes their "content" parts.
Sample stream_once(int port, const std::string& body) {
    Sample sample;
    const auto begin = Clock::now();
    const int fd = connect_to(port);
    if (fd < 0) return sample;
    const std::string request =
        "POST /completion HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        "Connection: close\r\nContent-Length: " +
        std::to_string(body.size()) + "\r\n\r\n" + body;
    if (write(fd, request.data(), request.size()) != static_cast<ssize_t>(request.size())) {
        close(fd);
        return sample;
    }
    std::string buffer, text;
    char piece[16384];
    size_t scanned = 0;
    bool stopped = false;
    for (;;) {
        const ssize_t got = read(fd, piece, sizeof piece);
        if (got <= 0) break;
        buffer.append(piece, static_cast<size_t>(got));
        for (size_t end; (end = buffer.find('\n', scanned)) != std::string::npos; scanned = end + 1) {
            const std::string_view line(buffer.data() + scanned, end - scanned);
            if (!line.starts_with("data: ")) continue;
            if (line.find("\"stop\":true") != std::string_view::npos) stopped = true;
            const size_t content = line.find("\"content\":\"");
            if (content == std::string_view::npos) continue;
            if (sample.events++ == 0)
                sample.first_event_ms = std::chrono::duration<double, std::milli>(Clock::now() - begin).count();
            const size_t start = content + 11;
            text.append(line.substr(start, line.find('"', start) - start));
        }
    }
    close(fd);
    sample.seconds = std::chrono::duration<double>(Clock::now() - begin).count();
    sample.text_hash = std::hash<std::string>{}(text);
    sample.good = stopped && buffer.starts_with("HTTP/1.1 200");
    return sample;
}

double median(std::vector<double> values) {
    if (values.empty()) return 0;
    std::sort(values.begin(), values.end());
    return values[values.size() / 2];
}

}  // namespace

int main(int argc, char** argv) {
    if (argc != 5) {
        std::fprintf(stderr, "usage: stream-client PORT CLIENTS REQUESTS_PER_CLIENT TOKENS\n");
        return 2;
    }
    const int port = std::atoi(argv[1]), clients = std::atoi(argv[2]), rounds = std::atoi(argv[3]),
              tokens = std::atoi(argv[4]);
    std::vector<Sample> samples;
    std::mutex mutex;
    const auto begin = Clock::now();
    std::vector<std::thread> threads;
    threads.reserve(static_cast<size_t>(std::max(clients, 0)));
    for (int client = 0; client < clients; client++) {
        threads.emplace_back([&, client] {
            const std::string body =
                R"({"prompt":"Once upon a time there was a )" + std::to_string(client) +
                R"(","temperature":0,"stream":true,"ignore_eos":true,"cache_prompt":false,"n_predict":)" +
                std::to_string(tokens) + "}";
            for (int round = 0; round < rounds; round++) {
                const Sample sample = stream_once(port, body);
                const std::lock_guard lock(mutex);
                samples.push_back(sample);
            }
        });
    }
    for (auto& thread : threads) thread.join();
    const double wall = std::chrono::duration<double>(Clock::now() - begin).count();
    std::vector<double> first;
    long events = 0, errors = 0;
    size_t digest = 0;
    for (const Sample& sample : samples) {
        if (!sample.good) {
            errors++;
            continue;
        }
        first.push_back(sample.first_event_ms);
        events += sample.events;
        digest += sample.text_hash;  // order does not matter
    }
    std::printf(
        "{\"clients\":%d,\"requests\":%zu,\"errors\":%ld,\"events\":%ld,\"wall_s\":%.6f,\"events_per_s\":%.3f,"
        "\"first_event_ms_median\":%.4f,\"text_digest\":\"%zx\"}\n",
        clients, samples.size(), errors, events, wall, static_cast<double>(events) / wall, median(first), digest);
    return errors == 0 ? 0 : 1;
}
