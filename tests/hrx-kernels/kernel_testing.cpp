#include "tests/hrx-kernels/kernel_testing.h"

#include <cstdlib>
#include <map>

#include "hrx/kernels/kernel_set.h"

namespace onebit::hrx::kernels::test {
namespace {

// The generic image of this build, loaded once a process. Never destroyed, as the devices.
const Executable& executable(const std::string& driver, const std::string& name) {
    static auto* const loaded = new std::map<std::pair<std::string, std::string>, Executable>;
    const auto found = loaded->find({driver, name});
    if (found != loaded->end()) return found->second;
    const DriverDevice& entry = driver_device(driver);
    const loom::Kernel& kernel = *must(loom::find_kernel(name));
    const loom::Image image = must(loom::generic_image(kernel, entry.info.architecture));
    return (*loaded)[{driver, name}] = must(entry.device.load(image.bytes));
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
    const Executable& image = executable(GetParam(), kernel);
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
