// `--prefill-min-tokens auto` in an engine process: the route of its tandem comes from a stored table, from a fixed
// rule, or from a calibration after the server is ready.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"
#include "tandem/settings.h"

namespace onebit {

// What the supervisor wrote into the settings of the tandem beside those that the tandem knows: "min=auto", the ubatch
// ("ubatch=512") and the key of the stored table ("route=64 hexadecimal digits").
struct AutoRoute {
    bool wanted = false;
    uint32_t ubatch = 512;
    std::string key;
};

// Takes them out; with min=auto the tandem begins with its decode member for everything. Error usage for a value.
Result<AutoRoute> take_auto_route(std::string* settings);

// Chooses the route of the tandem that was just made, and logs the choice with its reason; with neither a stored table
// nor software Vulkan among the members a calibration is arranged. Nothing when it is not wanted.
void begin_auto_route(const AutoRoute& route, const tandem::Settings& settings, const std::string& device);

}  // namespace onebit
