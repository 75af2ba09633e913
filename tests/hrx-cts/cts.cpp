#include "tests/hrx-cts/cts.h"

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <map>
#include <numeric>

namespace onebit::hrx::cts {
namespace {

struct Opened {
    Device device;
    hrx_device_info info{};
    Executable kernels;
    std::string problem;
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
    entry.info = must(entry.device.info());
    entry.kernels = must(entry.device.load(kernel_image(entry.info.architecture)));
    return entry;
}

bool required(const std::string& driver) {
    const char* names = std::getenv("ONEBIT_HRX_CTS_REQUIRE");
    return names != nullptr && ("," + std::string(names) + ",").find("," + driver + ",") != std::string::npos;
}

}  // namespace

void CtsTest::SetUp() {
    const Opened& entry = opened(GetParam());
    if (!entry.problem.empty()) {
        if (required(GetParam())) FAIL() << entry.problem;
        GTEST_SKIP() << entry.problem;
    }
    device_ = &entry.device;
    info_ = entry.info;
    queue_ = must(device_->create_queue());
}

Result<Executable> CtsTest::load_kernels() const { return device().load(kernel_image(info_.architecture)); }
const Executable& CtsTest::kernels() const { return opened(GetParam()).kernels; }

Buffer CtsTest::words(std::span<const uint32_t> values, hrx_memory memory) const {
    Buffer buffer = must(device().allocate(values.size_bytes(), memory));
    must(buffer.write(values));
    return buffer;
}

Buffer CtsTest::zeros(size_t count, hrx_memory memory) const { return words(std::vector<uint32_t>(count), memory); }

Result<uint32_t> CtsTest::dispatch(const Program& program, const char* name, uint32_t groups,
                                   const std::vector<hrx_binding>& bindings,
                                   const std::vector<uint32_t>& constants) const {
    hrx_dispatch call{};
    call.executable = kernels().get();
    call.kernel = kernel(name);
    call.workgroup_count[0] = groups;
    call.workgroup_count[1] = call.workgroup_count[2] = 1;
    call.workgroup_size[0] = workgroup;
    call.workgroup_size[1] = call.workgroup_size[2] = 1;
    call.bindings = bindings.data();
    call.binding_count = static_cast<uint32_t>(bindings.size());
    call.constants = constants.data();
    call.constant_bytes = static_cast<uint32_t>(constants.size() * 4);
    return program.dispatch(call);
}

void CtsTest::run(const Program& program) const {
    must(queue().submit(program));
    must(queue().wait_idle(patience));
}

std::vector<std::string> driver_names() {
    std::vector<std::string> names;
    for (uint32_t i = 0; i < hrx_driver_count(); ++i) names.emplace_back(hrx_driver_name(i));
    return names;
}

std::string test_name(const testing::TestParamInfo<std::string>& info) { return info.param; }

std::vector<std::byte> kernel_image(const std::string& architecture) {
    const bool nvidia = architecture.starts_with("sm_");
    const std::string path =
        std::string(ONEBIT_HRX_CTS_KERNELS) + "/cts." + (nvidia ? "sm_80.ptx" : architecture + ".hsaco");
    std::ifstream file(path, std::ios::binary);
    if (!file) throw std::runtime_error("no kernel image " + path);
    const std::vector<char> text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
    std::vector<std::byte> image(text.size());
    std::transform(text.begin(), text.end(), image.begin(), [](char c) { return static_cast<std::byte>(c); });
    return image;
}

}  // namespace onebit::hrx::cts
