#include "app/chat_client.h"

#include <nlohmann/json.hpp>

#include "server/supervisor/engine_client.h"

namespace onebit {
namespace {

using Json = nlohmann::json;

constexpr std::chrono::milliseconds kLook{100};
constexpr size_t kMostErrorBytes = 1 << 20;

Error gone(const std::string& found) {
    return {ErrorCode::unavailable, "engine", "an answer to its end", found,
            "run it again; 1bit doctor looks for causes"};
}

std::string text_of(const Json& object, const char* key) {
    auto found = object.find(key);
    return found != object.end() && found->is_string() ? found->get<std::string>() : "";
}

double number_of(const Json& object, const char* key) {
    auto found = object.find(key);
    return found != object.end() && found->is_number() ? found->get<double>() : 0;
}

const Json& object_of(const Json& object, const char* key) {
    static const Json kEmpty = Json::object();
    auto found = object.find(key);
    return found != object.end() && found->is_object() ? *found : kEmpty;
}

Error from_object(int status, const Json& error) {
    uint64_t prompt = uint64_t(number_of(error, "n_prompt_tokens")), context = uint64_t(number_of(error, "n_ctx"));
    if (text_of(error, "type") == "exceed_context_size_error")
        return {ErrorCode::invalid, "prompt", "at most " + std::to_string(context) + " tokens, the size of the context",
                std::to_string(prompt) + " tokens", "raise --ctx-size if the model allows it, or shorten the prompt"};
    std::string message = text_of(error, "message");
    ErrorCode code = status == 503 ? ErrorCode::unavailable : status >= 500 ? ErrorCode::internal : ErrorCode::invalid;
    return {code, "engine", "an answer", message.empty() ? "status " + std::to_string(status) : message, ""};
}

}  // namespace

Result<std::string> chat_body(const ChatRequest& request) try {
    Json messages = Json::array();
    for (const ChatMessage& message : request.messages)
        messages.push_back({{"role", message.role}, {"content", message.content}});
    Json body = {{"messages", std::move(messages)}, {"stream", true}, {"stream_options", {{"include_usage", true}}}};
    if (request.temperature) body["temperature"] = *request.temperature;
    if (request.max_tokens) body["max_tokens"] = *request.max_tokens;
    if (request.seed) body["seed"] = *request.seed;
    return body.dump();
} catch (const Json::exception&) {
    return Error{ErrorCode::usage, "prompt", "text in UTF-8", "bytes that are none", "convert it, with iconv say"};
}

std::vector<std::string> EventReader::feed(std::string_view bytes) {
    std::vector<std::string> events;
    for (char c : bytes) {
        if (c != '\n') {
            line_ += c;
            continue;
        }
        if (!line_.empty() && line_.back() == '\r') line_.pop_back();
        if (line_.empty()) {
            if (!data_.empty()) events.push_back(std::move(data_));
            data_.clear();
        } else if (line_.starts_with("data:")) {
            if (!data_.empty()) data_ += '\n';
            data_ += line_.substr(line_.size() > 5 && line_[5] == ' ' ? 6 : 5);
        }
        line_.clear();
    }
    return events;
}

Result<void> add_event(const std::string& data, ChatAnswer& answer, const OnText& on_text) {
    if (data == "[DONE]") return {};
    Json event = Json::parse(data, nullptr, false);
    if (!event.is_object()) return gone("an event that is no JSON");
    if (event.contains("error") && event["error"].is_object())
        return from_object(int(number_of(event["error"], "code")), event["error"]);
    if (auto choices = event.find("choices"); choices != event.end() && choices->is_array() && !choices->empty()) {
        const Json& choice = choices->front();
        if (!choice.is_object()) return gone("an event of another kind");
        const Json& delta = object_of(choice, "delta");
        std::string text = text_of(delta, "content"), reasoning = text_of(delta, "reasoning_content");
        answer.text += text;
        answer.reasoning += reasoning;
        if ((!reasoning.empty() && !on_text(reasoning, true)) || (!text.empty() && !on_text(text, false)))
            return Error{ErrorCode::cancelled, "answer", "", "stopped by its reader", ""};
        if (std::string reason = text_of(choice, "finish_reason"); !reason.empty()) answer.finish_reason = reason;
    }
    if (const Json& usage = object_of(event, "usage"); !usage.empty()) {
        answer.prompt_tokens = uint64_t(number_of(usage, "prompt_tokens"));
        answer.generated_tokens = uint64_t(number_of(usage, "completion_tokens"));
        answer.cached_tokens = uint64_t(number_of(object_of(usage, "prompt_tokens_details"), "cached_tokens"));
    }
    if (const Json& timings = object_of(event, "timings"); !timings.empty()) {
        answer.prompt_ms = number_of(timings, "prompt_ms");
        answer.generated_ms = number_of(timings, "predicted_ms");
    }
    return {};
}

Error engine_error(int status, const std::string& body) {
    Json json = Json::parse(body, nullptr, false);
    return from_object(status, json.is_object() ? object_of(json, "error") : Json::object());
}

Result<ChatAnswer> chat(const std::filesystem::path& socket, const ChatRequest& request, const OnText& on_text,
                        const std::atomic<bool>& cancel) try {
    Result<std::string> body = chat_body(request);
    if (!body) return body.error();
    std::string head =
        "POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
        "Content-Type: application/json\r\nContent-Length: " +
        std::to_string(body->size()) + "\r\n\r\n";
    EngineExchange exchange;
    if (exchange.send(socket, head, *body) != EngineIo::ok) return gone("no connection");

    ChatAnswer answer;
    EngineResponseHead response;
    EngineIo io = EngineIo::timeout;
    while (io == EngineIo::timeout && !cancel) io = exchange.read_head(response, kLook);
    EventReader reader;
    std::string error_body;
    char piece[16384];
    bool stopped = false;
    while (!cancel && !stopped && (io == EngineIo::ok || io == EngineIo::timeout)) {
        size_t count = 0;
        io = exchange.read_body(piece, count, kLook);
        if (io != EngineIo::ok) continue;
        if (response.status != 200) {
            if (error_body.size() < kMostErrorBytes) error_body.append(piece, count);
            continue;
        }
        for (const std::string& data : reader.feed({piece, count})) {
            Result<void> added = add_event(data, answer, on_text);
            if (!added && added.error().code != ErrorCode::cancelled) return added.error();
            stopped = stopped || !added;
        }
    }
    if (cancel || stopped) {
        answer.finish_reason = "cancelled";
        return answer;
    }
    if (response.status == 0) return gone("no answer");
    if (response.status != 200) return engine_error(response.status, error_body);
    if (io != EngineIo::end || answer.finish_reason.empty()) return gone("the end of its connection");
    return answer;
} catch (const std::exception& error) {
    return Error{ErrorCode::internal, "chat", "an answer", error.what(), ""};
}

}  // namespace onebit
