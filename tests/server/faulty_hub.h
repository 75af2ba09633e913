// A model hub on 127.0.0.1 for tests: speaks the hub's API over plain sockets, and fails in whatever way a test asks
// for.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cctype>
#include <chrono>
#include <functional>
#include <map>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/hash.h"

namespace onebit::test {

struct HubCall {
    std::string path;                            // with query
    std::map<std::string, std::string> headers;  // names in lower case
    std::string header(const std::string& name) const {
        const auto found = headers.find(name);
        return found == headers.end() ? "" : found->second;
    }
    bool is_file() const { return path.find("/resolve/") != std::string::npos; }
    bool is_tree() const { return path.find("/tree/") != std::string::npos; }
    bool is_model() const { return path.starts_with("/api/") && !is_tree(); }
};

struct HubAnswer {
    int status = 200;
    std::vector<std::pair<std::string, std::string>> headers = {};
    std::string body = {};
    std::optional<size_t> cut = {};                      // close the connection after so many bytes of the body
    bool say_length = true;                              // Content-Length of the whole body
    bool silent = false;                                 // close without a byte of an answer
    std::function<void(size_t sent)> before_piece = {};  // called before each piece of the body
    size_t piece = 16384;
};

class FaultyHub {
public:
    struct File {
        std::string path, bytes;
        nlohmann::json entry;  // of the tree; made from path and bytes unless set
    };
    std::string id = "org/repo";
    std::string revision = std::string(40, 'a');
    std::vector<File> files;
    // Asked first, with the number of calls of the same path before this one. Nothing: the hub answers as it should.
    std::function<std::optional<HubAnswer>(const HubCall&, int)> fault;

    FaultyHub() {
        listener_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        sockaddr_in address{};
        address.sin_family = AF_INET;
        address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        socklen_t size = sizeof address;
        if (listener_ < 0 || ::bind(listener_, reinterpret_cast<sockaddr*>(&address), size) != 0 ||
            ::listen(listener_, 64) != 0 || ::getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size) != 0)
            std::abort();
        port_ = ntohs(address.sin_port);
        thread_ = std::thread([this] { accept_calls(); });
    }
    ~FaultyHub() { stop(); }
    FaultyHub(const FaultyHub&) = delete;

    // Ends every connection; the port refuses afterwards.
    void stop() {
        if (!thread_.joinable()) return;
        stopping_ = true;
        thread_.join();
        ::close(listener_);
        {
            std::lock_guard lock(mutex_);
            for (int fd : open_) ::shutdown(fd, SHUT_RDWR);
        }
        for (std::thread& worker : workers_) worker.join();
        workers_.clear();
    }

    int port() const { return port_; }
    std::string url() const { return "http://127.0.0.1:" + std::to_string(port_); }
    bool stopping() const { return stopping_; }

    void add(const std::string& path, std::string bytes) { files.push_back({path, std::move(bytes), {}}); }
    std::vector<HubCall> calls() const {
        std::lock_guard lock(mutex_);
        return calls_;
    }
    std::vector<HubCall> file_calls() const {
        std::vector<HubCall> all = calls();
        std::erase_if(all, [](const HubCall& call) { return !call.is_file(); });
        return all;
    }

    static nlohmann::json tree_entry(const std::string& path, const std::string& bytes) {
        const std::string digest = to_hex(sha256(std::string_view(bytes)));
        return {{"type", "file"},
                {"path", path},
                {"size", bytes.size()},
                {"oid", digest.substr(0, 40)},
                {"lfs", {{"oid", digest}, {"size", bytes.size()}, {"pointerSize", 134}}}};
    }

    // What a good hub would say.
    HubAnswer right_answer(const HubCall& call) const {
        if (call.is_model()) {
            if (call.path != "/api/models/" + id)
                return {.status = 404, .headers = {{"X-Error-Code", "RepoNotFound"}}, .body = "{}"};
            return json_answer({{"id", id}, {"sha", revision}, {"siblings", nlohmann::json::array()}});
        }
        if (call.is_tree()) {
            nlohmann::json tree =
                nlohmann::json::array({{{"type", "directory"}, {"path", "sub"}, {"size", 0}, {"oid", "x"}}});
            for (const File& file : files)
                tree.push_back(file.entry.is_null() ? tree_entry(file.path, file.bytes) : file.entry);
            return json_answer(tree);
        }
        for (const File& file : files)
            if (call.path == "/" + id + "/resolve/" + revision + "/" + file.path) return file_answer(call, file.bytes);
        return {.status = 404, .headers = {{"X-Error-Code", "EntryNotFound"}}, .body = "Entry not found"};
    }

