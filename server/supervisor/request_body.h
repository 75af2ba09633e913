// Checks a JSON request body in one pass, without building it, and takes out what the supervisor needs.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "base/result.h"

namespace onebit {

struct RequestFacts {
    std::string model;    // top-level "model", empty if missing; the last one wins, as in the engine
    bool stream = false;  // top-level "stream"
    bool object = false;  // the body is a JSON object
};

// Error usage naming line, column and byte of the first fault: not JSON, invalid UTF-8 (also outside strings), nested
// deeper than 256, text after the value, a number beyond the largest that 64 bits can hold, or objects of so many keys
// that the engine would be busy with them for seconds (10,000 in one object, or the same work in several). Never
// repeats bytes of the body that are not printable ASCII. Cost: about 2 ns per byte; allocates only for the model's
// name.
Result<RequestFacts> scan_request_body(std::string_view body);

}  // namespace onebit
