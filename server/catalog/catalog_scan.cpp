#include "server/catalog/catalog_scan.h"

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <fstream>
#include <map>
#include <utility>

#include "models/builtin_model.h"
#include "server/catalog/catalog_names.h"

namespace onebit {
namespace {

namespace fs = std::filesystem;

using Tree = std::map<fs::path, std::vector<std::string>>;

// What a name is tagged with: "Q4_K_M", or what the metadata say when the name is silent.
std::string tag_of(const ScannedModel& model, const std::string& stem) {
    const std::string named = quantization_in_name(stem);
    return named.empty() ? model.entry.quantization : named;
}

// Of several projectors the one whose name is most like the model's, then the most usual precision.
fs::path choose_projector(const std::vector<fs::path>& projectors, const std::string& stem) {
    static const std::vector<std::string> kOrder = {"F16", "FP16", "BF16", "Q8_0", "F32"};
    const std::string base = base_of_name(stem);
    const auto rank = [&](const fs::path& projector) {
        const std::string name = stem_of(projector.filename().native());
        const bool same = base_of_name(name) == base;
        const auto precision = std::find(kOrder.begin(), kOrder.end(), quantization_in_name(name));
        return std::pair(same ? 0 : 1, precision - kOrder.begin());
    };
    return *std::min_element(projectors.begin(), projectors.end(),
                             [&](const fs::path& a, const fs::path& b) { return rank(a) < rank(b); });
}

// In a folder of unrelated models only the name tells whose a projector is.
fs::path matching_projector(const std::vector<fs::path>& projectors, const std::string& stem) {
    std::vector<fs::path> fitting;
    for (const fs::path& projector : projectors)
        if (base_of_name(stem_of(projector.filename().native())) == base_of_name(stem)) fitting.push_back(projector);
    return fitting.empty() ? fs::path() : choose_projector(fitting, stem);
}

std::string below(const fs::path& folder, const fs::path& root, const std::string& stem) {
    const fs::path relative = folder.lexically_relative(root);
    return relative == "." ? stem : (relative / stem).string();
}

// All of one repository: ids are REPOSITORY:TAG, and its projectors belong to each of its models.
void add_repository(const Tree& tree, const fs::path& root, const std::string& repository, ModelOrigin origin,
                    std::vector<ScannedModel>* to) {
    std::vector<std::pair<ScannedModel, std::string>> models;
    std::vector<fs::path> all_projectors;
    for (const auto& [folder, names] : tree) {
        FolderFiles found = group_files(folder, names);
        for (ModelFiles& model : found.models) {
            const std::string stem = model.stem;
            ScannedModel scanned = to_entry(std::move(model), origin);
            if (!found.projectors.empty()) scanned.entry.projector = choose_projector(found.projectors, stem);
            scanned.other_id = repository + ":" + below(folder, root, stem);
            models.emplace_back(std::move(scanned), stem);
        }
        all_projectors.insert(all_projectors.end(), found.projectors.begin(), found.projectors.end());
    }
    for (auto& [scanned, stem] : models) {
        if (scanned.entry.projector.empty() && !all_projectors.empty())
            scanned.entry.projector = choose_projector(all_projectors, stem);
        const std::string tag = tag_of(scanned, stem);
        scanned.entry.id = tag.empty() ? repository : repository + ":" + tag;
        to->push_back(std::move(scanned));
    }
}

void add_loose(const fs::path& folder, const std::vector<std::string>& names, const fs::path& root, ModelOrigin origin,
               std::vector<ScannedModel>* to) {
    FolderFiles found = group_files(folder, names);
    for (ModelFiles& model : found.models) {
        const std::string stem = model.stem;
        ScannedModel scanned = to_entry(std::move(model), origin);
        scanned.entry.projector = matching_projector(found.projectors, stem);
        scanned.other_id = below(folder, root, stem);
        to->push_back(std::move(scanned));
    }
}

// The name in refs/main, if it is one that a snapshot may have.
std::string main_snapshot(const fs::path& repository) {
    std::ifstream file(repository / "refs" / "main");
    std::string line;
    if (!file || !std::getline(file, line)) return "";
    while (!line.empty() && (line.back() == '\r' || line.back() == ' ')) line.pop_back();
    const bool plain =
        !line.empty() && line.size() <= 128 &&
        std::all_of(line.begin(), line.end(), [](unsigned char c) { return std::isalnum(c) || c == '_'; });
    return plain ? line : "";
}

// main's first, then the newest.
std::vector<fs::path> snapshots_of(const fs::path& repository) {
    std::error_code failed;
    std::vector<std::pair<fs::file_time_type, fs::path>> dated;
    for (fs::directory_iterator entry(repository / "snapshots", failed); !failed && entry != fs::directory_iterator();
         entry.increment(failed)) {
        std::error_code unknown;
        const auto time = fs::last_write_time(entry->path(), unknown);
        if (!unknown) dated.emplace_back(time, entry->path());
    }
    std::sort(dated.rbegin(), dated.rend());
    std::vector<fs::path> ordered;
    const std::string main = main_snapshot(repository);
    for (const auto& [time, path] : dated)
        if (path.filename() == main)
            ordered.insert(ordered.begin(), path);
        else
            ordered.push_back(path);
    return ordered;
}

std::vector<fs::path> folders_in(const fs::path& root) {
    std::vector<fs::path> folders;
    std::error_code failed;
    for (fs::directory_iterator entry(root, failed); !failed && entry != fs::directory_iterator();
         entry.increment(failed)) {
        std::error_code unknown;
        if (entry->is_directory(unknown)) folders.push_back(entry->path());
    }
    std::sort(folders.begin(), folders.end());
    return folders;
}

// "models--org--repo" to "org/repo"; only the first of the marks stands for a slash.
std::string repository_name(const std::string& folder) {
    constexpr std::string_view kStart = "models--";
    if (!folder.starts_with(kStart)) return "";
    std::string name = folder.substr(kStart.size());
    if (const size_t mark = name.find("--"); mark != std::string::npos) name.replace(mark, 2, "/");
    return name;
}

}  // namespace

ScannedModel to_entry(ModelFiles model, ModelOrigin origin) {
    ScannedModel scanned;
    ModelEntry& entry = scanned.entry;
    entry.id = model.stem;
    entry.origin = origin;
    entry.files = std::move(model.files);
    entry.bytes = model.bytes;
    entry.architecture = model.head->architecture;
    entry.quantization = model.head->quantization;
    if (entry.quantization.empty()) entry.quantization = quantization_in_name(model.stem);
    entry.name = model.head->name;
    entry.context_length = model.head->context_length;
    entry.parameters = model.parameters;
    if (model.error) entry.problem = model.error->message();
    scanned.error = std::move(model.error);
    scanned.other_id = entry.id;
    return scanned;
}

std::vector<ScannedModel> scan_builtin(const fs::path& root) {
    if (root.empty()) return {};
    const Tree tree = walk_gguf_files(root);
    std::vector<ScannedModel> models;
    if (auto names = tree.find(root); names != tree.end())
        add_loose(root, names->second, root, ModelOrigin::builtin, &models);
    if (models.empty()) return models;
    const auto named = builtin_model();
    auto first = std::find_if(models.begin(), models.end(), [&](const ScannedModel& model) {
        return named && model.entry.files.front().filename() == named->filename();
    });
    if (first == models.end()) first = models.begin();
    for (auto model = models.begin(); model != models.end(); ++model) {
        model->other_id = "builtin:" + model->entry.id;
        const std::string tag = tag_of(*model, model->entry.id);
        model->entry.id = model == first ? "builtin" : tag.empty() ? model->other_id : "builtin:" + tag;
    }
    std::rotate(models.begin(), first, first + 1);
    return models;
}

std::vector<ScannedModel> scan_folder(const fs::path& root, ModelOrigin origin) {
    std::vector<ScannedModel> models;
    if (root.empty()) return models;
    std::map<std::string, std::pair<fs::path, Tree>> repositories;
    for (auto& [folder, names] : walk_gguf_files(root)) {
        const fs::path relative = folder.lexically_relative(root);
        if (std::distance(relative.begin(), relative.end()) < 2) {
            add_loose(folder, names, root, origin, &models);
            continue;
        }
        const fs::path organization = *relative.begin(), name = *std::next(relative.begin());
        auto& repository = repositories[(organization / name).string()];
        repository.first = root / organization / name;
        repository.second.emplace(folder, names);
    }
    for (const auto& [name, repository] : repositories)
        add_repository(repository.second, repository.first, name, origin, &models);
    return models;
}

std::vector<ScannedModel> scan_hugging_face(const fs::path& root) {
    std::vector<ScannedModel> models;
    if (root.empty()) return models;
    for (const fs::path& folder : folders_in(root)) {
        const std::string repository = repository_name(folder.filename().native());
        if (repository.empty()) continue;
        for (const fs::path& snapshot : snapshots_of(folder)) {
            const Tree tree = walk_gguf_files(snapshot);
            if (tree.empty()) continue;
            add_repository(tree, snapshot, repository, ModelOrigin::hugging_face, &models);
            break;
        }
    }
    return models;
}

Result<ScannedModel> scan_file(const fs::path& file) {
    struct stat status {};
    if (::stat(file.c_str(), &status) != 0) return error_from_errno(errno, file.string());
    const std::string name = file.filename().native();
    const fs::path folder = file.has_parent_path() ? file.parent_path() : fs::path(".");

    // only what may belong to this file is opened, however full the folder is
    const auto shard = parse_shard_name(name);
    std::vector<std::string> names = {name};
    bool alone = true;
    std::error_code failed;
    for (fs::directory_iterator entry(folder, failed); !failed && entry != fs::directory_iterator();
         entry.increment(failed)) {
        const std::string other = entry->path().filename().native();
        if (other == name || !has_gguf_extension(other)) continue;
        const auto other_shard = parse_shard_name(other);
        const bool of_set =
            shard && other_shard && shard->prefix == other_shard->prefix && shard->count == other_shard->count;
        if (of_set || (names_projector(other) && !names_projector(name)))
            names.push_back(other);
        else
            alone = false;
    }
    std::sort(names.begin(), names.end());

    const FolderFiles found = group_files(folder, names);
    for (const ModelFiles& model : found.models) {
        if (std::find(model.files.begin(), model.files.end(), folder / name) == model.files.end()) continue;
        ScannedModel scanned = to_entry(model, ModelOrigin::path);
        scanned.entry.projector = matching_projector(found.projectors, model.stem);
        if (scanned.entry.projector.empty() && alone && !found.projectors.empty())
            scanned.entry.projector = choose_projector(found.projectors, model.stem);
        return scanned;
    }
    const bool projector =
        std::find(found.projectors.begin(), found.projectors.end(), folder / name) != found.projectors.end();
    const auto head = head_summary(file, status);
    if (head->error) return *head->error;
    return Error{ErrorCode::invalid, file.string(), "a language model",
                 projector ? "the projector of one" : "a GGUF file without one, such as an adapter or a vocabulary",
                 projector ? "name the model beside it" : "name the model's file"};
}

}  // namespace onebit
