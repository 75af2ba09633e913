// Fields of other servers' APIs that llama.cpp passes over, although the answer would have to be another one.
#pragma once

#include "base/result.h"
#include "server/supervisor/request_members.h"
#include "server/supervisor/request_route.h"

namespace onebit {

// Error usage naming the field, unless its value asks for what is answered anyway:
//  - of completions: echo, suffix, best_of above n
//  - of chats: functions and function_call (OpenAI's before tools), sound as an answer, web_search_options
//  - of both: prompt_logprobs, use_beam_search (vLLM)
//  - of /v1/responses: conversation, background, prompt
//  - of /v1/messages: mcp_servers, container
Result<void> check_ignored(RequestRoute route, const RequestMembers& members);

}  // namespace onebit
