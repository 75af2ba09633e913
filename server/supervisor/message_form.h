// The messages and tools of a request, brought into the form in which llama.cpp reads them.
#pragma once

#include "base/result.h"
#include "server/supervisor/json_edits.h"
#include "server/supervisor/request_route.h"

namespace onebit {

// Null members of messages, parts of their content, tool calls and tools are taken out, for llama.cpp takes them for
// text; `content` of a message may be null. Error usage naming the field where llama.cpp would stop without naming it
// (a role, type, name, text or arguments that is not there) or leave something out of account: an old function_call,
// content of the Messages API other than text, thinking, images, calls and results of tools, and that API's tools that
// a server would have to run. What is of another kind than expected is left for check_fields() and the engine.
// Sources: tools/server/server-chat.cpp, common/chat.cpp.
Result<void> rewrite_messages(const JsonView& messages, JsonEdits& edits);  // of chats
Result<void> rewrite_blocks(const JsonView& messages, JsonEdits& edits);    // of the Messages API
Result<void> rewrite_tools(RequestRoute route, const JsonView& tools, JsonEdits& edits);

}  // namespace onebit
