#include "server/catalog/pull_hub.h"

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <set>

namespace onebit {
namespace {

using Json = nlohmann::json;

constexpr size_t kLargestAnswer = 32u << 20;
constexpr int kMostPages = 100;
constexpr const char* kPublicHub = "https://huggingface.co";

std::string environment(const char* name) {
    const char* value = std::getenv(name);
    return value ? value : "";
}

Error bad_answer(const std::string& subject, const std::string& expected, const std::string& found) {
    return {ErrorCode::invalid, "answer of the hub about " + subject, expected, found,
            "is the address that of a model hub?"};
}

bool is_hex(const std::string& text, size_t digits) {
    return text.size() == digits &&
           std::all_of(text.begin(), text.end(), [](unsigned char c) { return std::isxdigit(c); });
}

std::string text_of(const Json& object, const char* key) {
    const auto found = object.find(key);
    return found != object.end() && found->is_string() ? found->get<std::string>() : "";
}

bool equal_without_case(const std::string& a, const std::string& b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                      [](unsigned char x, unsigned char y) { return std::tolower(x) == std::tolower(y); });
}

// The address of rel="next" in a Link header.
std::string next_link(const std::string& header) {
    const size_t rel = header.find("rel=\"next\"");
    if (rel == std::string::npos) return {};
    const size_t open = header.rfind('<', rel), close = header.find('>', open == std::string::npos ? rel : open);
    return open == std::string::npos || close > rel ? "" : header.substr(open + 1, close - open - 1);
}

// Nothing for a folder or a file of another kind.
Result<std::optional<HubFile>> file_of(const Json& entry, const std::string& subject) {
    if (!entry.is_object() || !entry.contains("path") || !entry["path"].is_string())
        return bad_answer(subject, "entries with a path", "one without");
    HubFile file;
    file.path = entry["path"].get<std::string>();
    const std::string type = text_of(entry, "type");
    std::string tail = file.path.size() < 5 ? "" : file.path.substr(file.path.size() - 5);
    if ((!type.empty() && type != "file") || !equal_without_case(tail, ".gguf")) return std::optional<HubFile>{};
    if (const std::string reason = unsafe_path_reason(file.path); !reason.empty())
        return bad_answer(subject, "file names that stay in their folder",
                          reason + ": '" + file.path.substr(0, 100) + "'");

    const Json lfs = entry.value("lfs", Json());
    const bool large = lfs.is_object();
    const Json& size = large && lfs.contains("size") ? lfs["size"] : entry.value("size", Json());
    if (!size.is_number_unsigned() || size.get<uint64_t>() > (uint64_t{1} << 60))
        return bad_answer(subject, "a size in bytes for " + file.path,
                          size.is_null()     ? "none"
                          : size.is_number() ? "a number that is none"
                                             : size.type_name());
    file.size = size.get<uint64_t>();
    if (large) {
        std::string digest = text_of(lfs, "oid");
        if (digest.empty()) digest = text_of(lfs, "sha256");
        if (digest.starts_with("sha256:")) digest.erase(0, 7);
        std::transform(digest.begin(), digest.end(), digest.begin(), [](unsigned char c) { return std::tolower(c); });
        if (!is_hex(digest, 64))
            return bad_answer(subject, "a SHA-256 for " + file.path, "'" + digest.substr(0, 80) + "'");
        file.sha256 = digest;
    }
    file.etag = file.sha256.empty() ? text_of(entry, "oid").substr(0, 200) : file.sha256;
    return std::optional<HubFile>(std::move(file));
}

}  // namespace

Result<HubClient> HubClient::open(const PullOptions& options) {
    std::string address = options.hub.empty() ? environment("HF_ENDPOINT") : options.hub;
    if (address.empty()) address = kPublicHub;
    while (address.ends_with("/")) address.pop_back();
    Result<HttpUrl> base = parse_url(address, "address of the hub");
    if (!base) return std::move(base).error();
    if (base->target.find('?') != std::string::npos)
        return Error{ErrorCode::usage, "address of the hub", "no '?'", "'" + address + "'", ""};
    while (base->target.ends_with("/")) base->target.pop_back();
    const std::string token = options.token.empty() ? environment("HF_TOKEN") : options.token;
    if (std::any_of(token.begin(), token.end(), [](unsigned char c) { return c <= ' ' || c > 126; }))
        return Error{ErrorCode::usage, "token of the hub", "printable characters without a space", "others",
                     "check HF_TOKEN"};
    return HubClient(*base, token, options);
}

