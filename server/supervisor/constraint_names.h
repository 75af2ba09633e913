// How other servers' clients ask for a form of the answer: the same in llama.cpp's fields.
#pragma once

#include <string>

#include "base/result.h"
#include "server/supervisor/json_edits.h"
#include "server/supervisor/request_members.h"
#include "server/supervisor/request_route.h"

namespace onebit {

// guided_json, guided_choice and guided_grammar, structured_outputs with json, choice, grammar or json_object (vLLM),
// ebnf (SGLang) and format (Ollama) become json_schema or grammar; llama.cpp would pass over them. The value is the
// field that asked, empty for none. Error usage naming the field: a wrong form, a regular expression (llama.cpp holds
// no plain text to one), a grammar in another notation than GBNF, a second field that asks, a route that knows none.
Result<std::string> rewrite_constraint(RequestRoute route, const RequestMembers& members, JsonEdits& edits);

}  // namespace onebit
