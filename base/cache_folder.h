// Folders of the user's that 1bit writes to, and a content-addressed cache in them.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace onebit {

// $ONEBIT_CACHE, else $XDG_CACHE_HOME/1bit, else $HOME/.cache/1bit. Created with mode 0700 if missing.
// Error io when it cannot be made; conflict when it belongs to another user or others may write to it.
Result<std::filesystem::path> cache_folder();

// $ONEBIT_MODELS, else $XDG_DATA_HOME/1bit/models, else $HOME/.local/share/1bit/models. Not created.
Result<std::filesystem::path> models_folder();

// Writes a file in one step: to a temporary name beside it, fsync, rename. After an error, a full disk included,
// the old file is as it was and no temporary file is left. mode: permission bits of the new file, whatever the umask.
// Error not_found when the folder is missing. A read-only file is replaced too: the folder's permissions decide.
Result<void> publish_file(const std::filesystem::path& path, std::span<const std::byte> bytes, uint32_t mode = 0600);

// A bounded cache of files by key in one folder; the least recently used ones go first.
// Thread rules: every call may come from any thread or process; a get sees a whole entry or none.
class FileCache {
public:
    // folder: created with mode 0700; conflict when it belongs to another user or others may write to it, which every
    // later call checks again. max_bytes: total size of the entries, 64 bytes of header each, that put() keeps to.
    static Result<FileCache> open(std::filesystem::path folder, uint64_t max_bytes);

    // key: any bytes; entries are named by their SHA-256. Error not_found on a miss; an entry whose recorded digest
    // does not match its bytes is removed and reported as a miss.
    Result<std::vector<std::byte>> get(std::string_view key);
    // Error no_space when the entry alone is larger than max_bytes.
    Result<void> put(std::string_view key, std::span<const std::byte> bytes);
    uint64_t bytes() const;
    Result<void> clear();

private:
    FileCache(std::filesystem::path folder, uint64_t max_bytes) : folder_(std::move(folder)), max_bytes_(max_bytes) {}
    std::filesystem::path folder_;
    uint64_t max_bytes_;
};

}  // namespace onebit
