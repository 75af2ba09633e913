#include "server/catalog/pull.h"

#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <exception>
#include <optional>
#include <vector>

#include "base/cache_folder.h"
#include "base/log.h"
#include "server/catalog/gguf_file.h"
#include "server/catalog/pull_download.h"
#include "server/catalog/pull_hub.h"
#include "server/catalog/pull_select.h"
#include "server/catalog/pull_store.h"

namespace onebit {
namespace {

namespace fs = std::filesystem;

bool equal_without_case(std::string_view a, std::string_view b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                      [](unsigned char x, unsigned char y) { return std::tolower(x) == std::tolower(y); });
}

bool ends_with_path(const fs::path& path, const std::string& tail) {
    const std::string text = path.generic_string();
    return text.size() > tail.size() && text.ends_with(tail) && text[text.size() - tail.size() - 1] == '/';
}

bool same_file(const fs::path& a, const fs::path& b) {
    std::error_code error;
    return a == b || (fs::equivalent(a, b, error) && !error);
}

// ORG/REPO of "ORG/REPO:QUANT" or, where two have the same quantization, "ORG/REPO/FILE".
std::string repository_of(const ModelEntry& entry) {
    const size_t slash = entry.id.find('/');
    return slash == std::string::npos ? entry.id : entry.id.substr(0, entry.id.find_first_of(":/", slash + 1));
}

std::string quant_of(const ModelEntry& entry) {
    const size_t colon = entry.id.rfind(':');
    return colon == std::string::npos ? entry.quantization : entry.id.substr(colon + 1);
}

// The complete copies that a reference may mean, ours first.
std::vector<ModelEntry> find_copies(const PullReference& reference, const CatalogFolders& folders) {
    std::vector<ModelEntry> copies;
    for (ModelEntry& entry : list_models(folders)) {
        if (!entry.problem.empty() || !equal_without_case(repository_of(entry), reference.repository)) continue;
        if (!reference.file.empty() && std::none_of(entry.files.begin(), entry.files.end(), [&](const fs::path& file) {
                return ends_with_path(file, reference.file);
            }))
            continue;
        if (!reference.quant.empty() && !equal_without_case(quant_of(entry), reference.quant) &&
            !names_quant(entry.files.front().filename().string(), reference.quant))
            continue;
        copies.push_back(std::move(entry));
    }
    std::stable_partition(copies.begin(), copies.end(),
                          [](const ModelEntry& copy) { return copy.origin == ModelOrigin::ours; });
    return copies;
}

// Several without a quantization named: in the order of the hub's default, else none.
std::optional<ModelEntry> choose_copy(const PullReference& reference, const std::vector<ModelEntry>& copies) {
    if (copies.empty()) return std::nullopt;
    const bool same = std::all_of(copies.begin(), copies.end(), [&](const ModelEntry& copy) {
        return equal_without_case(quant_of(copy), quant_of(copies.front()));
    });
    if (same || !reference.file.empty() || !reference.quant.empty()) return copies.front();
    for (const char* quant : {"Q4_K_M", "Q8_0"})
        for (const ModelEntry& copy : copies)
            if (equal_without_case(quant_of(copy), quant)) return copy;
    return std::nullopt;
}

class Pull {
public:
    Pull(PullReference reference, CatalogFolders folders, const PullOptions& options)
        : reference_(std::move(reference)), folders_(std::move(folders)), options_(options) {}

    Result<ModelEntry> run() {
        ONEBIT_RETURN_IF_ERROR(mend(folders_.ours / reference_.repository));
        const std::vector<ModelEntry> copies = find_copies(reference_, folders_);
        const std::optional<ModelEntry> copy = choose_copy(reference_, copies);
        if (copy && (!options_.update || options_.offline)) return *copy;
        if (options_.offline && !copies.empty()) {
            std::string ids;
            for (const ModelEntry& each : copies) ids += (ids.empty() ? "" : ", ") + each.id;
            return Error{ErrorCode::usage, "model " + name(), "one copy on this disk", "several", "name one: " + ids};
        }
        if (options_.offline)
            return Error{ErrorCode::not_found, "model " + name(), "a copy on this disk",
                         "none, and the hub may not be asked", "pull it without --offline"};
        Result<ModelEntry> pulled = from_hub(copy);
        if (pulled || !copy) return pulled;
        if (pulled.error().code != ErrorCode::unavailable && pulled.error().code != ErrorCode::timeout) return pulled;
        log_warning("pull", pulled.error().message() + "; going on with the copy in " +
                                copy->files.front().parent_path().string());
        return *copy;
    }

private:
    std::string name() const {
        if (!reference_.file.empty()) return reference_.repository + "/" + reference_.file;
        return reference_.repository + (reference_.quant.empty() ? "" : ":" + reference_.quant);
    }

    // A crash while a set of files was renamed.
    Result<void> mend(const fs::path& folder) {
        if (!publishing_unfinished(folder)) return {};
        Result<PullLock> lock = PullLock::acquire(folder, options_.cancel);
        if (!lock) return std::move(lock).error();
        return publishing_unfinished(folder) ? finish_publishing(folder) : Result<void>();
    }

