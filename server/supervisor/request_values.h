// The fields of requests that are lists, or of more than one type: what each may hold.
#pragma once

#include <string>

#include "base/result.h"
#include "server/supervisor/json_view.h"

namespace onebit {

// Each: error usage naming the place at or below path, as check_fields() does. The limits of sizes are far above what
// clients send, and low enough for the engine to get through in about a second.
Result<void> check_stop(const JsonView& value, const std::string& path);
Result<void> check_stream_options(const JsonView& value, const std::string& path);
Result<void> check_response_fields(const JsonView& value, const std::string& path);
Result<void> check_dry_sequence_breakers(const JsonView& value, const std::string& path);
Result<void> check_samplers(const JsonView& value, const std::string& path);
Result<void> check_logit_bias(const JsonView& value, const std::string& path);
// Whether a logit_bias that check_logit_bias() has taken rules tokens out altogether.
bool bans_tokens(const JsonView& logit_bias);
Result<void> check_lora(const JsonView& value, const std::string& path);
Result<void> check_grammar_triggers(const JsonView& value, const std::string& path);
Result<void> check_preserved_tokens(const JsonView& value, const std::string& path);
Result<void> check_tags(const JsonView& value, const std::string& path);
Result<void> check_delimiters(const JsonView& value, const std::string& path);
Result<void> check_messages(const JsonView& value, const std::string& path);
Result<void> check_input(const JsonView& value, const std::string& path);  // of /v1/responses
Result<void> check_continuation(const JsonView& value, const std::string& path);
Result<void> check_tool_choice(const JsonView& value, const std::string& path);
Result<void> check_reasoning_format(const JsonView& value, const std::string& path);
Result<void> check_encoding_format(const JsonView& value, const std::string& path);
Result<void> check_prompt(const JsonView& value, const std::string& path);
Result<void> check_tokens_or_text(const JsonView& value, const std::string& path);
Result<void> check_tokens(const JsonView& value, const std::string& path);
Result<void> check_documents(const JsonView& value, const std::string& path);
// What the engine keeps for itself, and believes without looking.
Result<void> refuse_internal(const JsonView& value, const std::string& path);

}  // namespace onebit
