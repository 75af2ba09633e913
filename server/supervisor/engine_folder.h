// The folder in which a process that starts engines keeps their sockets.
#pragma once

#include <filesystem>
#include <string>
#include <utility>

#include "base/result.h"
#include "base/unique_fd.h"

namespace onebit {

// Mode 0700, with a path short enough for the address of a socket. Removed with the object; one whose process was
// killed is removed by the next process that makes one in the same place; if it is already empty, a minute after.
class EngineFolder {
public:
    // In $XDG_RUNTIME_DIR, else in /tmp, under the prefix and six letters. Error of errno when neither can be written.
    static Result<EngineFolder> create(const std::string& prefix = "1bit-");
    EngineFolder(EngineFolder&& other) noexcept
        : path_(std::exchange(other.path_, {})),
          folder_lock_(std::move(other.folder_lock_)),
          file_lock_(std::move(other.file_lock_)) {}
    EngineFolder& operator=(EngineFolder&& other) noexcept {
        std::swap(path_, other.path_);
        std::swap(folder_lock_, other.folder_lock_);
        std::swap(file_lock_, other.file_lock_);
        return *this;
    }
    ~EngineFolder();

    const std::filesystem::path& path() const { return path_; }

private:
    EngineFolder(std::filesystem::path path, UniqueFd folder_lock, UniqueFd file_lock)
        : path_(std::move(path)), folder_lock_(std::move(folder_lock)), file_lock_(std::move(file_lock)) {}
    std::filesystem::path path_;
    // For as long as its process lives: of the folder, which keeps those that clear /tmp of what is old away too, and
    // of a file in it, which marks it as ours when it is found.
    UniqueFd folder_lock_, file_lock_;
};

}  // namespace onebit
