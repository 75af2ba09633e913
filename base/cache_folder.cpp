#include "base/cache_folder.h"

#include <fcntl.h>
#include <pwd.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstdlib>

#include "base/private_folder.h"
#include "base/unique_fd.h"

namespace onebit {

namespace {

// An empty variable counts as unset, as the XDG specification has it.
std::string variable(const char* name) {
    const char* value = std::getenv(name);
    return value ? value : "";
}

std::string home() {
    if (std::string value = variable("HOME"); !value.empty()) return value;
    // services often run without HOME
    std::vector<char> buffer(16384);
    passwd entry{}, *found = nullptr;
    if (::getpwuid_r(::geteuid(), &entry, buffer.data(), buffer.size(), &found) == 0 && found && found->pw_dir) {
        return found->pw_dir;
    }
    return {};
}

// own: a variable with the folder itself. xdg: one with the folder above "1bit"; the specification ignores relative
// ones.
Result<std::filesystem::path> user_folder(const char* own, const char* xdg, const char* below_home) {
    if (const std::string value = variable(own); !value.empty()) {
        std::error_code error;
        auto path = std::filesystem::absolute(value, error);
        if (error) return error_from_errno(error.value(), own, "set it to an absolute path");
        return path.lexically_normal();
    }
    if (const std::string value = variable(xdg); value.starts_with('/')) return std::filesystem::path(value) / "1bit";
    if (const std::string value = home(); value.starts_with('/')) {
        return std::filesystem::path(value) / below_home / "1bit";
    }
    return Error{ErrorCode::io, own, "a folder of the user", "neither HOME nor a home folder in the user database",
                 std::string("set ") + own + " to a folder"};
}

int make_folders(const std::filesystem::path& path) {
    if (::mkdir(path.c_str(), 0700) == 0 || errno == EEXIST) return 0;
    if (errno != ENOENT) return errno;
    const auto parent = path.has_filename() ? path.parent_path() : path.parent_path().parent_path();
    if (parent.empty() || parent == path) return ENOENT;
    if (const int reason = make_folders(parent); reason != 0) return reason;
    return ::mkdir(path.c_str(), 0700) == 0 || errno == EEXIST ? 0 : errno;
}

}  // namespace

Result<UniqueFd> open_private_folder(const std::filesystem::path& path) {
    const auto failed = [&](int reason) {
        Error error = error_from_errno(reason, path.string(), "make this folder, or name another one");
        // a folder that cannot be made because a part of its path is missing is no missing answer
        if (error.code == ErrorCode::not_found) error.code = ErrorCode::io;
        error.expected = "a folder that can be written to";
        return error;
    };
    if (path.empty() || path.native().find('\0') != std::string::npos) return failed(EINVAL);
    if (const int reason = make_folders(path); reason != 0) return failed(reason);
    UniqueFd fd(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (!fd) return failed(errno);
    struct stat status {};
    if (::fstat(fd.get(), &status) != 0) return failed(errno);
    if (status.st_uid != ::geteuid()) {
        return Error{ErrorCode::conflict, path.string(), "a folder of user " + std::to_string(::geteuid()),
                     "one of user " + std::to_string(status.st_uid), "name another folder, or change its owner"};
    }
    if (status.st_mode & (S_IWGRP | S_IWOTH)) {
        return Error{ErrorCode::conflict, path.string(), "a folder that only its owner may write to",
                     "one that others may write to", "empty it if you do not know why, then chmod 700 it"};
    }
    return fd;
}

Result<std::filesystem::path> cache_folder() {
    auto path = user_folder("ONEBIT_CACHE", "XDG_CACHE_HOME", ".cache");
    if (!path) return path;
    if (auto fd = open_private_folder(*path); !fd) return std::move(fd).error();
    return path;
}

Result<std::filesystem::path> models_folder() {
    auto path = user_folder("ONEBIT_MODELS", "XDG_DATA_HOME", ".local/share");
    if (path && variable("ONEBIT_MODELS").empty()) return *path / "models";
    return path;
}

}  // namespace onebit
