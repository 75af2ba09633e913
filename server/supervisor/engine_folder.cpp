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

// The lock of a folder of ours, if no process holds it. flag: O_CREAT for a new folder, 0 for one that is there.
UniqueFd take_lock(const fs::path& folder, int flag) {
    const UniqueFd at(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    struct stat status {};
    if (!at || ::fstat(at.get(), &status) != 0 || status.st_uid != ::geteuid()) return {};
    UniqueFd lock(::openat(at.get(), kLock, O_RDWR | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK | flag, 0600));
    if (!lock || ::fstat(lock.get(), &status) != 0 || !S_ISREG(status.st_mode)) return {};
    if (::flock(lock.get(), LOCK_EX | LOCK_NB) != 0) return {};
    // another process may have removed it before it was locked
    if (::fstat(lock.get(), &status) != 0 || status.st_nlink == 0) return {};
    return lock;
}

// A folder without the lock's file is not one of ours, or not yet.
void remove_abandoned(const std::string& base, const std::string& prefix) {
    std::error_code ignored;
    for (fs::directory_iterator it(base, ignored), end; !ignored && it != end; it.increment(ignored)) {
        const std::string name = it->path().filename().string();
        if (!name.starts_with(prefix) || name.size() != prefix.size() + kLetters) continue;
        std::error_code failed;
        if (const UniqueFd lock = take_lock(it->path(), 0)) fs::remove_all(it->path(), failed);
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
            if (UniqueFd lock = take_lock(path, O_CREAT)) return EngineFolder(path, std::move(lock));
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
