#include "server/catalog/pull_download.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <vector>

#include "base/hash.h"
#include "base/log.h"
#include "base/unique_fd.h"
#include "server/catalog/pull_store.h"

namespace onebit {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t kProgressThatCounts = 1u << 20;

HttpFailure final_failure(Error error) { return {std::move(error), false, {}}; }

struct ContentRange {
    uint64_t first = 0;
    std::optional<uint64_t> total;
};

// "bytes 5-9/10" or "bytes 5-9/*".
std::optional<ContentRange> parse_content_range(const std::string& text) {
    if (!text.starts_with("bytes ")) return std::nullopt;
    const char *at = text.data() + 6, *end = text.data() + text.size();
    ContentRange range;
    uint64_t last = 0, total = 0;
    auto parsed = std::from_chars(at, end, range.first);
    if (parsed.ec != std::errc() || parsed.ptr == end || *parsed.ptr != '-') return std::nullopt;
    parsed = std::from_chars(parsed.ptr + 1, end, last);
    if (parsed.ec != std::errc() || parsed.ptr == end || *parsed.ptr != '/' || last < range.first) return std::nullopt;
    if (std::string_view(parsed.ptr + 1, end) == "*") return range;
    parsed = std::from_chars(parsed.ptr + 1, end, total);
    if (parsed.ec != std::errc() || parsed.ptr != end) return std::nullopt;
    range.total = total;
    return range;
}

// One partial file that is being filled.
class Transfer {
public:
    explicit Transfer(const Download& download) : download_(download), subject_(download.url.text()) {}

    Result<void> run() {
        ONEBIT_RETURN_IF_ERROR(open());
        bool old_bytes = received_ > 0;
        while (true) {
            if (auto failure = fetch()) return std::move(failure->error);
            const std::string digest = to_hex(hash_.finish());
            if (download_.file.sha256.empty() || digest == download_.file.sha256) break;
            // what was left by an earlier process may be what is damaged
            if (!std::exchange(old_bytes, false))
                return Error{ErrorCode::invalid, subject_, "SHA-256 " + download_.file.sha256, digest,
                             "pull again; if it stays so the hub's copy is damaged"};
            log_warning("pull", download_.target.string() + ": the resumed file has a wrong digest; starting again");
            ONEBIT_RETURN_IF_ERROR(restart());
        }
        if (::fsync(fd_.get()) != 0) return error_from_errno(errno, path_.string(), "");
        PartialRecord record = record_of_file();
        record.verified = true;
        return write_partial_record(download_.target, record);
    }

    uint64_t received() const { return received_; }

private:
    PartialRecord record_of_file() const {
        return {download_.file.etag, download_.file.sha256, download_.file.size, false};
    }

    Result<void> open() {
        const fs::path& target = download_.target;
        path_ = partial_of(target);
        std::error_code error;
        fs::create_directories(target.parent_path(), error);
        if (error) return error_from_errno(error.value(), target.parent_path().string(), "check its permissions");
        const auto record = read_partial_record(target);
        const auto size = fs::file_size(path_, error);
        if (!error) {
            if (!record || !record->describes(download_.file)) {
                log_info("pull", target.string() + ": the partial file is of another version; starting again");
                remove_partial(target);
            } else if (size > download_.file.size) {
                log_warning("pull", path_.string() + ": has " + std::to_string(size) + " bytes, more than the " +
                                        std::to_string(download_.file.size) + " of the whole file; starting again");
                remove_partial(target);
            }
        }
        ONEBIT_RETURN_IF_ERROR(write_partial_record(target, record_of_file()));
        fd_ = UniqueFd(::open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0644));
        if (!fd_) return error_from_errno(errno, path_.string(), "check the permissions of its folder");
        return hash_what_is_there();
    }

    Result<void> hash_what_is_there() {
        std::vector<std::byte> buffer(1u << 20);
        while (true) {
            if (cancelled(download_.cancel)) return cancelled_error(subject_);
            const ssize_t size = ::pread(fd_.get(), buffer.data(), buffer.size(), static_cast<off_t>(received_));
            if (size < 0 && errno == EINTR) continue;
            if (size < 0) return error_from_errno(errno, path_.string(), "remove it and pull again");
            if (size == 0) return {};
            hash_.update(std::span(buffer).first(static_cast<size_t>(size)));
            received_ += static_cast<uint64_t>(size);
        }
    }

    Result<void> restart() {
        if (::ftruncate(fd_.get(), 0) != 0) return error_from_errno(errno, path_.string(), "remove it and pull again");
        received_ = 0;
        hash_ = Sha256();
        return {};
    }

