#include "hrx/runtime/builtin_images.h"

namespace onebit::hrx::runtime {

std::span<const std::byte> builtin_image(const std::string& target) {
    for (const BuiltinImage* image = builtin_image_table; image->target != nullptr; ++image) {
        if (target == image->target) return {image->begin, image->end};
    }
    return {};
}

std::string builtin_targets() {
    std::string names;
    for (const BuiltinImage* image = builtin_image_table; image->target != nullptr; ++image) {
        names += (names.empty() ? "" : ", ") + std::string(image->target);
    }
    return names.empty() ? "nothing" : names;
}

}  // namespace onebit::hrx::runtime
