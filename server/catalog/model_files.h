// The .gguf files of one tree, put together to models: shards to sets, projectors set apart.
#pragma once

#include <sys/stat.h>

#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "server/catalog/head_cache.h"

namespace onebit {

// One model as it lies on disk, before it has an id.
struct ModelFiles {
    std::vector<std::filesystem::path> files;
    std::string stem;  // of the file, or of the set without its numbers
    uint64_t bytes = 0;
    uint64_t parameters = 0;
    std::shared_ptr<const HeadSummary> head;  // of the first shard; never null
    std::optional<Error> error;
};

struct FolderFiles {
    std::vector<ModelFiles> models;
    std::vector<std::filesystem::path> projectors;
};

// All .gguf files below root by their folder, names sorted. Follows symbolic links, each folder once; hidden and
// unreadable ones are left out, as is what the kernel shows of itself (/proc, /sys). At most 8 levels and 100,000
// files.
std::map<std::filesystem::path, std::vector<std::string>> walk_gguf_files(const std::filesystem::path& root);

// names: files of this folder.
FolderFiles group_files(const std::filesystem::path& folder, const std::vector<std::string>& names);

}  // namespace onebit
