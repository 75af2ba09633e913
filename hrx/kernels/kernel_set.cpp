#include "hrx/kernels/kernel_set.h"

#include <algorithm>
#include <charconv>
#include <string>
#include <vector>

#include "base/nearest.h"
#include "hrx/kernels/kernel_table.h"

namespace onebit::loom {
namespace {

std::vector<Kernel> collect() {
    std::vector<Kernel> all;
    for (const FamilyFunction* family = kernel_families; *family != nullptr; family++) {
        const auto kernels = (*family)();
        all.insert(all.end(), kernels.begin(), kernels.end());
    }
    std::sort(all.begin(), all.end(), [](const Kernel& a, const Kernel& b) { return a.name < b.name; });
    return all;
}

// The number of "sm_90"; 0 when it is no such name.
uint32_t nvidia_number(std::string_view architecture) {
    uint32_t number = 0;
    if (!architecture.starts_with("sm_")) return 0;
    const std::string_view digits = architecture.substr(3);
    const auto [end, problem] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
    return problem == std::errc{} && end == digits.data() + digits.size() ? number : 0;
}

Error unknown(std::string subject, std::string_view name, const std::vector<std::string>& names) {
    std::string expected;
    for (const std::string& each : names) expected += (expected.empty() ? "" : ", ") + each;
    const std::string near = nearest_name(name, names);
    return Error{ErrorCode::not_found, std::move(subject), expected.empty() ? "none, there are none" : expected,
                 "'" + std::string(name) + "'", near.empty() ? "" : "did you mean " + near + "?"};
}

}  // namespace

std::span<const Kernel> kernel_set() {
    static const std::vector<Kernel> all = collect();
    return all;
}

Result<const Kernel*> find_kernel(std::string_view name) {
    const auto all = kernel_set();
    const auto at = std::lower_bound(all.begin(), all.end(), name, [](const Kernel& kernel, std::string_view wanted) {
        return kernel.name < wanted;
    });
    if (at != all.end() && at->name == name) return &*at;
    std::vector<std::string> names;
    for (const Kernel& kernel : all) names.emplace_back(kernel.name);
    Error error = unknown("kernel", name, names);
    error.expected = "a name of 1bit kernels list";
    return error;
}

Result<const Constant*> find_constant(const Kernel& kernel, std::string_view name) {
    std::vector<std::string> names;
    for (const Constant& constant : kernel.constants) {
        if (constant.name == name) return &constant;
        names.emplace_back(constant.name);
    }
    Error error = unknown("kernel " + std::string(kernel.name) + ", constant", name, names);
    error.code = ErrorCode::usage;
    return error;
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
