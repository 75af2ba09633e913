#include "server/supervisor/request_route.h"

namespace onebit {

RequestRoute request_route(std::string_view path) {
    if (path.starts_with("/v1/")) path.remove_prefix(3);
    for (std::string_view tail : {"/input_tokens", "/count_tokens"})
        if (path.ends_with(tail)) path.remove_suffix(tail.size());
    struct Entry {
        std::string_view path;
        RequestRoute route;
    };
    static constexpr Entry kRoutes[] = {
        {"/chat/completions", kChatRoute},  {"/apply-template", kChatRoute},   {"/completion", kCompletionRoute},
        {"/completions", kCompletionRoute}, {"/infill", kInfillRoute},         {"/responses", kResponsesRoute},
        {"/messages", kMessagesRoute},      {"/tokenize", kTokenizeRoute},     {"/detokenize", kDetokenizeRoute},
        {"/embedding", kEmbeddingsRoute},   {"/embeddings", kEmbeddingsRoute}, {"/rerank", kRerankRoute},
        {"/reranking", kRerankRoute},       {"/lora-adapters", kLoraRoute},
    };
    for (const Entry& entry : kRoutes)
        if (entry.path == path) return entry.route;
    return kOtherRoute;
}

}  // namespace onebit
