#include "server/supervisor/engine_folder.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>

namespace onebit {
namespace fs = std::filesystem;
namespace {

constexpr const char* kLock = "lock";
constexpr size_t kLetters = 6, kLongestBase = 60;  // a socket's address holds about a hundred bytes
constexpr int kTries = 8;
constexpr time_t kOldEnough = 60;  // seconds

// Locks of a folder of this user, if no process holds them. flag: O_CREAT for a new folder, 0 for one that is there.
struct Locks {
    UniqueFd folder, file;
};

Locks take_locks(const fs::path& path, int flag) {
    Locks locks;
    UniqueFd folder(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    struct stat status {};
    if (!folder || ::fstat(folder.get(), &status) != 0 || status.st_uid != ::geteuid()) return locks;
    if (::flock(folder.get(), LOCK_EX | LOCK_NB) != 0) return locks;
    locks.folder = std::move(folder);
    UniqueFd file(::openat(locks.folder.get(), kLock, O_RDWR | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK | flag, 0600));
    if (!file || ::fstat(file.get(), &status) != 0 || !S_ISREG(status.st_mode)) return locks;
    if (::flock(file.get(), LOCK_EX | LOCK_NB) != 0) return locks;
    // another process may have removed it before it was locked
    if (::fstat(file.get(), &status) != 0 || status.st_nlink == 0) return locks;
    locks.file = std::move(file);
    return locks;
}

// Of a process that was killed before it made the lock's file or after it had removed it: as mkdtemp makes them, and
// not as young as one whose process is about to lock it. That it is empty is for rmdir to find.
bool looks_left_behind(const UniqueFd& folder) {
    struct stat status {};
    timespec now{};
    return ::fstat(folder.get(), &status) == 0 && (status.st_mode & 07777) == 0700 &&
           ::clock_gettime(CLOCK_REALTIME, &now) == 0 && now.tv_sec - status.st_mtim.tv_sec >= kOldEnough;
}

void remove_abandoned(const std::string& base, const std::string& prefix) {
    std::error_code ignored;
    for (fs::directory_iterator it(base, ignored), end; !ignored && it != end; it.increment(ignored)) {
        const std::string name = it->path().filename().string();
        if (!name.starts_with(prefix) || name.size() != prefix.size() + kLetters) continue;
        const Locks locks = take_locks(it->path(), 0);
        std::error_code failed;
        if (locks.file)
            fs::remove_all(it->path(), failed);
        else if (locks.folder && looks_left_behind(locks.folder))
            ::rmdir(it->path().c_str());
    }
}

}  // namespace

Result<EngineFolder> EngineFolder::create(const std::string& prefix) {
    const char* runtime = std::getenv("XDG_RUNTIME_DIR");
    std::error_code ignored;
    int reason = ENOENT;
    for (const std::string& base : {std::string(runtime ? runtime : ""), std::string("/tmp")}) {
        if (base.empty() || base.size() > kLongestBase || !fs::is_directory(base, ignored)) continue;
        remove_abandoned(base, prefix);
        for (int i = 0; i < kTries; i++) {
            std::string path = base + "/" + prefix + std::string(kLetters, 'X');
            if (!::mkdtemp(path.data())) {
                reason = errno;
                break;
            }
            if (Locks locks = take_locks(path, O_CREAT); locks.file)
                return EngineFolder(path, std::move(locks.folder), std::move(locks.file));
            reason = errno;
            fs::remove_all(path, ignored);
        }
    }
    return error_from_errno(reason, "/tmp/" + prefix + std::string(kLetters, 'X'),
                            "make /tmp writable or set XDG_RUNTIME_DIR");
}

EngineFolder::~EngineFolder() {
    std::error_code ignored;
    if (!path_.empty()) fs::remove_all(path_, ignored);
}

}  // namespace onebit
