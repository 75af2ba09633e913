// Brings one file of a hub to FILE.partial: resumed, whole, verified and synced. Renaming it is the caller's.
#pragma once

#include <atomic>
#include <filesystem>
#include <functional>
#include <string>

#include "base/result.h"
#include "server/catalog/pull_http.h"
#include "server/catalog/pull_select.h"

namespace onebit {

struct Download {
    HttpUrl url;
    std::string token;
    HubFile file;
    std::filesystem::path target;  // its folder is made if missing
    const PullTiming* timing = nullptr;
    const std::atomic<bool>* cancel = nullptr;
    std::function<void(const std::string& file, uint64_t done, uint64_t total)> progress;
};

// Hold the lock of the folder. The partial is kept after unavailable, timeout, cancelled, no_space and io, since the
// next call can go on from it; it is removed after every other error, and when it has no byte.
Result<void> download_to_partial(const Download& download);

}  // namespace onebit
