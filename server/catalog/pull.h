// Downloads a model from a hub into our models folder. Resumes, checks sizes and digests, takes all shards.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <string>

#include "base/result.h"
#include "server/catalog/catalog.h"

namespace onebit {

// How patient a download is. attempts: tries of one request that fails for a reason that may pass (network, 429, 5xx);
// a try that brought a mebibyte starts the count anew. A Retry-After longer than longest_delay is an error at once.
struct PullTiming {
    unsigned attempts = 5;
    std::chrono::milliseconds first_delay{500};  // doubled after each failure
    std::chrono::milliseconds longest_delay{30000};
    std::chrono::milliseconds connect_timeout{10000};
    std::chrono::milliseconds read_timeout{60000};  // without a single byte
};

struct PullOptions {
    std::string hub;       // base address; empty: $HF_ENDPOINT, else the public hub
    std::string token;     // empty: $HF_TOKEN
    bool offline = false;  // the disk only
    bool update = false;   // ask the hub even when a complete copy is here
    // Called on the caller's thread for each piece received (about 16 KiB). file: the hub's name; both numbers in
    // bytes.
    std::function<void(const std::string& file, uint64_t done, uint64_t total)> progress;
    const std::atomic<bool>* cancel = nullptr;  // looked at 20 times a second, but not while a connection is made
    PullTiming timing;
};

// reference: ORG/REPO, ORG/REPO:QUANT or ORG/REPO/FILE.gguf. Cache first: a complete copy on disk is returned without a
// request, unless update. A hub that answers 429, 5xx or not at all is no error while a copy exists: one warning.
// The old copy stays until the new one is complete and its digest fits. A partial file is resumed if the hub's etag is
// the same, else dropped. A set of shards appears as one: all are renamed once the last one is verified. A second pull
// of the same repository waits for the first. Safe from any thread; writes nothing but files below folders.ours
// (models_folder() if empty) and log lines. Errors: usage (reference), not_found (repository, quant: lists what there
// is), no_space (before the download, with both numbers), unavailable, timeout, invalid (digest), io, cancelled.
Result<ModelEntry> pull_model(const std::string& reference, const CatalogFolders& folders, const PullOptions& options);

}  // namespace onebit
