#include "tests/hrx-kernels/kernel_testing.h"

#include <cstdlib>
#include <map>
#include <tuple>

#include "hrx/kernels/kernel_set.h"
#include "hrx/loom/library.h"
#include "hrx/loom/request.h"

namespace onebit::hrx::kernels::test {
namespace {

// With ONEBIT_KERNEL_TESTS=specialised each dispatch runs an image for the sizes that its argument block has.
bool specialised() {
    static const bool chosen = [] {
        const char* text = std::getenv("ONEBIT_KERNEL_TESTS");
        if (text == nullptr) return false;
        if (std::string_view(text) != "specialised")
            throw std::runtime_error("ONEBIT_KERNEL_TESTS: expected specialised, found " + std::string(text));
        return true;
    }();
    return chosen;
}

// The arguments of this dispatch that Loom may fix. block: of which the bindings, 8 bytes each, come first.
loom::Constants sizes_of(const loom::Kernel& kernel, std::span<const std::byte> constants, size_t binding_count) {
    loom::Constants sizes;
    for (const loom::Constant& constant : kernel.constants) {
        if (constant.is_option) continue;
        uint32_t value = 0;
        const size_t offset = constant.offset - 8 * binding_count;
        if (constant.offset < 8 * binding_count || offset + sizeof value > constants.size())
            throw std::runtime_error(std::string(constant.name) + " is not in the argument block");
        std::memcpy(&value, constants.data() + offset, sizeof value);
        if (value >= constant.minimum && value <= constant.maximum) sizes.emplace(constant.name, value);
    }
    return sizes;
}

std::vector<std::byte> image_for(const loom::Kernel& kernel, const std::string& architecture,
                                 const loom::Constants& sizes) {
    if (!specialised()) {
        const loom::Image image = must(loom::generic_image(kernel, architecture));
        return {image.bytes.begin(), image.bytes.end()};
    }
#if defined(ONEBIT_LOOM_LIBRARY_BUILT)
    static const auto library = must(loom::Library::open(ONEBIT_LOOM_LIBRARY_BUILT));
    return must(library->compile(must(loom::make_request(kernel, architecture, sizes)), LOOM_IMAGE)).bytes;
#else
    throw std::runtime_error("this build has no Loom");
#endif
}

// Loaded once a process. Never destroyed, as the devices.
const Executable& executable(const std::string& driver, const std::string& name, std::span<const std::byte> constants,
                             size_t binding_count) {
    const loom::Kernel& kernel = *must(loom::find_kernel(name));
    loom::Constants sizes;
    if (specialised()) sizes = sizes_of(kernel, constants, binding_count);
    static auto* const loaded = new std::map<std::tuple<std::string, std::string, loom::Constants>, Executable>;
    const std::tuple key{driver, name, sizes};
    const auto found = loaded->find(key);
    if (found != loaded->end()) return found->second;
    const DriverDevice& entry = driver_device(driver);
    return (*loaded)[key] = must(entry.device.load(image_for(kernel, entry.info.architecture, sizes)));
}

}  // namespace

testing::AssertionResult close(double got, double want, double value, double scale) {
    if (std::isnan(want)) {
        if (std::isnan(got)) return testing::AssertionSuccess();
    } else if (std::isinf(want) || value == 0) {
        if (got == want) return testing::AssertionSuccess();
    } else if (std::fabs(got - want) <= value * scale + std::numeric_limits<float>::denorm_min()) {
        return testing::AssertionSuccess();
    }
    return testing::AssertionFailure() << "got " << got << ", expected " << want << ", difference "
                                       << std::fabs(got - want) << ", allowed " << value * scale;
}

void KernelTest::run(const std::string& kernel, const Launch& launch, std::span<const std::byte> constants,
                     const std::vector<hrx_binding>& bindings, uint32_t dynamic_lds_bytes) const {
    const Executable& image = executable(GetParam(), kernel, constants, bindings.size());
    hrx_dispatch call{};
    call.executable = image.get();
    call.kernel = must(image.find(kernel.c_str()));
    std::copy(std::begin(launch.groups), std::end(launch.groups), call.workgroup_count);
    call.workgroup_size[0] = launch.threads;
    call.workgroup_size[1] = call.workgroup_size[2] = 1;
    call.dynamic_lds_bytes = dynamic_lds_bytes;
    call.bindings = bindings.data();
    call.binding_count = static_cast<uint32_t>(bindings.size());
    call.constants = constants.data();
    call.constant_bytes = static_cast<uint32_t>(constants.size());
    const Program program = must(device().create_program());
    must(program.dispatch(call));
    must(program.finish());
    must(queue().submit(program));
    must(queue().wait_idle(patience));
}

}  // namespace onebit::hrx::kernels::test
