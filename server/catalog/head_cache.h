// What the catalog needs of a GGUF head, kept in memory by the file's path, identity, size and times.
#pragma once

#include <sys/stat.h>

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "base/result.h"

namespace onebit {

enum class GgufRole { model, projector, other };  // other: adapters, importance matrices, vocabularies

struct HeadSummary {
    std::optional<Error> error;  // of reading the head; the rest is empty then
    GgufRole role = GgufRole::other;
    std::string architecture, name, quantization;
    uint64_t context_length = 0, parameters = 0;
    uint64_t tensors = 0, tensors_of_all_shards = 0;  // the latter 0 when the head does not say
    uint16_t split_no = 0, split_count = 1;
};

// status: of the file, following links. Reads the file only when it has not been read in this state before.
// Safe from any thread.
std::shared_ptr<const HeadSummary> head_summary(const std::filesystem::path& file, const struct stat& status);

// How often a file was read so far in this process.
uint64_t head_reads();

}  // namespace onebit
