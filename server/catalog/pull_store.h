// The folder of one repository below ours: who may write to it, what is in it, and how a set of files appears in it.
#pragma once

#include <atomic>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/unique_fd.h"
#include "server/catalog/pull_select.h"

namespace onebit {

// Beside FILE while it is downloaded.
std::filesystem::path partial_of(const std::filesystem::path& file);

// What FILE.partial is a piece of, kept in FILE.partial.json.
struct PartialRecord {
    std::string etag, sha256;
    uint64_t size = 0;
    bool verified = false;  // whole, synced to disk, and its digest fits
    bool describes(const HubFile& file) const {
        return etag == file.etag && sha256 == file.sha256 && size == file.size;
    }
};
std::optional<PartialRecord> read_partial_record(const std::filesystem::path& file);  // nothing: none, or damaged
Result<void> write_partial_record(const std::filesystem::path& file, const PartialRecord& record);
// The partial and its record.
void remove_partial(const std::filesystem::path& file);

// The right to write to one repository's folder, held by one pull at a time over all processes. The kernel frees it
// when the holder dies, so that a lock file left behind never blocks.
class PullLock {
public:
    // Makes the folder if missing and waits for another holder, with one log line. Errors io, no_space, cancelled.
    static Result<PullLock> acquire(const std::filesystem::path& folder, const std::atomic<bool>* cancel);
    PullLock(PullLock&&) noexcept = default;
    PullLock& operator=(PullLock&&) = delete;
    ~PullLock();  // removes the lock file, and the folders above it that are empty

private:
    PullLock(std::filesystem::path folder, UniqueFd fd) : folder_(std::move(folder)), fd_(std::move(fd)) {}
    std::filesystem::path folder_;
    UniqueFd fd_;
};

// What was pulled into the folder: by path in the repository.
struct PullRecord {
    std::string revision;
    std::string projector;  // path of the mmproj file of the last pull, or empty
    std::map<std::string, HubFile> files;
};
PullRecord read_pull_record(const std::filesystem::path& folder);  // empty: none, or damaged

// The file is here and is what the hub has now: by the record, by the name of a Hugging Face blob, else by its digest.
bool is_current(const std::filesystem::path& path, const HubFile& file, const PullRecord& record);

// Renames each verified partial to its name and adds it to the record. A crash in between is made good by
// finish_publishing: no set stays half old and half new. Hold the lock.
Result<void> publish_partials(const std::filesystem::path& folder, const std::vector<HubFile>& files,
                              const std::string& revision, const std::string& projector);
bool publishing_unfinished(const std::filesystem::path& folder);
Result<void> finish_publishing(const std::filesystem::path& folder);

// Error no_space with both numbers when the file system of folder has less than bytes free.
Result<void> check_disk_space(const std::filesystem::path& folder, uint64_t bytes);

}  // namespace onebit
