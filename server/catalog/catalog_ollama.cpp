// Ollama's store: a manifest per name and tag names the blobs of its layers by digest.
#include <algorithm>
#include <cctype>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>

#include "server/catalog/catalog_scan.h"

namespace onebit {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

constexpr uintmax_t kMostManifestBytes = 1u << 20;
constexpr int kLevels = 4;  // host / namespace / name / tag

struct Manifest {
    fs::path model, projector;
};

// A digest becomes a file name only when it is one: "sha256:" and 64 digits.
fs::path blob_of(const fs::path& root, const std::string& digest) {
    constexpr std::string_view kStart = "sha256:";
    if (digest.size() != kStart.size() + 64 || !digest.starts_with(kStart)) return {};
    const std::string digits = digest.substr(kStart.size());
    if (!std::all_of(digits.begin(), digits.end(), [](unsigned char c) { return std::isxdigit(c); })) return {};
    return root / "blobs" / ("sha256-" + digits);
}

std::string text_of(const Json& object, const char* key) {
    auto found = object.find(key);
    return found != object.end() && found->is_string() ? found->get<std::string>() : "";
}

// Empty when it names no GGUF model.
Manifest read_manifest(const fs::path& file, const fs::path& root) {
    std::error_code unknown;
    const auto size = fs::is_regular_file(file, unknown) ? fs::file_size(file, unknown) : 0;
    if (unknown || size == 0 || size > kMostManifestBytes) return {};
    std::ifstream stream(file, std::ios::binary);
    const std::string text((std::istreambuf_iterator<char>(stream)), {});
    const Json manifest = Json::parse(text, nullptr, false);
    if (!manifest.is_object()) return {};
    const auto layers = manifest.find("layers");
    if (layers == manifest.end() || !layers->is_array()) return {};
    Manifest found;
    for (const Json& layer : *layers) {
        if (!layer.is_object()) continue;
        const std::string type = text_of(layer, "mediaType");
        const fs::path blob = blob_of(root, text_of(layer, "digest"));
        if (type == "application/vnd.ollama.image.model" && found.model.empty()) found.model = blob;
        if (type == "application/vnd.ollama.image.projector" && found.projector.empty()) found.projector = blob;
    }
    return found;
}

// "llama3.2:3b", "user/name:tag" or "host/user/name:tag", as Ollama itself shortens them.
std::string id_of(const std::vector<std::string>& parts) {
    std::string id;
    if (parts[0] != "registry.ollama.ai")
        id = parts[0] + "/" + parts[1] + "/";
    else if (parts[1] != "library")
        id = parts[1] + "/";
    return id + parts[2] + ":" + parts[3];
}

void add_manifest(const fs::path& file, const std::vector<std::string>& parts, const fs::path& root,
                  std::vector<ScannedModel>* to) {
    const Manifest manifest = read_manifest(file, root);
    if (manifest.model.empty()) return;
    FolderFiles blobs = group_files(manifest.model.parent_path(), {manifest.model.filename().native()});
    if (blobs.models.empty()) return;
    ScannedModel found = to_entry(std::move(blobs.models.front()), ModelOrigin::ollama);
    found.entry.id = found.other_id = id_of(parts);
    std::error_code unknown;
    if (!manifest.projector.empty() && fs::is_regular_file(manifest.projector, unknown))
        found.entry.projector = manifest.projector;
    to->push_back(std::move(found));
}

void walk(const fs::path& folder, std::vector<std::string> parts, const fs::path& root, std::vector<ScannedModel>* to) {
    std::vector<std::string> names;
    std::error_code failed;
    for (fs::directory_iterator entry(folder, failed); !failed && entry != fs::directory_iterator();
         entry.increment(failed)) {
        const std::string name = entry->path().filename().native();
        if (!name.starts_with('.')) names.push_back(name);
    }
    std::sort(names.begin(), names.end());
    for (const std::string& name : names) {
        parts.push_back(name);
        if (parts.size() == kLevels)
            add_manifest(folder / name, parts, root, to);
        else
            walk(folder / name, parts, root, to);
        parts.pop_back();
    }
}

}  // namespace

std::vector<ScannedModel> scan_ollama(const fs::path& root) {
    std::vector<ScannedModel> models;
    if (!root.empty()) walk(root / "manifests", {}, root, &models);
    return models;
}

}  // namespace onebit
