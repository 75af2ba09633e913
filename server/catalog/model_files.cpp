#include "server/catalog/model_files.h"

#include <linux/magic.h>
#include <sys/vfs.h>

#include <algorithm>
#include <cerrno>
#include <iterator>
#include <set>
#include <utility>

#include "base/log.h"
#include "server/catalog/catalog_names.h"

namespace onebit {
namespace {

namespace fs = std::filesystem;

constexpr unsigned kMostLevels = 8;
constexpr size_t kMostFiles = 100'000, kMostFolders = 100'000;
constexpr const char* kDownloadAgain = "download the model again, such as with '1bit pull'";

// What the kernel shows of itself as files: no model is there, and /proc leads to every other place again.
bool is_kernels_own(const fs::path& folder) {
    struct statfs system {};
    if (::statfs(folder.c_str(), &system) != 0) return false;
    constexpr long kTypes[] = {PROC_SUPER_MAGIC, SYSFS_MAGIC,        DEBUGFS_MAGIC,       TRACEFS_MAGIC,
                               SECURITYFS_MAGIC, CGROUP_SUPER_MAGIC, CGROUP2_SUPER_MAGIC, DEVPTS_SUPER_MAGIC,
                               BPF_FS_MAGIC,     PSTOREFS_MAGIC,     SELINUX_MAGIC};
    return std::find(std::begin(kTypes), std::end(kTypes), static_cast<long>(system.f_type)) != std::end(kTypes);
}

class Walk {
public:
    void folder(const fs::path& path, unsigned level, dev_t parent) {
        struct stat status {};
        if (::stat(path.c_str(), &status) != 0 || !S_ISDIR(status.st_mode)) return;
        if (status.st_dev != parent && is_kernels_own(path)) return;
        if (!seen_.insert({status.st_dev, status.st_ino}).second) return;
        std::error_code failed;
        fs::directory_iterator entries(path, failed);
        if (failed) {
            log_verbose("catalog", "cannot read the folder " + path.string() + ": " + failed.message());
            return;
        }
        std::vector<std::string> folders, names;
        for (; entries != fs::directory_iterator(); entries.increment(failed)) {
            const std::string name = entries->path().filename().native();
            if (name.starts_with('.')) continue;
            std::error_code unknown;
            if (has_gguf_extension(name) && !entries->is_directory(unknown))
                names.push_back(name);
            else if (entries->is_directory(unknown))
                folders.push_back(name);
        }
        std::sort(names.begin(), names.end());
        std::sort(folders.begin(), folders.end());
        count_ += names.size();
        if (!names.empty()) found_[path] = std::move(names);
        for (const std::string& name : folders) {
            if (level + 1 >= kMostLevels) return;
            if (count_ >= kMostFiles || seen_.size() >= kMostFolders) {
                if (!std::exchange(told_, true))
                    log_warning("catalog", "more than " + std::to_string(kMostFiles) +
                                               " files or folders: not all of " + path.string() + " is listed");
                return;
            }
            folder(path / name, level + 1, status.st_dev);
        }
    }
    std::map<fs::path, std::vector<std::string>> take() { return std::move(found_); }

private:
    std::map<fs::path, std::vector<std::string>> found_;
    std::set<std::pair<dev_t, ino_t>> seen_;
    size_t count_ = 0;
    bool told_ = false;
};

struct Part {
    fs::path file;
    uint64_t bytes = 0;
    std::shared_ptr<const HeadSummary> head;
};

Part open_part(const fs::path& file) {
    struct stat status {};
    if (::stat(file.c_str(), &status) != 0) {
        auto head = std::make_shared<HeadSummary>();
        const int failure = errno;
        head->error = failure == ENOENT ? Error{ErrorCode::not_found, file.string(), "a file behind this link", "none",
                                                kDownloadAgain}
                                        : error_from_errno(failure, file.string());
        return {file, 0, std::move(head)};
    }
    return {file, static_cast<uint64_t>(status.st_size), head_summary(file, status)};
}

ModelFiles single(Part part, std::string stem) {
    ModelFiles model;
    model.files = {part.file};
    model.stem = std::move(stem);
    model.bytes = part.bytes;
    model.parameters = part.head->parameters;
    model.error = part.head->error;
    model.head = std::move(part.head);
    return model;
}

// parts: by shard number from 1.
ModelFiles join(const fs::path& folder, const ShardName& set, std::map<unsigned, Part> parts) {
    ModelFiles model;
    model.stem = set.prefix;
    model.head = parts.begin()->second.head;
    uint64_t tensors = 0, promised = 0;
    unsigned missing = 0, first_missing = 0;
    for (unsigned number = 1; number <= set.count; ++number) {
        auto found = parts.find(number);
        if (found == parts.end()) {
            if (missing++ == 0) first_missing = number;
            continue;
        }
        Part& part = found->second;
        model.files.push_back(part.file);
        model.bytes += part.bytes;
        model.parameters += part.head->parameters;
        tensors += part.head->tensors;
        if (number == 1) promised = part.head->tensors_of_all_shards;
        if (!model.error) model.error = part.head->error;
    }
    if (missing > 0) {
        const std::string name = shard_file_name({set.prefix, first_missing, set.count});
        model.error = Error{
            ErrorCode::invalid, (folder / name).string(), "all " + std::to_string(set.count) + " shards of the model",
            std::to_string(missing) + " missing, first shard " + std::to_string(first_missing), kDownloadAgain};
    } else if (!model.error && promised != 0 && promised != tensors) {
        model.error =
            Error{ErrorCode::invalid, model.files.front().string(), std::to_string(promised) + " tensors in all shards",
                  std::to_string(tensors), kDownloadAgain};
    }
    return model;
}

}  // namespace

std::map<fs::path, std::vector<std::string>> walk_gguf_files(const fs::path& root) {
    Walk walk;
    walk.folder(root, 0, dev_t(-1));
    return walk.take();
}

FolderFiles group_files(const fs::path& folder, const std::vector<std::string>& names) {
    FolderFiles found;
    std::map<std::pair<std::string, unsigned>, std::map<unsigned, Part>> sets;
    for (const std::string& name : names) {
        Part part = open_part(folder / name);
        const HeadSummary& head = *part.head;
        const auto shard = parse_shard_name(name);
        if (head.error) {
            if (names_projector(name)) continue;
            // the metadata cannot be asked, so the name has to do
            if (shard)
                sets[{shard->prefix, shard->count}].emplace(shard->number, std::move(part));
            else
                found.models.push_back(single(std::move(part), stem_of(name)));
        } else if (head.role == GgufRole::projector) {
            found.projectors.push_back(part.file);
        } else if (head.role == GgufRole::other) {
            continue;
        } else if (head.split_count == 1) {
            found.models.push_back(single(std::move(part), stem_of(name)));
        } else if (shard && shard->count == head.split_count && shard->number == head.split_no + 1u) {
            sets[{shard->prefix, shard->count}].emplace(shard->number, std::move(part));
        } else {
            ModelFiles model = single(std::move(part), stem_of(name));
            const std::string prefix = shard ? shard->prefix : stem_of(name);
            const ShardName right{prefix, model.head->split_no + 1u, model.head->split_count};
            model.error = Error{
                ErrorCode::invalid, model.files.front().string(),
                "the name '" + shard_file_name(right) + "', by which the shards find each other",
                "shard " + std::to_string(right.number) + " of " + std::to_string(right.count) + " under another name",
                "rename each shard to its number"};
            found.models.push_back(std::move(model));
        }
    }
    for (auto& [key, parts] : sets) {
        const bool all_damaged = std::all_of(parts.begin(), parts.end(),
                                             [](const auto& part) { return part.second.head->error.has_value(); });
        if (all_damaged && parts.size() == 1) {
            Part& only = parts.begin()->second;
            std::string stem = stem_of(only.file.filename().native());
            found.models.push_back(single(std::move(only), std::move(stem)));
        } else {
            found.models.push_back(join(folder, {key.first, 0, key.second}, std::move(parts)));
        }
    }
    return found;
}

}  // namespace onebit
