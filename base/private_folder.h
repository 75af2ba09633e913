// Folders that nobody but the user may write to.
#pragma once

#include <filesystem>

#include "base/result.h"
#include "base/unique_fd.h"

namespace onebit {

// Opens the folder, making it and those above it with mode 0700 where they are missing. Error io when it cannot be
// made or opened, conflict when it belongs to another user or its group or others may write to it.
Result<UniqueFd> open_private_folder(const std::filesystem::path& path);

}  // namespace onebit
