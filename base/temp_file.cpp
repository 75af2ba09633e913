#include "base/temp_file.h"

#include <fcntl.h>
#include <sys/random.h>
#include <sys/stat.h>

#include <atomic>
#include <cerrno>
#include <cstdio>

#include "base/cache_folder.h"

namespace onebit {

namespace {

// Its length does not depend on the target's name, which may already be as long as the file system allows.
std::string temporary_name() {
    static std::atomic<uint32_t> counter{0};
    uint64_t random = 0;
    // without entropy the process id and the counter still keep names apart
    (void)::getrandom(&random, sizeof random, GRND_NONBLOCK);
    char text[64];
    std::snprintf(text, sizeof text, "%d-%u-%016llx", static_cast<int>(::getpid()), counter++,
                  static_cast<unsigned long long>(random));
    return std::string(TempFile::prefix) + text + std::string(TempFile::suffix);
}

}  // namespace

Result<TempFile> TempFile::create(const std::filesystem::path& target, uint32_t mode) {
    if (!target.has_filename() || target.native().find('\0') != std::string::npos) {
        return Error{ErrorCode::usage, target.string(), "the path of a file",
                     "a path without a file name or with a "
                     "zero byte in it",
                     "name a file"};
    }
    std::filesystem::path temporary = target;
    temporary.replace_filename(temporary_name());
    UniqueFd fd(::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600));
    if (!fd) {
        const int reason = errno;
        return error_from_errno(reason, target.string(),
                                reason == ENOENT ? "make the folder " + target.parent_path().string() + " first"
                                                 : "check the folder's permissions and the free space of its disk");
    }
    TempFile file(target, std::move(temporary), std::move(fd));
    if (::fchmod(file.fd(), mode & 07777) != 0) return error_from_errno(errno, target.string());
    return file;
}

TempFile::~TempFile() {
    if (!temporary_.empty()) ::unlink(temporary_.c_str());
}

Result<void> TempFile::write(std::span<const std::byte> bytes) {
    while (!bytes.empty()) {
        const ssize_t count = ::write(fd_.get(), bytes.data(), bytes.size());
        if (count < 0 && errno == EINTR) continue;
        if (count < 0) return error_from_errno(errno, target_.string(), "free space on its disk");
        bytes = bytes.subspan(static_cast<size_t>(count));
    }
    return {};
}

Result<void> TempFile::sync() {
    if (::fsync(fd_.get()) != 0) return error_from_errno(errno, target_.string(), "check its disk");
    return {};
}

Result<void> TempFile::publish() {
    if (::rename(temporary_.c_str(), target_.c_str()) != 0) return error_from_errno(errno, target_.string());
    temporary_.clear();
    const std::filesystem::path parent = target_.has_parent_path() ? target_.parent_path() : ".";
    UniqueFd folder(::open(parent.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (folder) ::fsync(folder.get());
    return {};
}

Result<void> publish_file(const std::filesystem::path& path, std::span<const std::byte> bytes, uint32_t mode) {
    auto file = TempFile::create(path, mode);
    if (!file) return std::move(file).error();
    ONEBIT_RETURN_IF_ERROR(file->write(bytes));
    ONEBIT_RETURN_IF_ERROR(file->sync());
    return file->publish();
}

}  // namespace onebit
