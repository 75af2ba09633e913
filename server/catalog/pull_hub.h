// The hub's public HTTP API: what a repository holds, and where its files are.
#pragma once

#include <atomic>
#include <string>

#include "base/result.h"
#include "server/catalog/pull_http.h"
#include "server/catalog/pull_select.h"

namespace onebit {

class HubClient {
public:
    // Address and token of the options or of the environment (HF_ENDPOINT, HF_TOKEN). Error usage for a bad one.
    // options must outlive the client.
    static Result<HubClient> open(const PullOptions& options);

    // The GGUF files of the newest commit. attempts: tries of each request. Errors not_found, unavailable, timeout,
    // cancelled; invalid for an answer that is not what the API gives or names a file that could leave our folder.
    Result<HubRepository> repository(const std::string& org_repo, unsigned attempts) const;

    HttpUrl file_url(const HubRepository& repository, const std::string& path) const;
    const std::string& token() const { return token_; }

private:
    HubClient(HttpUrl base, std::string token, const PullOptions& options)
        : base_(std::move(base)), token_(std::move(token)), options_(&options) {}
    Result<std::string> get_text(const HttpUrl& url, const std::string& subject, unsigned attempts,
                                 std::string* next) const;

    HttpUrl base_;
    std::string token_;
    const PullOptions* options_;
};

}  // namespace onebit
