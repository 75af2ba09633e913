#include "server/catalog/pull_store.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <chrono>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <thread>

#include "base/cache_folder.h"
#include "base/hash.h"
#include "base/log.h"

namespace onebit {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

constexpr const char* kLockName = ".pull.lock";
constexpr const char* kRecordName = ".pull.json";
constexpr const char* kPublishName = ".pull-publish.json";
constexpr uintmax_t kLargestRecord = 16u << 20;

Json read_json(const fs::path& path) {
    std::error_code ignored;
    if (fs::file_size(path, ignored) > kLargestRecord || ignored) return Json();
    std::ifstream stream(path, std::ios::binary);
    const std::string text((std::istreambuf_iterator<char>(stream)), std::istreambuf_iterator<char>());
    Json json = Json::parse(text, nullptr, false);
    return json.is_object() ? json : Json();
}

Result<void> write_json(const fs::path& path, const Json& json) {
    const std::string text = json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
    return publish_file(path, std::as_bytes(std::span(text)), 0644);
}

std::string text_of(const Json& object, const char* key) {
    const auto found = object.find(key);
    return found != object.end() && found->is_string() ? found->get<std::string>() : "";
}

Json to_json(const HubFile& file) { return {{"size", file.size}, {"sha256", file.sha256}, {"etag", file.etag}}; }

// Nothing for a damaged or hostile entry: the record is only a file, which others may have written.
std::optional<HubFile> file_of(const std::string& path, const Json& json) {
    if (!unsafe_path_reason(path).empty() || !json.is_object()) return std::nullopt;
    const auto size = json.find("size");
    if (size == json.end() || !size->is_number_unsigned()) return std::nullopt;
    return HubFile{path, size->get<uint64_t>(), text_of(json, "sha256"), text_of(json, "etag")};
}

Json to_json(const PullRecord& record) {
    Json files = Json::object();
    for (const auto& [path, file] : record.files) files[path] = to_json(file);
    return {{"version", 1}, {"revision", record.revision}, {"projector", record.projector}, {"files", files}};
}

PullRecord record_of(const Json& json) {
    PullRecord record;
    if (!json.is_object()) return record;
    record.revision = text_of(json, "revision");
    record.projector = text_of(json, "projector");
    const auto files = json.find("files");
    if (files == json.end() || !files->is_object()) return record;
    for (const auto& [path, entry] : files->items())
        if (auto file = file_of(path, entry)) record.files.emplace(path, std::move(*file));
    return record;
}

void sync_folder(const fs::path& folder) {
    const UniqueFd fd(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (fd) ::fsync(fd.get());
}

fs::path record_path(const fs::path& file) {
    fs::path path = partial_of(file);
    path += ".json";
    return path;
}

}  // namespace

fs::path partial_of(const fs::path& file) {
    fs::path path = file;
    path += ".partial";
    return path;
}

std::optional<PartialRecord> read_partial_record(const fs::path& file) {
    const Json json = read_json(record_path(file));
    if (!json.is_object()) return std::nullopt;
    const auto size = json.find("size"), verified = json.find("verified");
    if (size == json.end() || !size->is_number_unsigned()) return std::nullopt;
    return PartialRecord{text_of(json, "etag"), text_of(json, "sha256"), size->get<uint64_t>(),
                         verified != json.end() && verified->is_boolean() && verified->get<bool>()};
}

Result<void> write_partial_record(const fs::path& file, const PartialRecord& record) {
    return write_json(
        record_path(file),
        {{"etag", record.etag}, {"sha256", record.sha256}, {"size", record.size}, {"verified", record.verified}});
}

void remove_partial(const fs::path& file) {
    std::error_code ignored;
    fs::remove(partial_of(file), ignored);
    fs::remove(record_path(file), ignored);
}

Result<PullLock> PullLock::acquire(const fs::path& folder, const std::atomic<bool>* cancel) {
    const fs::path path = folder / kLockName;
    for (bool told = false;;) {
        std::error_code error;
        fs::create_directories(folder, error);
        if (error)
            return error_from_errno(error.value(), "models folder " + folder.string(),
                                    "check its permissions or set ONEBIT_MODELS");
        UniqueFd fd(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0644));
        if (!fd) {
            if (errno == ENOENT) continue;  // another pull just removed the empty folder
            return error_from_errno(errno, path.string(), "check its permissions or set ONEBIT_MODELS");
        }
        if (::flock(fd.get(), LOCK_EX | LOCK_NB) == 0) {
            struct stat ours {
            }, named{};
            // the holder before us may have removed the name between our open and our lock
            if (::fstat(fd.get(), &ours) != 0 || ::stat(path.c_str(), &named) != 0 || ours.st_ino != named.st_ino)
                continue;
            const std::string pid = std::to_string(::getpid()) + "\n";
            if (::ftruncate(fd.get(), 0) != 0 || ::pwrite(fd.get(), pid.data(), pid.size(), 0) < 0)
                log_verbose("pull", path.string() + ": cannot write the process id, which is for people only");
            return PullLock(folder, std::move(fd));
        }
        if (errno != EWOULDBLOCK && errno != EINTR) return error_from_errno(errno, path.string(), "");
        if (!std::exchange(told, true)) {
            char pid[24] = {};
            const ssize_t size = ::pread(fd.get(), pid, sizeof pid - 1, 0);
            log_info("pull", folder.string() + ": waiting for the pull of process " +
                                 std::string(pid, size > 0 ? size - (pid[size - 1] == '\n') : 0));
        }
        if (cancel && cancel->load())
            return Error{ErrorCode::cancelled, folder.string(), "", "cancelled while another pull runs", ""};
        std::this_thread::sleep_for(std::chrono::milliseconds(50));
    }
}

