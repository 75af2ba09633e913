#include "server/supervisor/known_routes.h"

#include <unordered_map>

#include "server/supervisor/web_page.h"

namespace onebit {
namespace {

constexpr std::string_view kGet = "GET, HEAD", kPost = "POST", kGetAndPost = "GET, HEAD, POST";

// tools/server/server.cpp of llama.cpp registers the paths that are not our own.
const std::unordered_map<std::string_view, std::string_view>& known() {
    static const std::unordered_map<std::string_view, std::string_view> kKnown = {
        {"/onebit/ps", kGet},
        {"/onebit/load", kPost},
        {"/onebit/unload", kPost},
        {"/onebit/reload", kPost},
        {"/health", kGet},
        {"/v1/health", kGet},
        {"/metrics", kGet},
        {"/models", kGet},
        {"/v1/models", kGet},
        {"/slots", kGet},
        {"/props", kGetAndPost},
        {"/lora-adapters", kGetAndPost},
        {"/tools", kGetAndPost},
        {"/cors-proxy", kGetAndPost},
        {"/v1/stream", "GET, HEAD, DELETE"},
        {"/v1/streams/lookup", kPost},
        {"/completion", kPost},
        {"/completions", kPost},
        {"/v1/completions", kPost},
        {"/chat/completions", kPost},
        {"/v1/chat/completions", kPost},
        {"/v1/chat/completions/control", kPost},
        {"/chat/completions/input_tokens", kPost},
        {"/v1/chat/completions/input_tokens", kPost},
        {"/responses", kPost},
        {"/v1/responses", kPost},
        {"/responses/input_tokens", kPost},
        {"/v1/responses/input_tokens", kPost},
        {"/v1/messages", kPost},
        {"/v1/messages/count_tokens", kPost},
        {"/v1/audio/transcriptions", kPost},
        {"/audio/transcriptions", kPost},
        {"/infill", kPost},
        {"/embedding", kPost},
        {"/embeddings", kPost},
        {"/v1/embeddings", kPost},
        {"/rerank", kPost},
        {"/reranking", kPost},
        {"/v1/rerank", kPost},
        {"/v1/reranking", kPost},
        {"/tokenize", kPost},
        {"/detokenize", kPost},
        {"/apply-template", kPost},
    };
    return kKnown;
}

}  // namespace

std::string_view model_of_path(std::string_view path) {
    for (const std::string_view list : {"/v1/models/", "/models/"})
        if (path.starts_with(list)) return path.substr(list.size());
    return {};
}

std::string_view methods_of(std::string_view path) {
    if (const auto found = known().find(path); found != known().end()) return found->second;
    if (!model_of_path(path).empty()) return kGet;
    constexpr std::string_view kSlot = "/slots/";
    if (path.starts_with(kSlot) && path.size() > kSlot.size() && path.find('/', kSlot.size()) == std::string_view::npos)
        return kPost;
    return is_web_page_file(path) ? kGet : std::string_view();
}

bool is_surely_unknown(std::string_view path) {
    for (const std::string_view api : {"/v1/responses/", "/v1/messages/", "/v1/chat/completions/", "/onebit/"})
        if (path.starts_with(api)) return methods_of(path).empty();
    return false;
}

bool has_method(std::string_view methods, std::string_view method) {
    for (size_t at = methods.find(method); at != std::string_view::npos; at = methods.find(method, at + 1)) {
        const size_t end = at + method.size();
        if ((at == 0 || methods[at - 1] == ' ') && (end == methods.size() || methods[end] == ','))
            return !method.empty();
    }
    return false;
}

}  // namespace onebit
