// The input of /v1/responses, brought into the form in which llama.cpp reads it.
#pragma once

#include "base/result.h"
#include "server/supervisor/json_edits.h"

namespace onebit {

// input: a list of items, or anything else, which is left for check_fields(). Null members are taken out, and reasoning
// without text (what OpenAI's own models encrypt); an assistant's message gets its type, a refusal becomes text. Error
// usage naming the field for items that llama.cpp does not know: references to earlier ones, since no answer is kept,
// and those of tools that a server would have to run. Source: server_chat_convert_responses_to_chatcmpl() of
// tools/server/server-chat.cpp.
Result<void> rewrite_input(const JsonView& input, JsonEdits& edits);

}  // namespace onebit
