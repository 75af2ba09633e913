// libloom.so, found and opened when a kernel has to be compiled, and not before. It stays in the process from then on.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "hrx/loom/loom.h"
#include "hrx/loom/request.h"

namespace onebit::loom {

class Library {
public:
    // file: empty for the usual places in this order: $ONEBIT_LOOM_LIBRARY (then no other), the program's folder, the
    // folder of its private libraries, where this build puts it. Error unavailable with each file that was tried and
    // what the loader said of it, or with the version that it has where it is of another build.
    static Result<std::shared_ptr<const Library>> open(const std::filesystem::path& file = {});

    struct Compiled {
        std::vector<std::byte> bytes;
        loom_times times{};
    };
    // On the calling thread, any number at a time. Errors name the kernel and what the compiler found.
    Result<Compiled> compile(const Request& request, loom_output output) const;

    const std::filesystem::path& file() const { return file_; }

private:
    Library() = default;
    Result<void> open_file(const std::filesystem::path& file);

    std::filesystem::path file_;
    decltype(&loom_compile) compile_ = nullptr;
    decltype(&loom_image_free) free_ = nullptr;
};

}  // namespace onebit::loom
