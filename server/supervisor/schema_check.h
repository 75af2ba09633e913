// Finds in a JSON schema what the engine would leave out of account without telling.
#pragma once

#include <string>

#include <nlohmann/json_fwd.hpp>

#include "base/result.h"

namespace onebit {

// path: where the schema stands in the request, such as "response_format.json_schema.schema"; the error names the place
// below it. Error usage for a `pattern` that pattern_fault() refuses, or for schemas that lead to each other through
// more than 256 steps. Only what the engine reads is looked at: it goes from a schema to its parts as
// build_node() of the pinned llama.cpp's common/json-schema.cpp does. What is no schema at all is left to the engine,
// which refuses it.
Result<void> check_schema(const nlohmann::json& schema, const std::string& path);

}  // namespace onebit
