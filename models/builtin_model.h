// Where the model lies that 1bit serves when none is named.
#pragma once

#include <filesystem>
#include <string_view>

#include "base/result.h"

namespace onebit {

// The file of the built-in model: $ONEBIT_BUILTIN_MODEL when that is set and not empty, else the model in
// ../share/1bit/models as seen from the folder of the running program, else the one of the source folder that it was
// built from. Error not_found, naming every place that was looked at, when there is no regular file; a model that
// $ONEBIT_BUILTIN_MODEL names is never replaced by another. Safe from any thread while nobody changes the environment.
Result<std::filesystem::path> builtin_model();

// The same search with its places given. named: may be empty. program_folder, source_folder: may be empty paths.
Result<std::filesystem::path> find_builtin_model(std::string_view named, const std::filesystem::path& program_folder,
                                                 const std::filesystem::path& source_folder);

}  // namespace onebit
