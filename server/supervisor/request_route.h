// Which kind of request a path takes, for the checks of bodies: the fields that a body may have depend on it.
#pragma once

#include <string_view>

namespace onebit {

// One bit each, so that a table can name several.
enum RequestRoute : unsigned {
    kChatRoute = 1,
    kCompletionRoute = 2,
    kInfillRoute = 4,
    kResponsesRoute = 8,
    kMessagesRoute = 16,
    kTokenizeRoute = 32,
    kDetokenizeRoute = 64,
    kEmbeddingsRoute = 128,
    kRerankRoute = 256,
    kLoraRoute = 512,
    kOtherRoute = 1024,
    // those whose fields reach the sampler
    kSamplingRoutes = kChatRoute | kCompletionRoute | kInfillRoute | kResponsesRoute,
    kTemplateRoutes = kChatRoute | kResponsesRoute,
    kEveryRoute = 2047,
};

// path: with or without /v1, without a query. Those that only count tokens or only lay out a prompt are as the route
// that would generate from it.
RequestRoute request_route(std::string_view path);

}  // namespace onebit
