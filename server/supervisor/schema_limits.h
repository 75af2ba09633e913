// How large a JSON schema, or all schemas of a request, may be for the engine to make a grammar of it in about a
// second.
#pragma once

#include <cstddef>
#include <string>

#include <nlohmann/json_fwd.hpp>

#include "base/result.h"

namespace onebit {

constexpr size_t kMostAlternatives = 4000;       // of an enum, a oneOf, an anyOf
constexpr size_t kMostOptionalProperties = 500;  // the engine's work grows with the third power of it
constexpr size_t kMostNameBytes = 1024;          // of a property: a regular expression goes through it on the stack
constexpr size_t kMostReferenceBytes = 4096;     // of a $ref, likewise
constexpr size_t kMostPatternBytes = 16'384;
constexpr double kMostLeads = 100'000;  // ways through alternatives that begin with others

// What the schemas of one request add up to. Each call adds and gives error usage naming path when that is too much.
class SchemaTotals {
public:
    Result<void> rule(const std::string& path);                   // one more node, whose rule is named after its path
    Result<void> repetitions(size_t n, const std::string& path);  // rules that a count makes
    Result<void> pattern(const std::string& path);                // the engine copies all rules at each

private:
    size_t rules_ = 0, name_bytes_ = 0, repetitions_ = 0, copies_ = 0;
};

// minItems and maxItems, or minLength and maxLength: error usage when they are no counts of 32 bits, or the least is
// above the most, which the engine would write out for ever.
Result<void> check_counts(const nlohmann::json& schema, const char* least, const char* most, const std::string& path,
                          SchemaTotals& totals);

// minimum, maximum, exclusiveMinimum and exclusiveMaximum of integers: error usage for what is beyond 64 bits, for a
// least above the most, and for a bound of more than 15 digits that stands alone away from 0: the engine counts digits
// below nothing there, and writes them out for ever.
Result<void> check_bounds(const nlohmann::json& schema, const std::string& path);

}  // namespace onebit
