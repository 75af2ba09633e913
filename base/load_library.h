// dlopen for a library that a user may have named: what would block or end the process is refused before the loader
// sees it. Threads: any; a file that changes meanwhile is not guarded against.
#pragma once

#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <sys/stat.h>

#include <cstring>
#include <string>

#include "base/unique_fd.h"

namespace onebit {

// Why the loader must not be given this file; empty when it may be. A name without a slash is searched for by the
// loader and always may.
inline std::string library_problem(const std::string& file) {
    if (file.find('/') == std::string::npos) return {};
    // a pipe would be waited for
    const UniqueFd fd(::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
    struct stat status {};
    // the loader says it better
    if (!fd || ::fstat(fd.get(), &status) != 0 || S_ISDIR(status.st_mode)) return {};
    if (!S_ISREG(status.st_mode)) return file + ": not a regular file";
    Elf64_Ehdr header{};
    if (::pread(fd.get(), &header, sizeof header, 0) != sizeof header) return {};
    if (std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 || header.e_ident[EI_CLASS] != ELFCLASS64) return {};
    const auto size = static_cast<Elf64_Off>(status.st_size);
    for (Elf64_Half i = 0; i < header.e_phnum; ++i) {
        Elf64_Phdr segment{};
        const Elf64_Off at = header.e_phoff + Elf64_Off{i} * header.e_phentsize;
        if (at > size || ::pread(fd.get(), &segment, sizeof segment, static_cast<off_t>(at)) != sizeof segment) {
            return file + ": cut short, its headers are not all there";
        }
        // the loader maps what is missing, and the first touch is a bus error
        if (segment.p_type == PT_LOAD && (segment.p_offset > size || segment.p_filesz > size - segment.p_offset)) {
            return file + ": cut short, " + std::to_string(size) + " bytes are not all of its segments";
        }
    }
    return {};
}

// nullptr with the reason in problem. All symbols are resolved at once and seen by nobody else.
inline void* load_library(const std::string& file, std::string& problem) {
    problem = library_problem(file);
    if (!problem.empty()) return nullptr;
    void* library = ::dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) {
        const char* reason = ::dlerror();
        problem = reason == nullptr ? "no reason given" : reason;
    }
    return library;
}

}  // namespace onebit
