#include "tests/hrx-cts/cts.h"

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <map>
#include <numeric>

namespace onebit::hrx::cts {
Result<Executable> CtsTest::load_kernels() const { return device().load(kernel_image(info().architecture)); }

// Never destroyed, as the devices.
const Executable& CtsTest::kernels() const {
    static auto* const loaded = new std::map<std::string, Executable>;
    const auto found = loaded->find(GetParam());
    if (found != loaded->end()) return found->second;
    return (*loaded)[GetParam()] = must(load_kernels());
}

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
