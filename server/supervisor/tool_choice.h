// tool_choice: which tools a request lets the model call, said in the words that llama.cpp reads.
#pragma once

#include "base/result.h"
#include "server/supervisor/json_edits.h"
#include "server/supervisor/request_members.h"
#include "server/supervisor/request_route.h"

namespace onebit {

// llama.cpp reads auto, none and required, takes anything else for auto, and knows no name. So a choice that names
// tools leaves those alone in the list and becomes `required` (or `auto`, where allowed_tools says so); `any` becomes
// `required`; `none` of the Messages API, which llama.cpp takes for auto there, takes the tools out.
// The value: whether the answer must be a call of a tool. Error usage naming the field: a form that no API has, a name
// that is not in `tools`, a call that is required where there are no tools.
Result<bool> rewrite_tool_choice(RequestRoute route, const RequestMembers& members, JsonEdits& edits);

}  // namespace onebit
