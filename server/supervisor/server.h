// The supervisor: owns the listening port, passes requests to engines and answers what needs no engine.
#pragma once

#include <filesystem>
#include <functional>

#include "base/result.h"
#include "server/catalog/catalog.h"
#include "server/config.h"

namespace onebit {

struct ServerContext {
    ServeConfig config;
    std::filesystem::path program;  // this binary, to start engines with
    CatalogFolders folders;
    std::function<Result<ServeConfig>()>
        reload;  // reads the file again under the same flags; called on SIGHUP and POST /onebit/reload
};

// Serves until SIGTERM or SIGINT: the first drains (no new requests, running ones end, at most drain_timeout), a second
// one stops at once. Blocks. Prints the address, the devices and a curl line when the port is open.
// Error conflict when the port is taken (says by whom if /proc tells), usage for a bad configuration, otherwise io.
Result<void> run_server(ServerContext context);

}  // namespace onebit
