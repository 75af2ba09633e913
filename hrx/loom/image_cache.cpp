#include "hrx/loom/image_cache.h"

#include "hrx/loom/image_check.h"

namespace onebit::loom {
namespace {
constexpr uint64_t entry_header = 64;  // base/cache_folder.h
}

Result<ImageCache> ImageCache::open(std::filesystem::path folder, uint64_t most_bytes) {
    if (folder.empty()) {
        auto user = cache_folder();
        if (!user.ok()) return std::move(user).error();
        folder = *user / "kernels";
    }
    ImageCache cache(folder, most_bytes);
    auto files = FileCache::open(std::move(folder), most_bytes);
    if (!files.ok()) return std::move(files).error();
    cache.files_.emplace(std::move(*files));
    return cache;
}

std::optional<std::vector<std::byte>> ImageCache::get(const Request& request) {
    auto found = files_->get(request.key());
    if (!found.ok()) return std::nullopt;
    if (!check_image(request.kernel->name, *request.target, *found).ok()) return std::nullopt;
    return std::move(*found);
}

Result<void> ImageCache::put(const Request& request, std::span<const std::byte> image) {
    auto kept = files_->put(request.key(), image);
    if (!kept.ok() && kept.error().code == ErrorCode::no_space && image.size() + entry_header > most_bytes_) return {};
    return kept;
}

Result<void> ImageCache::clear() { return files_->clear(); }

}  // namespace onebit::loom
