#include "server/catalog/catalog.h"

#include <sys/stat.h>

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <map>
#include <set>
#include <unordered_map>
#include <utility>

#include "base/cache_folder.h"
#include "base/nearest.h"
#include "models/builtin_model.h"
#include "server/catalog/catalog_names.h"
#include "server/catalog/catalog_scan.h"
#include "server/catalog/model_files.h"

namespace onebit {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMostNamed = 8;  // ids that one error lists

fs::path from_environment(const char* name) {
    const char* value = std::getenv(name);
    return value && *value ? fs::path(value) : fs::path();
}

fs::path home() { return from_environment("HOME"); }

fs::path first_folder(std::initializer_list<fs::path> candidates) {
    std::error_code unknown;
    for (const fs::path& path : candidates)
        if (!path.empty() && fs::is_directory(path, unknown)) return path;
    return {};
}

fs::path hugging_face_folder() {
    if (auto hub = from_environment("HF_HUB_CACHE"); !hub.empty()) return hub;
    if (auto hub = from_environment("HUGGINGFACE_HUB_CACHE"); !hub.empty()) return hub;
    if (auto base = from_environment("HF_HOME"); !base.empty()) return base / "hub";
    if (auto cache = from_environment("XDG_CACHE_HOME"); !cache.empty()) return cache / "huggingface" / "hub";
    return home().empty() ? fs::path() : home() / ".cache" / "huggingface" / "hub";
}

fs::path lm_studio_folder() {
    if (auto base = from_environment("LMSTUDIO_HOME"); !base.empty()) return base / "models";
    if (home().empty()) return {};
    return first_folder({home() / ".lmstudio" / "models", home() / ".cache" / "lm-studio" / "models"});
}

fs::path ollama_folder() {
    if (auto models = from_environment("OLLAMA_MODELS"); !models.empty()) return models;
    // the second is where its Linux service keeps them
    return first_folder(
        {home().empty() ? fs::path() : home() / ".ollama" / "models", "/usr/share/ollama/.ollama/models"});
}

// The same file under two names is one model: its device and inode, or its path when it cannot be asked.
std::string identity_of(const ModelEntry& entry) {
    if (entry.files.empty()) return "id " + entry.id;
    struct stat status {};
    const fs::path& first = entry.files.front();
    if (::stat(first.c_str(), &status) != 0) return "path " + first.native();
    return "inode " + std::to_string(status.st_dev) + " " + std::to_string(status.st_ino);
}

// In the order of who wins an id: the built-in model, ours, then the other programs'.
std::vector<ScannedModel> scan_all(const CatalogFolders& folders) {
    std::vector<ScannedModel> all;
    const auto append = [&](std::vector<ScannedModel> part) {
        std::move(part.begin(), part.end(), std::back_inserter(all));
    };
    append(scan_builtin(folders.builtin));
    append(scan_folder(folders.ours, ModelOrigin::ours));
    append(scan_hugging_face(folders.hugging_face));
    append(scan_folder(folders.lm_studio, ModelOrigin::lm_studio));
    append(scan_ollama(folders.ollama));

    std::vector<ScannedModel> kept;
    std::unordered_map<std::string, size_t> by_identity;
    std::set<std::string> taken;
    for (ScannedModel& model : all) {
        // ids go into JSON, terminals and requests
        const std::string id = printable(model.entry.id), other = printable(model.other_id);
        const auto [same, is_new] = by_identity.emplace(identity_of(model.entry), kept.size());
        if (!is_new) {
            auto& first = kept[same->second].entry;
            if (taken.insert(id).second) first.aliases.push_back(id);
            continue;
        }
        const std::string with_origin = id + "@" + to_string(model.entry.origin);
        for (std::string candidate : {id, other, with_origin, other + "@" + to_string(model.entry.origin)}) {
            model.entry.id = std::move(candidate);
            if (!taken.count(model.entry.id)) break;
        }
        for (unsigned number = 2; taken.count(model.entry.id); ++number)
            model.entry.id = with_origin + "#" + std::to_string(number);
        taken.insert(model.entry.id);
        kept.push_back(std::move(model));
    }
    std::sort(kept.begin(), kept.end(),
              [](const ScannedModel& a, const ScannedModel& b) { return a.entry.id < b.entry.id; });
    return kept;
}

Result<ModelEntry> usable(ScannedModel model) {
    if (!model.error) return std::move(model.entry);
    Error error = std::move(*model.error);
    error.code = ErrorCode::invalid;
    return error;
}

std::string list_of(const std::vector<std::string>& ids) {
    std::string text;
    for (size_t i = 0; i < ids.size() && i < kMostNamed; ++i) text += (i ? ", " : "") + ids[i];
    return ids.size() > kMostNamed ? text + " and " + std::to_string(ids.size() - kMostNamed) + " more" : text;
}

Result<ModelEntry> only_one(std::vector<ScannedModel> models, const std::string& name) {
    if (models.size() == 1) return usable(std::move(models.front()));
    std::vector<std::string> ids;
    ids.reserve(models.size());
    for (const ScannedModel& model : models) ids.push_back(model.entry.id);
    return Error{ErrorCode::usage, "model " + name, "a name that means one model",
                 std::to_string(models.size()) + " that it may mean", "say which: " + list_of(ids)};
}

bool any_name(const ModelEntry& entry, const std::function<bool(const std::string&)>& fits) {
    return fits(entry.id) || std::any_of(entry.aliases.begin(), entry.aliases.end(), fits);
}

Error not_found(const std::string& name, const std::vector<ScannedModel>& models) {
    std::vector<std::pair<size_t, std::string>> near;
    for (const ScannedModel& model : models) {
        const std::string& id = model.entry.id;
        if (name.size() > 100 || id.size() > 200) continue;
        // a user rarely types the organization
        const std::string tail = id.substr(id.rfind('/') + 1);
        const size_t distance = std::min(edit_distance(name, id), edit_distance(name, tail));
        if (distance <= std::max<size_t>(2, name.size() / 2)) near.emplace_back(distance, id);
    }
    std::sort(near.begin(), near.end());
    std::string remedy = "'1bit models' lists what is here, '1bit pull ORG/REPO:QUANT' downloads";
    if (!near.empty()) {
        std::string ids;
        for (size_t i = 0; i < near.size() && i < 3; ++i) ids += (i ? ", " : "") + near[i].second;
        remedy = "did you mean " + ids + "? " + remedy;
    }
    return Error{ErrorCode::not_found, "model " + name, "the name of a model on this disk", "none of that name",
                 remedy};
}

// Exact ids first, so that a longer id never makes a shorter one ambiguous.
Result<ModelEntry> find_id(const std::string& name, const CatalogFolders& folders) {
    std::vector<ScannedModel> models = scan_all(folders);
    const std::string wanted = lower_case(name);
    const std::vector<std::function<bool(const std::string&)>> rules = {
        [&](const std::string& id) { return id == name; },
        [&](const std::string& id) { return lower_case(id) == wanted; },
        [&](const std::string& id) { return lower_case(id).starts_with(wanted + ":"); },
        [&](const std::string& id) { return lower_case(id).find(wanted) != std::string::npos; },
    };
    if (name.empty())
        return Error{ErrorCode::usage, "model", "the name of a model", "an empty one", "'1bit models' lists them"};
    for (const auto& rule : rules) {
        std::vector<ScannedModel> fitting;
        for (ScannedModel& model : models)
            if (any_name(model.entry, rule)) fitting.push_back(model);
        if (!fitting.empty()) return only_one(std::move(fitting), name);
    }
    return not_found(name, models);
}

Result<ModelEntry> find_path(const fs::path& path) {
    std::error_code unknown;
    if (!fs::is_directory(path, unknown)) {
        auto found = scan_file(path);
        if (!found) return std::move(found).error();
        return usable(std::move(*found));
    }
    std::vector<ScannedModel> models = scan_folder(path, ModelOrigin::path);
    if (models.empty())
        return Error{ErrorCode::not_found, path.string(), "a model in this folder", "no .gguf file of one",
                     "name the model's file"};
    for (ScannedModel& model : models) {
        const fs::path& first = model.entry.files.front();
        if (models.size() > 1) model.entry.id = first.string();
    }
    return only_one(std::move(models), path.string());
}

bool looks_like_path(const std::string& name) {
    return name.starts_with("/") || name.starts_with("./") || name.starts_with("../") || has_gguf_extension(name);
}

}  // namespace

