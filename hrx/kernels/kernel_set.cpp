#include "hrx/kernels/kernel_set.h"

#include <algorithm>
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
    const std::string near = nearest_name(name, names);
    return Error{ErrorCode::not_found, "kernel", "a name of 1bit kernels list", "'" + std::string(name) + "'",
                 near.empty() ? "" : "did you mean " + near + "?"};
}

}  // namespace onebit::loom