HttpUrl HubClient::file_url(const HubRepository& repository, const std::string& path) const {
    return base_.with_target(base_.target + "/" + encode_url_path(repository.id) + "/resolve/" +
                             encode_url_path(repository.revision) + "/" + encode_url_path(path));
}

Result<std::string> HubClient::get_text(const HttpUrl& url, const std::string& subject, unsigned attempts,
                                        std::string* next) const {
    std::string text;
    HttpSink sink;
    sink.head = [&](const HttpHead& head) -> std::optional<HttpFailure> {
        text.clear();
        if (head.status != 200) return failure_of_status(head, subject);
        if (head.header("content-type").starts_with("text/html"))
            return HttpFailure{{ErrorCode::unavailable, subject, "JSON from the hub", "an HTML page",
                                "is a log-in page of this network in between?"},
                               false,
                               {}};
        if (next) *next = next_link(head.header("link"));
        return std::nullopt;
    };
    sink.body = [&](std::span<const std::byte> bytes) -> std::optional<HttpFailure> {
        if (text.size() + bytes.size() > kLargestAnswer)
            return HttpFailure{bad_answer(subject, "at most 32 MiB", "more"), false, {}};
        text.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
        return std::nullopt;
    };
    PullTiming timing = options_->timing;
    timing.attempts = attempts;
    const auto failure = with_retries(timing, options_->cancel, [&](bool&) {
        return http_get({url, {}, token_}, sink, timing, options_->cancel);
    });
    if (failure) return failure->error;
    return text;
}

Result<HubRepository> HubClient::repository(const std::string& org_repo, unsigned attempts) const {
    const std::string subject = "model repository " + org_repo;
    const HttpUrl about = base_.with_target(base_.target + "/api/models/" + encode_url_path(org_repo));
    Result<std::string> text = get_text(about, subject, attempts, nullptr);
    if (!text) return std::move(text).error();
    const Json model = Json::parse(*text, nullptr, false);
    if (!model.is_object())
        return bad_answer(org_repo, "a JSON object", model.is_discarded() ? "no JSON" : "other JSON");

    HubRepository repository;
    repository.id = text_of(model, "id");
    // another name than the one asked for (a renamed repository) would look for its copies in another folder
    if (!equal_without_case(repository.id, org_repo)) repository.id = org_repo;
    repository.revision = text_of(model, "sha");
    if (repository.revision.size() < 7 || repository.revision.size() > 64 ||
        !is_hex(repository.revision, repository.revision.size()))
        return bad_answer(org_repo, "the commit as 'sha'", "'" + repository.revision.substr(0, 80) + "'");

    HttpUrl page = about.with_target(about.target + "/tree/" + repository.revision + "?recursive=true");
    std::set<std::string> seen;
    for (int pages = 0;; ++pages) {
        if (pages == kMostPages) return bad_answer(org_repo, "at most 100 pages of files", "more");
        std::string next;
        Result<std::string> listing = get_text(page, subject, attempts, &next);
        if (!listing) return std::move(listing).error();
        const Json tree = Json::parse(*listing, nullptr, false);
        if (!tree.is_array())
            return bad_answer(org_repo, "a JSON array of files", tree.is_discarded() ? "no JSON" : "other JSON");
        for (const Json& entry : tree) {
            Result<std::optional<HubFile>> file = file_of(entry, org_repo);
            if (!file) return std::move(file).error();
            if (!file->has_value()) continue;
            if (!seen.insert((*file)->path).second)
                return bad_answer(org_repo, "each file once", "'" + (*file)->path + "' twice");
            repository.files.push_back(std::move(**file));
        }
        if (next.empty()) return repository;
        Result<HttpUrl> following = resolve_url(page, next);
        if (!following) return std::move(following).error();
        if (following->origin() != base_.origin())
            return bad_answer(org_repo, "the next page on the same host", following->origin());
        page = *following;
    }
}

}  // namespace onebit
