// Images that Loom made, on disk: bounded, the least recently used go first, damaged ones count as missing. Any number
// of threads and processes (base/cache_folder.h).
#pragma once

#include <filesystem>
#include <optional>

#include "base/cache_folder.h"
#include "hrx/loom/request.h"

namespace onebit::loom {

class ImageCache {
public:
    static constexpr uint64_t default_bytes = 256ull << 20;

    // folder: empty for the folder "kernels" of the user's cache. most_bytes: 0 keeps nothing.
    static Result<ImageCache> open(std::filesystem::path folder = {}, uint64_t most_bytes = default_bytes);

    // Nothing when there is none that is sound.
    std::optional<std::vector<std::byte>> get(const Request& request);
    // An image that is larger than the whole cache is not kept, which is no error.
    Result<void> put(const Request& request, std::span<const std::byte> image);
    uint64_t bytes() const { return files_->bytes(); }
    Result<void> clear();
    const std::filesystem::path& folder() const { return folder_; }
    uint64_t most_bytes() const { return most_bytes_; }

private:
    ImageCache(std::filesystem::path folder, uint64_t most_bytes)
        : folder_(std::move(folder)), most_bytes_(most_bytes) {}
    std::filesystem::path folder_;
    uint64_t most_bytes_;
    std::optional<FileCache> files_;
};

}  // namespace onebit::loom
