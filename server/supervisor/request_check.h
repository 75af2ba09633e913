// Refuses, before it is forwarded, a request that the engine would misread, not obey without telling, or not survive.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace onebit {

struct CheckedRequest {
    std::optional<std::string> body;  // to send instead, if there is one
    bool must_call = false;           // the answer shall be a call of a tool, which the model's template must know
    std::string loosened;             // the first pattern that stands for any string, where loose_patterns allows it
};

// body: as scan_request_body() has accepted it. What rewrite_request() says differently, and text.format, which
// llama.cpp drops and which becomes the response_format that it obeys, are in the body to send instead. Error usage
// naming the field's path, what was expected and found:
//  - what rewrite_request() and check_fields() refuse
//  - a schema with a `pattern` that makes no grammar, in response_format, json_schema, text.format or the tools
//    ("strict": false beside the schema, or tool_choice "none", says that it need not be obeyed), and other schemas
//    that check_schema() refuses
//  - tokens that a logit_bias rules out altogether together with a grammar, a schema or tools
//  - more markers of special tokens than check_markers() takes
//  - response_format, json_schema, grammar, text.format of a wrong type, or where the route does not know them
//  - a schema and a grammar at once, and a grammar that check_grammar() refuses
// Cost: about 4 ns per byte, and what schemas, tools and grammars take to be read.
// loose_patterns: a pattern that makes no grammar is no error anywhere, it stands for any string.
Result<CheckedRequest> check_request(std::string_view path, std::string_view body, bool loose_patterns = false);

}  // namespace onebit
