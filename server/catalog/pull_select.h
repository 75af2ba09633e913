// What a reference asks for, and which files of a repository that means. Pure: no disk, no network.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace onebit {

struct PullReference {
    std::string repository;  // ORG/REPO
    std::string quant;       // as written; empty: the default
    std::string file;        // path in the repository; empty: by quant
};

// ORG/REPO, ORG/REPO:QUANT or ORG/REPO/FILE.gguf. Error usage.
Result<PullReference> parse_pull_reference(std::string_view text);

struct HubFile {
    std::string path;    // relative, '/' between folders
    uint64_t size = 0;   // bytes
    std::string sha256;  // 64 lower-case digits, or empty if the hub does not tell
    std::string etag;    // changes whenever the content does
};

struct HubRepository {
    std::string id;        // ORG/REPO as the hub spells it
    std::string revision;  // the commit that the files are of
    std::vector<HubFile> files;
};

// Empty if the path may be made below a folder of ours, else what is wrong with it.
std::string unsafe_path_reason(std::string_view path);

// "Q4_K_M" of "sub/Model-Q4_K_M-00001-of-00003.gguf", upper case; the folder's if the file has none; else empty.
std::string quant_of_path(std::string_view path);

// quant stands in path as a word of its own, without regard to case; '_' may come before it but not after.
bool names_quant(std::string_view path, std::string_view quant);

struct PullSelection {
    std::vector<HubFile> model;        // all shards in order
    std::optional<HubFile> projector;  // F16 if there is a choice
};

// Without a quant: Q4_K_M, then Q8_0, then the only one. Errors: not_found or usage with a list of the quants, invalid
// for a set with a missing shard or an empty file.
Result<PullSelection> select_files(const HubRepository& repository, const PullReference& reference);

}  // namespace onebit
