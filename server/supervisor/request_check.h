// Refuses, before it is forwarded, a request that the engine would misread, not obey without telling, or not survive.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace onebit {

// body: as scan_request_body() has accepted it. Error usage naming the field's path, what was expected and found:
//  - what check_fields() refuses
//  - a schema with a `pattern` that makes no grammar, in response_format, json_schema, text.format or the tools
//    ("strict": false beside the schema, or tool_choice "none", says that it need not be obeyed), and other schemas
//    that check_schema() refuses
//  - tokens that a logit_bias rules out altogether together with a grammar, a schema or tools
//  - more markers of special tokens than check_markers() takes
//  - response_format, json_schema, grammar, text.format of a wrong type, or where the route does not know them
//  - a schema and a grammar at once, and a grammar that check_grammar() refuses
// Cost: about 3 ns per byte, and what schemas, tools and grammars take to be read.
// The value, if there is one, is the body to send instead: text.format of /v1/responses, which llama.cpp drops, becomes
// the response_format that it obeys.
Result<std::optional<std::string>> check_request(std::string_view path, std::string_view body);

}  // namespace onebit
