// Says in the fields that llama.cpp reads what a request says in others', so that clients of any API are understood.
#pragma once

#include <optional>
#include <string>

#include "base/result.h"
#include "server/supervisor/json_view.h"
#include "server/supervisor/request_route.h"

namespace onebit {

struct RewrittenRequest {
    std::optional<std::string> body;  // what to send instead; unset: the body is right as it is
    bool must_call = false;           // the answer must be a call of a tool
    std::string form;                 // the field that json_schema or grammar of the new body comes from; empty: none
};

// body: an object. What is rewritten: fields that are null are left out, on every route, and in messages, items, tools
// and calls of tools too (message_form.h, input_items.h); the choice of tools (tool_choice.h); forms of the answer
// (constraint_names.h); stop strings that are empty, and top_logprobs of 0 without logprobs, are left out. Error usage
// for what these refuse, and for what llama.cpp would pass over (ignored_fields.h). Fields that check_fields() demands
// are left to it. Pure; cost: about 1 ns per byte of the body, and a copy of a body that changes.
Result<RewrittenRequest> rewrite_request(RequestRoute route, const JsonView& body);

}  // namespace onebit
