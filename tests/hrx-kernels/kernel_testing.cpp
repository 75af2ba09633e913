#include "tests/hrx-kernels/kernel_testing.h"

#include <cstdlib>
#include <map>

#include "hrx/kernels/kernel_set.h"

namespace onebit::hrx::kernels::test {
namespace {

struct Opened {
    Device device;
    std::string architecture;
    std::string problem;
    std::map<std::string, Executable> kernels;  // by entry point
};

// Never destroyed: drivers do not like to be called while the process ends.
Opened& opened(const std::string& driver) {
    static auto* const devices = new std::map<std::string, Opened>;
    const auto found = devices->find(driver);
    if (found != devices->end()) return found->second;
    Opened& entry = (*devices)[driver];
#ifdef ONEBIT_HRX_EMULATOR
    // an emulated gfx1151, unless another library is asked for
    if (driver == "amdgpu") setenv("ONEBIT_HRX_LIBHSA", ONEBIT_HRX_EMULATOR, 0);
#endif
    auto device = Device::open(driver.c_str(), 0);
    if (!device.ok()) {
        entry.problem = device.error().message();
        return entry;
    }
    entry.device = *device;
    entry.architecture = must(entry.device.info()).architecture;
    return entry;
}

// The generic image of this build.
const Executable& executable(Opened& entry, const std::string& name) {
    const auto found = entry.kernels.find(name);
    if (found != entry.kernels.end()) return found->second;
    const loom::Kernel& kernel = *must(loom::find_kernel(name));
    const loom::Image image = must(loom::generic_image(kernel, entry.architecture));
    return entry.kernels[name] = must(entry.device.load(image.bytes));
}

bool required(const std::string& driver) {
    const char* names = std::getenv("ONEBIT_HRX_CTS_REQUIRE");
    return names != nullptr && ("," + std::string(names) + ",").find("," + driver + ",") != std::string::npos;
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

void KernelTest::SetUp() {
    const Opened& entry = opened(GetParam());
    if (!entry.problem.empty()) {
        if (required(GetParam())) FAIL() << entry.problem;
        GTEST_SKIP() << entry.problem;
    }
    device_ = &entry.device;
    queue_ = must(device_->create_queue());
}

void KernelTest::run(const std::string& kernel, const Launch& launch, std::span<const std::byte> constants,
                     const std::vector<hrx_binding>& bindings, uint32_t dynamic_lds_bytes) const {
    const Executable& image = executable(opened(GetParam()), kernel);
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
    const Program program = must(device_->create_program());
    must(program.dispatch(call));
    must(program.finish());
    must(queue_.submit(program));
    must(queue_.wait_idle(patience));
}

std::vector<std::string> driver_names() {
    std::vector<std::string> names;
    for (uint32_t i = 0; i < hrx_driver_count(); ++i) names.emplace_back(hrx_driver_name(i));
    return names;
}

std::string test_name(const testing::TestParamInfo<std::string>& info) { return info.param; }

}  // namespace onebit::hrx::kernels::test