    std::optional<HttpFailure> fetch() {
        return with_retries(
            *download_.timing, download_.cancel, [this](bool& progressed) -> std::optional<HttpFailure> {
                const uint64_t before = received_;
                if (received_ == download_.file.size) return std::nullopt;
                HttpRequest request{download_.url, {}, download_.token};
                if (received_ > 0) request.headers["Range"] = "bytes=" + std::to_string(received_) + "-";
                auto failure = http_get(request,
                                        {[this](const HttpHead& head) { return on_head(head); },
                                         [this](std::span<const std::byte> bytes) { return on_body(bytes); }},
                                        *download_.timing, download_.cancel);
                progressed = received_ >= before + kProgressThatCounts;
                if (!failure && received_ < download_.file.size)
                    failure = HttpFailure{
                        {ErrorCode::unavailable, subject_, std::to_string(download_.file.size) + " bytes",
                         "the connection closed after " + std::to_string(received_), "try again: what is here is kept"},
                        true,
                        {}};
                return failure;
            });
    }

    std::optional<HttpFailure> start_again() {
        if (Result<void> done = restart(); !done) return final_failure(std::move(done).error());
        return std::nullopt;
    }

    HttpFailure wrong_size(const std::string& found) const {
        return final_failure({ErrorCode::invalid, subject_,
                              std::to_string(download_.file.size) + " bytes, as the hub's list says", found,
                              "pull again later"});
    }

    std::optional<HttpFailure> on_head(const HttpHead& head) {
        if (head.status == 416) {
            if (std::exchange(refused_range_, true))
                return final_failure(
                    {ErrorCode::invalid, subject_, "the file from its start", "HTTP 416 twice", "pull again later"});
            log_warning("pull", path_.string() + ": the hub cannot go on from byte " + std::to_string(received_) +
                                    "; starting again");
            if (auto failure = start_again()) return failure;
            return HttpFailure{
                {ErrorCode::unavailable, subject_, "the rest of the file", "HTTP 416", "pull again later"},
                true,
                std::chrono::seconds(0)};
        }
        if (head.status != 200 && head.status != 206) return failure_of_status(head, subject_);
        const bool whole = head.status == 200;
        if (head.header("content-type").starts_with("text/html"))
            return final_failure({ErrorCode::unavailable, subject_, "a model file", "an HTML page",
                                  "is a log-in page of this network in between?"});
        if (head.linked_etag.size() == 64 && !download_.file.sha256.empty() &&
            head.linked_etag != download_.file.sha256)
            return final_failure({ErrorCode::invalid, subject_, "version " + download_.file.sha256, head.linked_etag,
                                  "it changed on the hub; pull again"});

        const std::optional<uint64_t> length = head.length();
        if (whole) {
            if (length && *length != download_.file.size) return wrong_size(std::to_string(*length));
            if (received_ > 0) return start_again();
            return std::nullopt;
        }
        const auto range = parse_content_range(head.header("content-range"));
        if (range && range->total && *range->total != download_.file.size)
            return wrong_size(std::to_string(*range->total));
        if (!range || range->first != received_)
            return final_failure({ErrorCode::invalid, subject_, "the file from byte " + std::to_string(received_),
                                  "range '" + head.header("content-range").substr(0, 80) + "'", "pull again"});
        return std::nullopt;
    }

    std::optional<HttpFailure> on_body(std::span<const std::byte> bytes) {
        if (bytes.size() > download_.file.size - received_) return wrong_size("more");
        for (std::span<const std::byte> rest = bytes; !rest.empty();) {
            const ssize_t size = ::pwrite(fd_.get(), rest.data(), rest.size(), static_cast<off_t>(received_));
            if (size < 0 && errno == EINTR) continue;
            if (size < 0)
                return final_failure(error_from_errno(errno, path_.string(),
                                                      "make room for " +
                                                          std::to_string(download_.file.size - received_) +
                                                          " bytes and pull again to go on, or remove the file"));
            hash_.update(rest.first(static_cast<size_t>(size)));
            received_ += static_cast<uint64_t>(size);
            rest = rest.subspan(static_cast<size_t>(size));
        }
        if (download_.progress) download_.progress(download_.file.path, received_, download_.file.size);
        return std::nullopt;
    }

    const Download& download_;
    const std::string subject_;
    fs::path path_;
    UniqueFd fd_;
    Sha256 hash_;
    uint64_t received_ = 0;
    bool refused_range_ = false;
};

bool can_go_on_after(ErrorCode code) {
    return code == ErrorCode::unavailable || code == ErrorCode::timeout || code == ErrorCode::cancelled ||
           code == ErrorCode::no_space || code == ErrorCode::io;
}

}  // namespace

Result<void> download_to_partial(const Download& download) {
    if (const auto record = read_partial_record(download.target);
        record && record->verified && record->describes(download.file)) {
        std::error_code error;
        if (fs::file_size(partial_of(download.target), error) == download.file.size && !error) return {};
    }
    Transfer transfer(download);
    Result<void> done = transfer.run();
    if (!done && (!can_go_on_after(done.error().code) || transfer.received() == 0)) remove_partial(download.target);
    return done;
}

}  // namespace onebit
