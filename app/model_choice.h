// Which model a command means, and fetching it from a hub when it is not on this disk.
#pragma once

#include <atomic>
#include <string>
#include <vector>

#include "base/result.h"
#include "server/catalog/catalog.h"
#include "server/config.h"

namespace onebit {

// find_model() among this user's, for what will be loaded: error invalid when files are damaged or missing.
Result<ModelEntry> find_usable_model(const std::string& name);

// ORG/REPO, ORG/REPO:QUANT or ORG/REPO/FILE.gguf, and no path: what a hub may have.
bool looks_like_repository(const std::string& name);

// Whether a word of the command line means a model: a path, what a hub may have, or the very name of a model of
// onebit.yaml or of the catalog.
bool names_model(const std::string& word, const ServeConfig& config, const CatalogFolders& folders);

struct RunWords {
    std::string model, prompt;
    bool has_prompt = false;
};

// The words of `1bit run`: MODEL PROMPT; one word is the model if it names one, else the prompt.
RunWords split_words(const std::vector<std::string>& words, const ServeConfig& config, const CatalogFolders& folders);

// Fetches `name` (or what onebit.yaml says that it is) if it is not on this disk and a hub may have it, with progress.
// Errors of find_model and pull_model. With config.offline nothing is fetched. cancel: ends the download.
Result<void> fetch_if_missing(const std::string& name, const ServeConfig& config, const CatalogFolders& folders,
                              const std::atomic<bool>& cancel);

}  // namespace onebit