    static HubAnswer json_answer(const nlohmann::json& json) {
        return {.headers = {{"Content-Type", "application/json"}}, .body = json.dump()};
    }

    static HubAnswer file_answer(const HubCall& call, const std::string& bytes) {
        HubAnswer answer;
        answer.headers = {{"Content-Type", "application/octet-stream"},
                          {"ETag", "\"" + to_hex(sha256(std::string_view(bytes))) + "\""}};
        const std::string range = call.header("range");
        if (!range.starts_with("bytes=")) {
            answer.body = bytes;
            return answer;
        }
        const size_t first = std::stoull(range.substr(6));
        const std::string total = std::to_string(bytes.size());
        if (first >= bytes.size()) return {.status = 416, .headers = {{"Content-Range", "bytes */" + total}}};
        answer.status = 206;
        answer.headers.emplace_back(
            "Content-Range", "bytes " + std::to_string(first) + "-" + std::to_string(bytes.size() - 1) + "/" + total);
        answer.body = bytes.substr(first);
        return answer;
    }

private:
    void accept_calls() {
        while (!stopping_) {
            pollfd waiting{listener_, POLLIN, 0};
            if (::poll(&waiting, 1, 20) <= 0) continue;
            const int fd = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
            if (fd < 0) continue;
            std::lock_guard lock(mutex_);
            open_.push_back(fd);
            workers_.emplace_back([this, fd] {
                serve(fd);
                std::lock_guard closing(mutex_);
                std::erase(open_, fd);
                ::close(fd);
            });
        }
    }

    void serve(int fd) {
        std::string head;
        char byte = 0;
        while (head.size() < 65536 && !head.ends_with("\r\n\r\n")) {
            if (::recv(fd, &byte, 1, 0) != 1) return;
            head += byte;
        }
        const HubCall call = parse(head);
        int before = 0;
        {
            std::lock_guard lock(mutex_);
            before = static_cast<int>(
                std::count_if(calls_.begin(), calls_.end(), [&](const HubCall& old) { return old.path == call.path; }));
            calls_.push_back(call);
        }
        std::optional<HubAnswer> answer;
        if (fault) {
            std::lock_guard lock(fault_mutex_);
            answer = fault(call, before);
        }
        send_answer(fd, answer ? *answer : right_answer(call));
    }

    static HubCall parse(const std::string& head) {
        HubCall call;
        const size_t line = head.find("\r\n"), space = head.find(' ');
        call.path = head.substr(space + 1, head.rfind(' ', line) - space - 1);
        for (size_t at = line + 2; at < head.size();) {
            const size_t end = head.find("\r\n", at), colon = head.find(':', at);
            if (colon < end) {
                std::string name = head.substr(at, colon - at);
                std::transform(name.begin(), name.end(), name.begin(), [](unsigned char c) { return std::tolower(c); });
                call.headers[name] = head.substr(colon + 2, end - colon - 2);
            }
            at = end + 2;
        }
        return call;
    }

    static bool send_all(int fd, std::string_view text) {
        while (!text.empty()) {
            const ssize_t sent = ::send(fd, text.data(), text.size(), MSG_NOSIGNAL);
            if (sent <= 0) return false;
            text.remove_prefix(static_cast<size_t>(sent));
        }
        return true;
    }

    void send_answer(int fd, const HubAnswer& answer) {
        if (answer.silent) return;
        std::string head = "HTTP/1.1 " + std::to_string(answer.status) + " Answer\r\nConnection: close\r\n";
        for (const auto& [name, value] : answer.headers) head += name + ": " + value + "\r\n";
        if (answer.say_length) head += "Content-Length: " + std::to_string(answer.body.size()) + "\r\n";
        if (!send_all(fd, head + "\r\n")) return;
        const std::string_view body = std::string_view(answer.body).substr(0, answer.cut.value_or(answer.body.size()));
        for (size_t at = 0; at < body.size() && !stopping_; at += answer.piece) {
            if (answer.before_piece) answer.before_piece(at);
            if (!send_all(fd, body.substr(at, answer.piece))) return;
        }
        // what the client has not read yet must reach it: end our side and wait for it to close
        ::shutdown(fd, SHUT_WR);
        for (pollfd waiting{fd, POLLIN, 0}; !stopping_;) {
            char rest[256];
            if (::poll(&waiting, 1, 20) > 0 && ::recv(fd, rest, sizeof rest, 0) <= 0) return;
        }
    }

    int listener_ = -1, port_ = 0;
    std::atomic<bool> stopping_{false};
    std::thread thread_;
    mutable std::mutex mutex_;
    std::mutex fault_mutex_;
    std::vector<std::thread> workers_;
    std::vector<int> open_;
    std::vector<HubCall> calls_;
};

}  // namespace onebit::test
