// The parts of kernel_set.h that need no list of kernels.
#include <string>
#include <vector>

#include "base/nearest.h"
#include "hrx/kernels/kernel_set.h"
#include "hrx/loom/targets.h"

namespace onebit::loom {
Result<const Constant*> find_constant(const Kernel& kernel, std::string_view name) {
    std::vector<std::string> names;
    for (const Constant& constant : kernel.constants) {
        if (constant.name == name) return &constant;
        names.emplace_back(constant.name);
    }
    std::string expected;
    for (const std::string& each : names) expected += (expected.empty() ? "" : ", ") + each;
    const std::string near = nearest_name(name, names);
    return Error{ErrorCode::usage, "kernel " + std::string(kernel.name) + ", constant",
                 expected.empty() ? "none, it has none" : expected, "'" + std::string(name) + "'",
                 near.empty() ? "" : "did you mean " + near + "?"};
}

Result<Image> generic_image(const Kernel& kernel, std::string_view architecture) {
    const Image* best = nullptr;
    std::string known;
    const uint32_t wanted = nvidia_number(architecture);
    for (const Image& image : kernel.images) {
        if (image.target == architecture) return image;
        const uint32_t number = nvidia_number(image.target);
        if (number != 0 && number <= wanted && (best == nullptr || number > nvidia_number(best->target))) best = &image;
        known += (known.empty() ? "" : ", ") + std::string(image.target);
    }
    if (best != nullptr) return *best;
    return Error{ErrorCode::unsupported, "kernel " + std::string(kernel.name),
                 known.empty() ? "images, which a build with clang 19 has" : "one of " + known,
                 std::string(architecture), ""};
}

}  // namespace onebit::loom