    Result<ModelEntry> from_hub(const std::optional<ModelEntry>& copy) {
        Result<HubClient> hub = HubClient::open(options_);
        if (!hub) return std::move(hub).error();
        // with a copy at hand nobody should wait for a hub that is away
        Result<HubRepository> repository = hub->repository(reference_.repository, copy ? 1 : options_.timing.attempts);
        if (!repository) return std::move(repository).error();
        PullReference wanted = reference_;
        if (copy && wanted.quant.empty() && wanted.file.empty())
            wanted.quant = quant_of_path(copy->files.front().filename().string());
        Result<PullSelection> selection = select_files(*repository, wanted);
        if (!selection) return std::move(selection).error();
        if (copy && copy_is_current(*copy, *selection)) return *copy;

        const fs::path folder = folders_.ours / repository->id;
        Result<PullLock> lock = PullLock::acquire(folder, options_.cancel);
        if (!lock) return std::move(lock).error();
        if (publishing_unfinished(folder)) ONEBIT_RETURN_IF_ERROR(finish_publishing(folder));
        Result<ModelEntry> pulled = fill(*hub, *repository, *selection, folder);
        if (pulled && copy && copy->origin == ModelOrigin::ours) remove_replaced(*copy, *pulled);
        return pulled;
    }

    bool copy_is_current(const ModelEntry& copy, const PullSelection& selection) const {
        if (copy.files.size() != selection.model.size()) return false;
        const PullRecord record =
            copy.origin == ModelOrigin::ours ? read_pull_record(folders_.ours / repository_of(copy)) : PullRecord();
        for (size_t i = 0; i < copy.files.size(); ++i)
            if (!is_current(copy.files[i], selection.model[i], record)) return false;
        return !selection.projector || !copy.projector.empty();
    }

    Result<ModelEntry> fill(const HubClient& hub, const HubRepository& repository, const PullSelection& selection,
                            const fs::path& folder) {
        const PullRecord record = read_pull_record(folder);
        std::vector<HubFile> missing;
        std::vector<HubFile> all = selection.model;
        if (selection.projector) all.push_back(*selection.projector);
        for (const HubFile& file : all)
            if (!is_current(folder / file.path, file, record)) missing.push_back(file);

        Result<void> done = missing.empty() ? Result<void>() : bring(hub, repository, missing, folder);
        if (done && !missing.empty())
            done = publish_partials(folder, missing, repository.revision,
                                    selection.projector ? selection.projector->path : "");
        if (!done) {
            remove_empty_folders(folder, missing);
            return std::move(done).error();
        }
        return entry_of(folder / selection.model.front().path, selection, folder);
    }

    Result<void> bring(const HubClient& hub, const HubRepository& repository, const std::vector<HubFile>& files,
                       const fs::path& folder) {
        ONEBIT_RETURN_IF_ERROR(check_disk_space(folder, bytes_to_come(files, folder)));
        for (const HubFile& file : files) {
            Download download{hub.file_url(repository, file.path),
                              hub.token(),
                              file,
                              folder / file.path,
                              &options_.timing,
                              options_.cancel,
                              options_.progress};
            ONEBIT_RETURN_IF_ERROR(download_to_partial(download));
            // a digest only proves that it is what the hub has
            if (Result<GgufHead> head = read_gguf_head(partial_of(download.target)); !head) {
                remove_partial(download.target);
                Error error = std::move(head).error();
                error.subject = download.url.text();
                return error;
            }
        }
        return {};
    }

    // Files of the old copy that the new one does not have: a set cut into another number of shards.
    static void remove_replaced(const ModelEntry& old, const ModelEntry& now) {
        for (const fs::path& file : old.files) {
            const bool kept = std::any_of(now.files.begin(), now.files.end(),
                                          [&](const fs::path& other) { return same_file(file, other); });
            std::error_code ignored;
            if (!kept && same_file(file.parent_path(), now.files.front().parent_path())) fs::remove(file, ignored);
        }
    }

    static uint64_t bytes_to_come(const std::vector<HubFile>& files, const fs::path& folder) {
        uint64_t bytes = 0;
        for (const HubFile& file : files) {
            std::error_code error;
            const auto record = read_partial_record(folder / file.path);
            const uintmax_t here = fs::file_size(partial_of(folder / file.path), error);
            const bool usable = !error && record && record->describes(file) && here <= file.size;
            const uint64_t rest = file.size - (usable ? here : 0);
            bytes = rest > UINT64_MAX - bytes ? UINT64_MAX : bytes + rest;
        }
        return bytes;
    }

    static void remove_empty_folders(const fs::path& folder, const std::vector<HubFile>& files) {
        for (const HubFile& file : files)
            for (fs::path path = (folder / file.path).parent_path(); path != folder && path.has_relative_path();
                 path = path.parent_path())
                if (::rmdir(path.c_str()) != 0) break;
    }

    Result<ModelEntry> entry_of(const fs::path& first, const PullSelection& selection, const fs::path& folder) const {
        CatalogFolders only;
        only.ours = folders_.ours;
        for (ModelEntry& entry : list_models(only)) {
            if (std::none_of(entry.files.begin(), entry.files.end(),
                             [&](const fs::path& file) { return same_file(file, first); }))
                continue;
            if (!entry.problem.empty())
                return Error{ErrorCode::invalid, first.string(), "a model that can be used", entry.problem,
                             "choose another file or quantization"};
            if (selection.projector) entry.projector = folder / selection.projector->path;
            return std::move(entry);
        }
        return Error{ErrorCode::internal, first.string(), "the catalog to list it", "it does not", ""};
    }

    const PullReference reference_;
    const CatalogFolders folders_;
    const PullOptions& options_;
};

}  // namespace

Result<ModelEntry> pull_model(const std::string& reference, const CatalogFolders& folders, const PullOptions& options) {
    try {
        Result<PullReference> parsed = parse_pull_reference(reference);
        if (!parsed) return std::move(parsed).error();
        CatalogFolders all = folders;
        if (all.ours.empty()) {
            Result<fs::path> ours = models_folder();
            if (!ours) return std::move(ours).error();
            all.ours = *ours;
        }
        return Pull(std::move(*parsed), std::move(all), options).run();
    } catch (const std::exception& exception) {
        return Error{ErrorCode::internal, "pull of " + reference, "", exception.what(), ""};
    }
}

}  // namespace onebit
