// Downloads a model from a hub into our models folder. Resumes, checks sizes and digests, takes all shards.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>

#include "base/result.h"
#include "server/catalog/catalog.h"

namespace onebit {

struct PullOptions {
    std::string hub;        // base address; empty: $HF_ENDPOINT, else the public hub
    std::string token;      // empty: $HF_TOKEN
    bool offline = false;   // the disk only
    bool update = false;    // ask the hub even when a complete copy is here
    std::function<void(const std::string& file, uint64_t done, uint64_t total)> progress;  // called on the caller's thread
    const std::atomic<bool>* cancel = nullptr;
};

// reference: ORG/REPO, ORG/REPO:QUANT or ORG/REPO/FILE.gguf. Cache first: a complete copy on disk is returned without a
// request, unless update. A hub that answers 429, 5xx or not at all is no error while a copy exists: one warning.
// The old copy stays until the new one is complete and its digest fits. A partial file is resumed if the hub's etag is
// the same, else dropped. Errors: usage (reference), not_found (repository, quant: lists what there is), no_space
// (before the download, with both numbers), unavailable, timeout, invalid (digest), cancelled.
Result<ModelEntry> pull_model(const std::string& reference, const CatalogFolders& folders, const PullOptions& options);

}  // namespace onebit