PullLock::~PullLock() {
    if (!fd_) return;
    ::unlink((folder_ / kLockName).c_str());
    ::rmdir(folder_.c_str());
    ::rmdir(folder_.parent_path().c_str());
}

PullRecord read_pull_record(const fs::path& folder) { return record_of(read_json(folder / kRecordName)); }

bool is_current(const fs::path& path, const HubFile& file, const PullRecord& record) {
    std::error_code error;
    if (!fs::is_regular_file(path, error) || fs::file_size(path, error) != file.size || error) return false;
    const auto known = record.files.find(file.path);
    if (known != record.files.end()) return known->second.etag == file.etag && known->second.sha256 == file.sha256;
    if (file.sha256.empty()) return false;
    if (fs::is_symlink(path, error) && fs::read_symlink(path, error).filename() == file.sha256) return true;
    const Result<Digest> digest = sha256_file(path);
    return digest.ok() && to_hex(*digest) == file.sha256;
}

Result<void> publish_partials(const fs::path& folder, const std::vector<HubFile>& files, const std::string& revision,
                              const std::string& projector) {
    PullRecord record = read_pull_record(folder);
    record.revision = revision;
    record.projector = projector;
    Json names = Json::array();
    for (const HubFile& file : files) {
        record.files[file.path] = file;
        names.push_back(file.path);
    }
    ONEBIT_RETURN_IF_ERROR(write_json(folder / kPublishName, {{"publish", names}, {"record", to_json(record)}}));
    return finish_publishing(folder);
}

bool publishing_unfinished(const fs::path& folder) {
    std::error_code ignored;
    return fs::exists(folder / kPublishName, ignored);
}

Result<void> finish_publishing(const fs::path& folder) {
    const Json json = read_json(folder / kPublishName);
    if (json.is_object() && json.contains("publish") && json["publish"].is_array()) {
        for (const Json& name : json["publish"]) {
            if (!name.is_string() || !unsafe_path_reason(name.get<std::string>()).empty()) continue;
            const fs::path target = folder / name.get<std::string>();
            const auto partial = read_partial_record(target);
            if (!partial || !partial->verified) continue;  // renamed before the crash
            std::error_code error;
            if (fs::exists(partial_of(target), error)) {
                fs::rename(partial_of(target), target, error);
                if (error)
                    return error_from_errno(error.value(), target.string(), "check the permissions of its folder");
            }
            remove_partial(target);
            sync_folder(target.parent_path());
        }
        if (json.contains("record"))
            ONEBIT_RETURN_IF_ERROR(write_json(folder / kRecordName, to_json(record_of(json["record"]))));
    }
    std::error_code error;
    fs::remove(folder / kPublishName, error);
    if (error) return error_from_errno(error.value(), (folder / kPublishName).string(), "remove it");
    sync_folder(folder);
    return {};
}

Result<void> check_disk_space(const fs::path& folder, uint64_t bytes) {
    struct statvfs file_system {};
    if (::statvfs(folder.c_str(), &file_system) != 0) return error_from_errno(errno, folder.string(), "");
    const uint64_t free = static_cast<uint64_t>(file_system.f_bavail) * file_system.f_frsize;
    if (bytes <= free) return {};
    return Error{ErrorCode::no_space, folder.string(), std::to_string(bytes) + " bytes of free disk",
                 std::to_string(free) + " bytes",
                 "free " + std::to_string(bytes - free) + " bytes, or set ONEBIT_MODELS to another disk"};
}

}  // namespace onebit
