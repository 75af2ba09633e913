// Refuses, before it is forwarded, a request whose schema or grammar the engine would not obey without telling.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace onebit {

// body: a JSON object, as scan_request_body() has seen it. Only the routes that generate are looked at: chat,
// completions, responses and messages. Error usage naming the field's path, what was expected and found:
//  - a schema with a `pattern` that makes no grammar, in response_format, json_schema, text.format or the tools
//    ("strict": false beside the schema, or tool_choice "none", says that it need not be obeyed)
//  - response_format, json_schema, grammar, text.format of a wrong type, or where the route does not know them
//  - a schema and a grammar at once
// The value, if there is one, is the body to send instead: text.format of /v1/responses, which llama.cpp drops, becomes
// the response_format that it obeys.
Result<std::optional<std::string>> check_request(std::string_view path, std::string_view body);

// Whether a body with such a top-level key, or such a key anywhere, is worth the parsing that check_request() does.
bool checked_top_level_key(std::string_view key);
bool checked_key(std::string_view key);

}  // namespace onebit
