#include "server/supervisor/client_fault.h"

#include <charconv>
#include <nlohmann/json.hpp>

#include "server/supervisor/responses.h"

namespace onebit {
namespace {

using nlohmann::json;

constexpr size_t kMostMessage = 600;

// How messages begin, and where in llama.cpp.
constexpr std::string_view kBegins[] = {
    // a member of the request's JSON: of another type, not there, out of range
    "[json.exception.type_error.302]",
    "[json.exception.type_error.304]",
    "[json.exception.type_error.305]",
    "[json.exception.type_error.306]",
    "[json.exception.out_of_range.401]",
    "[json.exception.out_of_range.403]",
    // tools/server/server-common.cpp
    "\"prompt\" elements must be",
    "\"prompt\" must not be empty",
    "Multimodal data provided, but model does not support",
    "image input is not supported",
    "audio input is not supported",
    "video input is not supported",
    "Failed to load image or audio file",
    "Failed to download image",
    "Invalid base64 value",
    "Cannot use both json_schema and grammar",
    "tools param requires",
    "tool_choice param requires",
    // tools/server/server-chat.cpp, server-context.cpp
    "'messages' is required",
    "for mtmd, input prompt must be a string",
    // common/chat.cpp
    "Failed to parse messages: ",
    "Failed to parse tools: ",
    "Failed to parse tool call arguments as JSON",
    // common/json-schema.cpp
    "JSON schema error at ",
    "Unknown reasoning format: ",
    "Cannot specify grammar with tools",
    "Cannot specify both content and content_parts",
};

// What a chat template says with raise_exception() of the messages, inside llama.cpp's report of where.
constexpr std::string_view kTemplate = "Jinja Exception: ";

// server-context.cpp: "input (N tokens) is too large to process. increase the physical batch size (current batch size:
// M)"
struct TooLarge {
    uint64_t tokens = 0, batch = 0;
};

bool take(std::string_view& text, std::string_view part) {
    if (!text.starts_with(part)) return false;
    text.remove_prefix(part.size());
    return true;
}

bool take(std::string_view& text, uint64_t& number) {
    auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (code != std::errc()) return false;
    text.remove_prefix(static_cast<size_t>(end - text.data()));
    return true;
}

std::optional<TooLarge> too_large(std::string_view text) {
    TooLarge found;
    const bool all = take(text, "input (") && take(text, found.tokens) &&
                     take(text,
                          " tokens) is too large to process. increase the physical batch size "
                          "(current batch size: ") &&
                     take(text, found.batch) && text == ")";
    return all ? std::optional(found) : std::nullopt;
}

bool begins_as_known(std::string_view message) {
    for (std::string_view begin : kBegins)
        if (message.starts_with(begin)) return true;
    return false;
}

std::string shortened(std::string message) {
    // what follows repeats all of the request's tools
    if (size_t rest = message.find("; tools = "); rest != std::string::npos) message.resize(rest);
    if (message.size() > kMostMessage) {
        message.resize(kMostMessage);
        message += "...";
    }
    return message;
}

}  // namespace

std::optional<std::string> client_fault(std::string_view path, std::string_view body) try {
    const json answer = json::parse(body, nullptr, false);
    if (!answer.is_object() || !answer.contains("error") || !answer["error"].is_object()) return {};
    const auto found = answer["error"].find("message");
    if (found == answer["error"].end() || !found->is_string()) return {};
    const std::string& message = found->get_ref<const std::string&>();
    if (auto sizes = too_large(message)) {
        json error = {{"message", "input: expected at most " + std::to_string(sizes->batch) +
                                      " tokens, the physical batch, found " + std::to_string(sizes->tokens) +
                                      "; send less, or start the model with a larger --ubatch-size"},
                      {"type", "exceed_context_size_error"},
                      {"code", 400},
                      {"n_prompt_tokens", sizes->tokens},
                      {"n_ubatch", sizes->batch}};
        return json{{"error", std::move(error)}}.dump();
    }
    if (begins_as_known(message)) return error_body(400, error_type(400), shortened(message));
    if (const size_t said = message.find(kTemplate); said != std::string::npos)
        return error_body(400, error_type(400), "chat template: " + shortened(message.substr(said + kTemplate.size())));
    // ids of tokens that the vocabulary does not have
    if (path.ends_with("/detokenize") && message.find("_M_range_check") != std::string::npos)
        return error_body(400, error_type(400), "field 'tokens': expected ids of the model's tokens, found another");
    return {};
} catch (const std::exception&) {
    return {};
}

void say_our_option(std::string& body) try {
    constexpr std::string_view kStart = "Start it with `", kVectors = "--embeddings --pooling mean";
    json answer = json::parse(body, nullptr, false);
    if (!answer.is_object() || !answer["error"].is_object() || !answer["error"]["message"].is_string()) return;
    const std::string message = answer["error"]["message"];
    const auto how = [](const std::string& option) {
        return "start it with 1bit serve MODEL -- " + option + ", or with that in its arguments in onebit.yaml";
    };
    // tools/server/server-context.cpp
    if (message.starts_with("Pooling type 'none' is not OAI compatible")) {
        answer["error"]["message"] =
            "this model was started without a pooling that makes one vector of a text; " + how(std::string(kVectors));
        body = answer.dump();
        return;
    }
    const size_t start = message.find(kStart);
    if (start == std::string::npos) return;
    const size_t begin = start + kStart.size(), end = message.find('`', begin);
    if (end == std::string::npos) return;
    const std::string option = message.substr(begin, end - begin);
    // a model for text has no pooling of its own, without which OpenAI's route has nothing to answer
    answer["error"]["message"] = "this model was started without " + option + "; " +
                                 how(option == "--embeddings" ? std::string(kVectors) : option);
    body = answer.dump();
} catch (const std::exception&) {
}

}  // namespace onebit
