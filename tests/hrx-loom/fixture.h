// What the tests of Loom share: an emulated gfx1151, a cache folder of their own, and short forms.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <stdexcept>

#include "hrx/loom/library.h"
#include "hrx/loom/specialiser.h"
#include "hrx/runtime/hrx.hpp"
#include "tests/must.h"

namespace onebit::loom::test {

class Folder {
public:
    Folder() {
        std::string name = (std::filesystem::temp_directory_path() / "onebit-loom-XXXXXX").string();
        if (::mkdtemp(name.data()) == nullptr) throw std::runtime_error("no temporary folder");
        path_ = name;
    }
    Folder(const Folder&) = delete;
    Folder& operator=(const Folder&) = delete;
    ~Folder() {
        std::error_code ignored;
        std::filesystem::remove_all(path_, ignored);
    }
    std::filesystem::path operator/(const char* name) const { return path_ / name; }

private:
    std::filesystem::path path_;
};

inline std::shared_ptr<const Library> library() { return must(Library::open(ONEBIT_LOOM_LIBRARY_BUILT)); }

inline Request request(const char* kernel, const char* target, Constants constants = {}) {
    return must(make_request(*must(find_kernel(kernel)), target, std::move(constants)));
}

// The emulated device, opened once a process and never closed.
inline const hrx::Device& emulator() {
    static const auto* const device = [] {
        setenv("ONEBIT_HRX_LIBHSA", ONEBIT_HRX_EMULATOR, 1);
        return new hrx::Device(must(hrx::Device::open("amdgpu", 0)));
    }();
    return *device;
}

// Runs the kernel of an image on the emulator and waits.
template <typename Constants>
void run(std::span<const std::byte> image, const char* kernel, uint32_t groups, uint32_t workgroup,
         const std::vector<hrx_binding>& bindings, const Constants& constants, uint32_t constant_bytes,
         uint32_t dynamic_lds_bytes = 0) {
    const auto executable = must(emulator().load(image));
    const auto queue = must(emulator().create_queue());
    const auto program = must(emulator().create_program());
    hrx_dispatch call{};
    call.executable = executable.get();
    call.kernel = must(executable.find(kernel));
    call.workgroup_count[0] = groups;
    call.workgroup_count[1] = call.workgroup_count[2] = 1;
    call.workgroup_size[0] = workgroup;
    call.workgroup_size[1] = call.workgroup_size[2] = 1;
    call.dynamic_lds_bytes = dynamic_lds_bytes;
    call.bindings = bindings.data();
    call.binding_count = static_cast<uint32_t>(bindings.size());
    call.constants = &constants;
    call.constant_bytes = constant_bytes;
    must(program.dispatch(call));
    must(program.finish());
    must(queue.submit(program));
    must(queue.wait_idle());
}

template <typename T>
hrx::Buffer buffer(const std::vector<T>& values) {
    auto made = must(emulator().allocate(values.size() * sizeof(T)));
    must(made.write(std::span<const T>(values)));
    return made;
}

}  // namespace onebit::loom::test
