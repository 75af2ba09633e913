#include "tandem/layout_manifest.h"

#include <algorithm>
#include <cstring>

namespace onebit::tandem {
namespace {

template <typename T>
std::string list(const T (&values)[GGML_MAX_DIMS]) {
    std::string text = "[";
    for (const T value : values) text += (text.size() > 1 ? ", " : "") + std::to_string(value);
    return text + "]";
}

Error wrong(const std::string& subject, std::string expected, std::string found) {
    return {ErrorCode::invalid, "layout of " + subject, std::move(expected), std::move(found), "use one device alone"};
}

}  // namespace

Result<void> LayoutManifest::add(const ggml_tensor* tensor, size_t offset, size_t reserved) {
    if (ggml_is_empty(tensor)) return {};
    if (offset % alignment_ != 0)
        return wrong(tensor->name, "an offset that is a multiple of " + std::to_string(alignment_),
                     std::to_string(offset));
    if (offset > size_ || ggml_nbytes(tensor) > size_ - offset)
        return wrong(tensor->name, "an end within " + std::to_string(size_) + " bytes",
                     std::to_string(offset) + " + " + std::to_string(ggml_nbytes(tensor)));
    LayoutEntry entry;
    entry.name = tensor->name;
    entry.type = tensor->type;
    std::copy(std::begin(tensor->ne), std::end(tensor->ne), entry.ne);
    std::copy(std::begin(tensor->nb), std::end(tensor->nb), entry.nb);
    entry.offset = offset;
    entry.reserved = reserved;
    const std::lock_guard lock(mutex_);
    entries_[offset] = std::move(entry);
    return {};
}

Result<void> LayoutManifest::check(const ggml_tensor* view, size_t offset) const {
    if (ggml_is_empty(view)) return {};  // lies where the next tensor does
    const std::lock_guard lock(mutex_);
    if (offset > size_ || ggml_nbytes(view) > size_ - offset)
        return wrong(view->name, "an end within " + std::to_string(size_) + " bytes",
                     std::to_string(offset) + " + " + std::to_string(ggml_nbytes(view)));
    const auto found = entries_.find(offset);
    if (found == entries_.end()) return {};
    const LayoutEntry& entry = found->second;
    if (entry.type != view->type)
        return wrong(entry.name + ", type", ggml_type_name(entry.type), ggml_type_name(view->type));
    if (!std::equal(std::begin(entry.ne), std::end(entry.ne), view->ne))
        return wrong(entry.name + ", elements (ne)", list(entry.ne), list(view->ne));
    if (!std::equal(std::begin(entry.nb), std::end(entry.nb), view->nb))
        return wrong(entry.name + ", strides (nb)", list(entry.nb), list(view->nb));
    return {};
}

std::vector<std::string> LayoutManifest::overlaps() const {
    const std::lock_guard lock(mutex_);
    std::vector<std::string> found;
    const LayoutEntry* before = nullptr;
    for (const auto& [offset, entry] : entries_) {
        if (before != nullptr && before->offset + before->reserved > offset)
            found.push_back(before->name + " and " + entry.name);
        before = &entry;
    }
    return found;
}

std::string LayoutManifest::text() const {
    const std::lock_guard lock(mutex_);
    std::string text = "version " + std::to_string(version) + "\nbuffer of " + std::to_string(size_) +
                       " bytes, alignment " + std::to_string(alignment_) + "\n";
    for (const auto& [offset, entry] : entries_)
        text += std::to_string(offset) + " " + entry.name + " " + ggml_type_name(entry.type) + " ne " + list(entry.ne) +
                " nb " + list(entry.nb) + " reserved " + std::to_string(entry.reserved) + "\n";
    return text;
}

}  // namespace onebit::tandem
