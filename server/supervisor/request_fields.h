// The fields of requests that llama.cpp reads, each with its type and range: what it would misread, it never gets.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "server/supervisor/json_view.h"
#include "server/supervisor/request_route.h"

namespace onebit {

// body: an object, or for kLoraRoute a list. Error usage naming the field's path, what was expected and what was found:
// a wrong type; a whole number that does not fit into what the engine keeps it in; a list or text of a size that would
// keep the engine busy for seconds; a value that it would pass over in silence, such as an unknown sampler. null is the
// same as no field, except where the engine takes it otherwise. Fields that the table does not know go through. Types
// and ranges are those of the pinned llama.cpp's tools/server/server-schema.cpp, server-common.cpp and
// server-context.cpp. Pure; cost: about 2 ns per byte of the body.
Result<void> check_fields(RequestRoute route, const JsonView& body);

// Such an error; subject: "field 'PATH'".
Error wrong_field(std::string_view path, std::string expected, std::string found, std::string remedy = {});

}  // namespace onebit
