// Passes one request to an engine and its response back, as the bytes come.
#pragma once

#include <chrono>
#include <memory>
#include <string>

#include <cpp-httplib/httplib.h>

#include "server/supervisor/fatal_requests.h"
#include "server/supervisor/fleet.h"
#include "server/supervisor/request_scope.h"

namespace onebit {

struct ProxyTimes {
    // A stream whose engine is still busy with the prompt gets its head after this, so that clients see a live
    // connection; until then an error can still be a status of its own.
    std::chrono::milliseconds early_head{800};
    std::chrono::milliseconds ping{5000};  // a comment line in a silent stream
};

struct ProxyRequest {
    std::string content_type;
    std::string body;
    bool stream = false;                            // the body asks for server-sent events
    int client = -1;                                // the client's socket, watched for a hang-up
    int end = -1;                                   // HttpServer::end_event()
    std::unique_ptr<FatalRequests::Flight> flight;  // unset: a request that is not watched for what it does to engines
};

// Fills `response`; streams hold lease and scope until they end. The engine's connection is closed as soon as the
// client leaves. If the engine dies: 503 of type engine_failed, with code member_failed where a member of its tandem
// did it, when nothing was sent yet, with Retry-After unless the request is the likely cause; an error event and a
// proper end in an event stream; else the connection breaks off, so that the client sees an incomplete body. The end of
// the server is told in the same places, as 503 of type unavailable_error.
void proxy_request(const httplib::Request& request, httplib::Response& response, Fleet::Lease lease,
                   ProxyRequest details, const std::shared_ptr<RequestScope>& scope, const ProxyTimes& times = {});

}  // namespace onebit
