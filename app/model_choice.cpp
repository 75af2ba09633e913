#include "app/model_choice.h"

#include <algorithm>
#include <filesystem>

#include "app/output.h"
#include "app/progress.h"
#include "server/catalog/pull.h"

namespace onebit {
namespace {

bool same_name(const std::string& a, const std::string& b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                      [](unsigned char x, unsigned char y) { return std::tolower(x) == std::tolower(y); });
}

const ModelConfig* configured(const std::string& name, const ServeConfig& config) {
    if (auto found = config.models.find(name); found != config.models.end()) return &found->second;
    for (const auto& [key, model] : config.models)
        if (std::find(model.aliases.begin(), model.aliases.end(), name) != model.aliases.end()) return &model;
    return nullptr;
}

}  // namespace

Result<ModelEntry> find_usable_model(const std::string& name) {
    auto model = find_model(name, CatalogFolders::of_this_user());
    if (model.ok() && (!model->problem.empty() || model->files.empty()))
        return Error{ErrorCode::invalid, name, "a usable model", model->problem, "1bit models"};
    return model;
}

bool looks_like_repository(const std::string& name) {
    if (name.empty() || name.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./:") !=
                            std::string::npos)
        return false;
    if (name[0] == '/' || name[0] == '.' || name.find("..") != std::string::npos) return false;
    size_t slash = name.find('/');
    if (slash == std::string::npos || slash + 1 == name.size()) return false;
    size_t second = name.find('/', slash + 1);
    return second == std::string::npos || (name.ends_with(".gguf") && second + 1 < name.size());
}

bool names_model(const std::string& word, const ServeConfig& config, const CatalogFolders& folders) {
    std::error_code ignored;
    if (word.empty() || word.size() > 4096) return false;
    if (configured(word, config) || looks_like_repository(word) || word.ends_with(".gguf")) return true;
    bool path = word.find('/') != std::string::npos && word.find_first_of(" \t\n") == std::string::npos;
    if (path || std::filesystem::is_regular_file(word, ignored)) return true;
    if (word.find_first_of(" \t\n?") != std::string::npos) return false;
    Result<ModelEntry> found = find_model(word, folders);
    return found.ok() && same_name(found->id, word);
}

RunWords split_words(const std::vector<std::string>& words, const ServeConfig& config, const CatalogFolders& folders) {
    if (words.size() >= 2) return {words[0], words[1], true};
    if (words.empty()) return {};
    // "-" is standard input, in the place of the prompt
    if (words[0] != "-" && names_model(words[0], config, folders)) return {words[0], "", false};
    return {"", words[0], true};
}

Result<void> fetch_if_missing(const std::string& name, const ServeConfig& config, const CatalogFolders& folders,
                              const std::atomic<bool>& cancel) {
    const ModelConfig* model = configured(name, config);
    const std::string& source = model ? model->source : name;
    Result<ModelEntry> found = find_model(source, folders);
    if (found.ok()) return {};
    if (found.error().code != ErrorCode::not_found || !looks_like_repository(source)) return found.error();
    if (config.offline) {
        Error error = found.error();
        error.remedy += (error.remedy.empty() ? "" : "; ") + std::string("it is not fetched with --offline");
        return error;
    }
    tell(printable(source) + " is not on this disk: fetching it");
    Progress progress;
    PullOptions options;
    options.cancel = &cancel;
    options.progress = [&](const std::string& file, uint64_t done, uint64_t total) {
        progress.show(file, done, total);
    };
    Result<ModelEntry> pulled = pull_model(source, folders, options);
    progress.end();
    if (!pulled) return pulled.error();
    return {};
}

}  // namespace onebit
