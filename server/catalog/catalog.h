// Which models are on this disk, and what a name means. Shards of one model are one entry.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "base/result.h"

namespace onebit {

enum class ModelOrigin { builtin, ours, hugging_face, lm_studio, ollama, path };
const char* to_string(ModelOrigin origin);

struct ModelEntry {
    std::string id;  // what a request names: "builtin", "org/repo:Q4_K_M", a file's stem
    ModelOrigin origin = ModelOrigin::path;
    std::vector<std::filesystem::path> files;  // all shards in order; llama.cpp is given the first
    std::filesystem::path projector;           // mmproj file beside it, or empty
    uint64_t bytes = 0;                        // of all files
    std::string architecture, quantization, name;
    uint64_t context_length = 0, parameters = 0;
    std::string problem;               // why it cannot be used (missing shard, damaged head); empty if it can
    std::vector<std::string> aliases;  // other ids of the very same file: hard links, symbolic links, tags
};

struct CatalogFolders {
    std::filesystem::path builtin, ours, hugging_face, lm_studio, ollama;  // an empty one is not searched
    static CatalogFolders
    of_this_user();  // honours HF_HUB_CACHE, HF_HOME, OLLAMA_MODELS, LMSTUDIO_HOME and ONEBIT_MODELS
};

// Everything found, sorted by id. Files that are no models are left out; damaged models are listed with their problem.
// Reads heads only, and keeps them in memory by path, size and time between calls. Safe from any thread.
std::vector<ModelEntry> list_models(const CatalogFolders& folders);

// name: a path to a file (any shard of a set) or to a folder with one model, an id, a unique part of an id without
// regard to case, REPO or REPO:QUANT. Error not_found lists the nearest ids; usage when several fit; invalid with the
// problem of a damaged one.
Result<ModelEntry> find_model(const std::string& name, const CatalogFolders& folders);

// The same without paths: for names that come from a request, whose sender may not name files of this machine.
Result<ModelEntry> find_listed_model(const std::string& name, const CatalogFolders& folders);

}  // namespace onebit
