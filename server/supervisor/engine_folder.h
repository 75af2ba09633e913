// The folder in which a process that starts engines keeps their sockets.
#pragma once

#include <filesystem>
#include <string>
#include <utility>

#include "base/result.h"
#include "base/unique_fd.h"

namespace onebit {

// Mode 0700, with a path short enough for the address of a socket. Removed with the object; one whose process was
// killed is removed by the next process that makes one in the same place.
class EngineFolder {
public:
    // In $XDG_RUNTIME_DIR, else in /tmp, under the prefix and six letters. Error of errno when neither can be written.
    static Result<EngineFolder> create(const std::string& prefix = "1bit-");
    EngineFolder(EngineFolder&& other) noexcept
        : path_(std::exchange(other.path_, {})), lock_(std::move(other.lock_)) {}
    EngineFolder& operator=(EngineFolder&& other) noexcept {
        std::swap(path_, other.path_);
        std::swap(lock_, other.lock_);
        return *this;
    }
    ~EngineFolder();

    const std::filesystem::path& path() const { return path_; }

private:
    EngineFolder(std::filesystem::path path, UniqueFd lock) : path_(std::move(path)), lock_(std::move(lock)) {}
    std::filesystem::path path_;
    UniqueFd lock_;  // of a file in it, for as long as its process lives
};

}  // namespace onebit
