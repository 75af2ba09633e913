// An entry is a file: 8 bytes of magic, the length of the bytes (8 bytes, little-endian), SHA-256 of the key's digest
// and the bytes, 16 zero bytes, the bytes. Its modification time is when it was last used.
#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <memory>
#include <new>

#include "base/cache_folder.h"
#include "base/hash.h"
#include "base/private_folder.h"
#include "base/temp_file.h"
#include "base/unique_fd.h"

namespace onebit {

namespace {

constexpr size_t header_size = 64;
constexpr std::string_view magic = "1bitfc01";
constexpr std::string_view entry_suffix = ".entry";
constexpr time_t abandoned_seconds = 3600;

using Header = std::array<std::byte, header_size>;

Header make_header(const Digest& key, std::span<const std::byte> bytes) {
    Header header{};
    std::memcpy(header.data(), magic.data(), magic.size());
    for (size_t i = 0; i < 8; i++) header[8 + i] = static_cast<std::byte>(uint64_t(bytes.size()) >> (8 * i));
    Sha256 hash;
    hash.update(key);
    hash.update(bytes);
    const Digest digest = hash.finish();
    std::copy(digest.begin(), digest.end(), header.begin() + 16);
    return header;
}

struct Entry {
    std::string name;
    uint64_t size;
    timespec used;
    bool temporary;
};

bool used_before(const Entry& a, const Entry& b) {
    return a.used.tv_sec != b.used.tv_sec ? a.used.tv_sec < b.used.tv_sec : a.used.tv_nsec < b.used.tv_nsec;
}

// An entry that disappears while the folder is read is simply not there.
Result<std::vector<Entry>> list_entries(int folder, const std::filesystem::path& path) {
    UniqueFd own(::openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (!own) return error_from_errno(errno, path.string());
    std::unique_ptr<DIR, int (*)(DIR*)> stream(::fdopendir(own.get()), ::closedir);
    if (!stream) return error_from_errno(errno, path.string());
    own.release();
    std::vector<Entry> entries;
    for (errno = 0; const dirent* item = ::readdir(stream.get()); errno = 0) {
        const std::string_view name = item->d_name;
        const bool temporary = name.starts_with(TempFile::prefix) && name.ends_with(TempFile::suffix);
        if (!temporary && !name.ends_with(entry_suffix)) continue;
        struct stat status {};
        if (::fstatat(folder, item->d_name, &status, AT_SYMLINK_NOFOLLOW) != 0) continue;
        entries.push_back({std::string(name), static_cast<uint64_t>(status.st_size), status.st_mtim, temporary});
    }
    if (errno != 0) return error_from_errno(errno, path.string());
    return entries;
}

// Held while entries are replaced or removed. flock belongs to the open file, so it keeps threads apart as well.
Result<UniqueFd> lock_folder(int folder, const std::filesystem::path& path) {
    UniqueFd lock(::openat(folder, ".lock", O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
    if (!lock) return error_from_errno(errno, (path / ".lock").string());
    while (::flock(lock.get(), LOCK_EX) != 0) {
        if (errno != EINTR) return error_from_errno(errno, (path / ".lock").string());
    }
    return lock;
}

Error miss(const std::filesystem::path& folder) {
    return Error{ErrorCode::not_found, folder.string(), "an entry of this key", "none", {}};
}

// False when it is not a sound entry of this key that only we can have written.
bool read_entry(int fd, const Digest& key, uint64_t max_bytes, std::vector<std::byte>& bytes) {
    struct stat status {};
    if (::fstat(fd, &status) != 0 || !S_ISREG(status.st_mode)) return false;
    if (status.st_uid != ::geteuid() || (status.st_mode & (S_IWGRP | S_IWOTH))) return false;
    const uint64_t size = static_cast<uint64_t>(status.st_size);
    if (size < header_size || size > max_bytes) return false;
    Header header{};
    bytes.resize(size - header_size);
    const auto fill = [fd](std::span<std::byte> part) {
        while (!part.empty()) {
            const ssize_t count = ::read(fd, part.data(), part.size());
            if (count < 0 && errno == EINTR) continue;
            if (count <= 0) return false;
            part = part.subspan(static_cast<size_t>(count));
        }
        return true;
    };
    return fill(header) && fill(bytes) && header == make_header(key, bytes);
}

timespec now() {
    timespec time{};
    // the file system's own clock ticks in milliseconds, too coarse to tell uses apart
    ::clock_gettime(CLOCK_REALTIME, &time);
    return time;
}

void mark_used(int fd) {
    const timespec times[2] = {now(), now()};
    ::futimens(fd, times);
}

}  // namespace

Result<FileCache> FileCache::open(std::filesystem::path folder, uint64_t max_bytes) {
    if (auto fd = open_private_folder(folder); !fd) return std::move(fd).error();
    return FileCache(std::move(folder), max_bytes);
}

Result<std::vector<std::byte>> FileCache::get(std::string_view key) {
    auto folder = open_private_folder(folder_);
    if (!folder) return std::move(folder).error();
    const Digest digest = sha256(key);
    const std::string name = to_hex(digest) + std::string(entry_suffix);
    UniqueFd fd(::openat(folder->get(), name.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
    if (!fd && errno == ENOENT) return miss(folder_);
    if (!fd && errno != ELOOP) return error_from_errno(errno, (folder_ / name).string());
    std::vector<std::byte> bytes;
    try {
        if (fd && read_entry(fd.get(), digest, max_bytes_, bytes)) {
            mark_used(fd.get());
            return bytes;
        }
    } catch (const std::bad_alloc&) {
        return error_from_errno(ENOMEM, (folder_ / name).string(), "free memory");
    }
    // Another process may have put a sound entry in its place meanwhile: remove only the one that was read.
    auto lock = lock_folder(folder->get(), folder_);
    if (!lock) return std::move(lock).error();
    struct stat read {
    }, present{};
    const bool there = ::fstatat(folder->get(), name.c_str(), &present, AT_SYMLINK_NOFOLLOW) == 0;
    const bool same = fd ? ::fstat(fd.get(), &read) == 0 && read.st_ino == present.st_ino : S_ISLNK(present.st_mode);
    if (there && same) ::unlinkat(folder->get(), name.c_str(), 0);
    return miss(folder_);
}

Result<void> FileCache::put(std::string_view key, std::span<const std::byte> bytes) {
    const uint64_t size = bytes.size() + header_size;
    if (size > max_bytes_) {
        return Error{ErrorCode::no_space, folder_.string(),
                     "an entry of at most " + std::to_string(max_bytes_) + " bytes", std::to_string(size) + " bytes",
                     "raise the cache's limit"};
    }
    auto folder = open_private_folder(folder_);
    if (!folder) return std::move(folder).error();
    const Digest digest = sha256(key);
    const std::string name = to_hex(digest) + std::string(entry_suffix);
    auto file = TempFile::create(folder_ / name, 0600);
    if (!file) return std::move(file).error();
    ONEBIT_RETURN_IF_ERROR(file->write(make_header(digest, bytes)));
    // no sync: the digest finds an entry that a power cut left incomplete
    ONEBIT_RETURN_IF_ERROR(file->write(bytes));

    auto lock = lock_folder(folder->get(), folder_);
    if (!lock) return std::move(lock).error();
    auto entries = list_entries(folder->get(), folder_);
    if (!entries) return std::move(entries).error();
    std::sort(entries->begin(), entries->end(), used_before);
    uint64_t total = size;
    for (const Entry& entry : *entries) {
        if (!entry.temporary && entry.name != name) total += entry.size;
    }
    const time_t abandoned = now().tv_sec - abandoned_seconds;
    for (const Entry& entry : *entries) {
        if (entry.temporary ? entry.used.tv_sec >= abandoned : total <= max_bytes_ || entry.name == name) continue;
        if (::unlinkat(folder->get(), entry.name.c_str(), 0) == 0 && !entry.temporary) total -= entry.size;
    }
    mark_used(file->fd());
    return file->publish();
}

uint64_t FileCache::bytes() const {
    UniqueFd folder(::open(folder_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (!folder) return 0;
    const auto entries = list_entries(folder.get(), folder_);
    uint64_t total = 0;
    if (entries) {
        for (const Entry& entry : *entries) total += entry.temporary ? 0 : entry.size;
    }
    return total;
}

Result<void> FileCache::clear() {
    auto folder = open_private_folder(folder_);
    if (!folder) return std::move(folder).error();
    auto lock = lock_folder(folder->get(), folder_);
    if (!lock) return std::move(lock).error();
    const auto entries = list_entries(folder->get(), folder_);
    if (!entries) return entries.error();
    const time_t abandoned = now().tv_sec - abandoned_seconds;
    for (const Entry& entry : *entries) {
        // a fresh temporary file belongs to a put() that is under way
        if (entry.temporary && entry.used.tv_sec >= abandoned) continue;
        if (::unlinkat(folder->get(), entry.name.c_str(), 0) != 0 && errno != ENOENT) {
            return error_from_errno(errno, (folder_ / entry.name).string());
        }
    }
    return {};
}

}  // namespace onebit
