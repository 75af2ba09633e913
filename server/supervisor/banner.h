// What `1bit serve` says when its port is open.
#pragma once

#include <string>
#include <vector>

#include "server/config.h"

namespace onebit {

// "http://127.0.0.1:8080"; a wildcard address is shown as one that a client can use, IPv6 in brackets.
std::string base_address(const std::string& host, uint16_t port);

// A command that works against this server, in one line.
std::string curl_line(const ServeConfig& config, uint16_t port, const std::string& model);

// The lines for standard output: address, model, keys, curl line. model: the fixed or the default one; to_try: the one
// for the curl line.
std::vector<std::string> start_lines(const ServeConfig& config, uint16_t port, const std::string& model,
                                     const std::string& to_try);

// The warning for an address that others can reach without a key; empty if there is no reason.
std::string exposure_warning(const ServeConfig& config);

// One line about the devices from what `1bit devices --json` printed; empty if that cannot be read.
// wanted: ggml names from the settings; empty: those chosen by default.
std::string devices_line(const std::string& json, const std::vector<std::string>& wanted);

}  // namespace onebit
