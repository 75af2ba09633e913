// A file being written under a temporary name beside its final place, which it takes in one step or never.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string_view>

#include "base/result.h"
#include "base/unique_fd.h"

namespace onebit {

// Not for several threads at once. Destroyed before publish() it removes itself.
class TempFile {
public:
    static constexpr std::string_view prefix = ".1bit-";
    static constexpr std::string_view suffix = ".tmp";

    // target: the final path, in an existing folder. mode: permission bits, whatever the umask.
    static Result<TempFile> create(const std::filesystem::path& target, uint32_t mode);

    TempFile(TempFile&& other) noexcept
        : target_(std::move(other.target_)), temporary_(std::move(other.temporary_)), fd_(std::move(other.fd_)) {
        other.temporary_.clear();
    }
    TempFile& operator=(TempFile&&) = delete;
    ~TempFile();

    Result<void> write(std::span<const std::byte> bytes);
    // fsync, for a file that must be whole after a power cut; before publish().
    Result<void> sync();
    // Renames it to its final path. The folder is synced too, but a file system that cannot do that is no error.
    Result<void> publish();
    int fd() const { return fd_.get(); }

private:
    TempFile(std::filesystem::path target, std::filesystem::path temporary, UniqueFd fd)
        : target_(std::move(target)), temporary_(std::move(temporary)), fd_(std::move(fd)) {}
    std::filesystem::path target_, temporary_;
    UniqueFd fd_;
};

}  // namespace onebit
