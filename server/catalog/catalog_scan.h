// Finds the GGUF files below the folders that programs keep their models in, and puts shards together.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "server/catalog/catalog.h"
#include "server/catalog/model_files.h"

namespace onebit {

// An entry with the error behind its problem, which find_model hands on, and the id to fall back to when its own is
// taken: its place below the root.
struct ScannedModel {
    ModelEntry entry;
    std::optional<Error> error;
    std::string other_id;
};

// An entry without its final id.
ScannedModel to_entry(ModelFiles model, ModelOrigin origin);

std::vector<ScannedModel> scan_builtin(const std::filesystem::path& root);
// Files in the root are named by their stem; below ORG/REPO as ORG/REPO:QUANT. Ours and LM Studio's.
std::vector<ScannedModel> scan_folder(const std::filesystem::path& root, ModelOrigin origin);
std::vector<ScannedModel> scan_hugging_face(const std::filesystem::path& root);
std::vector<ScannedModel> scan_ollama(const std::filesystem::path& root);

// One file that a user named; with all shards when it is one of a set. Error not_found or io.
Result<ScannedModel> scan_file(const std::filesystem::path& file);

}  // namespace onebit
