// Finds in a JSON schema what the engine would leave out of account without telling, or would not get through.
#pragma once

#include <string>

#include <nlohmann/json_fwd.hpp>

#include "base/result.h"
#include "server/supervisor/schema_limits.h"

namespace onebit {

// path: where the schema stands in the request, such as "response_format.json_schema.schema"; the error names the place
// below it. patterns: whether a `pattern` that pattern_fault() refuses is an error, or may be left out of account.
// totals: of all schemas of the request. Error usage for
//  - such a pattern, and one whose grammar check_grammar() refuses;
//  - schemas that lead to each other through more than 256 steps, or in more ways than the engine can try;
//  - numbers of properties, alternatives and counts that schema_limits.h bounds, and names longer than there;
//  - bounds of integers and counts of which the engine makes a grammar that has no end.
// Only what the engine reads is looked at: it goes from a schema to its parts as build_node() of the pinned llama.cpp's
// common/json-schema.cpp does. What is no schema at all is left to the engine, which refuses it.
Result<void> check_schema(const nlohmann::json& schema, const std::string& path, bool patterns, SchemaTotals& totals);

}  // namespace onebit