const char* to_string(ModelOrigin origin) {
    switch (origin) {
        case ModelOrigin::builtin:
            return "builtin";
        case ModelOrigin::ours:
            return "1bit";
        case ModelOrigin::hugging_face:
            return "hugging-face";
        case ModelOrigin::lm_studio:
            return "lm-studio";
        case ModelOrigin::ollama:
            return "ollama";
        case ModelOrigin::path:
            break;
    }
    return "path";
}

CatalogFolders CatalogFolders::of_this_user() {
    CatalogFolders folders;
    if (auto model = builtin_model()) folders.builtin = model->parent_path();
    if (auto ours = models_folder()) folders.ours = *ours;
    folders.hugging_face = hugging_face_folder();
    folders.lm_studio = lm_studio_folder();
    folders.ollama = ollama_folder();
    return folders;
}

std::vector<ModelEntry> list_models(const CatalogFolders& folders) {
    std::vector<ModelEntry> entries;
    for (ScannedModel& model : scan_all(folders)) entries.push_back(std::move(model.entry));
    return entries;
}

Result<ModelEntry> find_listed_model(const std::string& name, const CatalogFolders& folders) {
    return find_id(name, folders);
}

Result<ModelEntry> find_model(const std::string& name, const CatalogFolders& folders) {
    if (name.find('\0') != std::string::npos)
        return Error{ErrorCode::usage, "model " + name, "a name", "one with a zero byte in it", ""};
    std::error_code unknown;
    const bool exists = !name.empty() && fs::exists(fs::path(name), unknown);
    if (looks_like_path(name)) {
        if (exists) return find_path(name);
        auto listed = find_id(name, folders);
        if (listed || listed.error().code != ErrorCode::not_found) return listed;
        return Error{ErrorCode::not_found, name, "a model's file or folder", "no such file",
                     "'1bit models' lists what is here"};
    }
    auto listed = find_id(name, folders);
    if (!listed && exists && listed.error().code != ErrorCode::invalid) return find_path(name);
    return listed;
}

}  // namespace onebit
