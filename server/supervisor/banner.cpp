#include "server/supervisor/banner.h"

#include <algorithm>

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "server/supervisor/access.h"

namespace onebit {

std::string base_address(const std::string& host, uint16_t port) {
    std::string name = host == "0.0.0.0" ? "127.0.0.1" : host == "::" || host == "[::]" ? "::1" : host;
    if (name.find(':') != std::string::npos && name.front() != '[') name = "[" + name + "]";
    return "http://" + name + ":" + std::to_string(port);
}

std::string curl_line(const ServeConfig& config, uint16_t port, const std::string& model) {
    std::string quoted = nlohmann::json(printable(model)).dump();
    size_t at = 0;
    while ((at = quoted.find('\'', at)) != std::string::npos) {  // inside the shell's single quotes
        quoted.replace(at, 1, "'\\''");
        at += 4;
    }
    return "curl " + base_address(config.host, port) + "/v1/chat/completions -H 'Content-Type: application/json'" +
           (config.api_keys.empty() ? "" : " -H \"Authorization: Bearer $ONEBIT_API_KEY\"") +
           " -d '{\"model\":" + quoted +
           ",\"messages\":[{\"role\":\"user\",\"content\":\"What is the capital of France?\"}]}'";
}

std::vector<std::string> start_lines(const ServeConfig& config, uint16_t port, const std::string& model,
                                     const std::string& to_try) {
    std::vector<std::string> lines = {"listening on " + base_address(config.host, port)};
    if (config.host == "0.0.0.0" || config.host == "::" || config.host == "[::]")
        lines.back() += " (bound to " + config.host + ", all addresses of this machine)";
    if (config.model.empty())
        lines.push_back("models: loaded on demand, " + std::to_string(config.max_models) + " at a time; default " +
                        model);
    else
        lines.push_back("model: " + model);
    if (!config.api_keys.empty())
        lines.push_back("API keys: " + std::to_string(config.api_keys.size()) +
                        "; put one into $ONEBIT_API_KEY for this line");
    lines.push_back(curl_line(config, port, to_try));
    return lines;
}

std::string exposure_warning(const ServeConfig& config) {
    if (is_loopback_name(config.host) || !config.api_keys.empty()) return {};
    return "anyone who can reach " + config.host +
           " may use this server: set a key with --api-key, or bind it to 127.0.0.1";
}

std::string devices_line(const std::string& text, const std::vector<std::string>& wanted) {
    auto document = nlohmann::json::parse(text, nullptr, false);
    if (document.is_object() && document.contains("devices")) document = document["devices"];
    if (!document.is_array()) return {};
    std::string line;
    for (const auto& device : document) {
        if (!device.is_object()) continue;
        std::string backends;
        bool named = false;
        for (const auto& backend : device.value("backends", nlohmann::json::array())) {
            std::string name;
            if (backend.is_string()) name = backend.get<std::string>();
            if (backend.is_object()) name = backend.value("device", std::string());
            if (name.empty()) continue;
            backends += (backends.empty() ? "" : ", ") + name;
            named = named || std::find(wanted.begin(), wanted.end(), name) != wanted.end();
        }
        bool used =
            wanted.empty() ? device.contains("chosen_by_default") && device["chosen_by_default"] == true : named;
        if (!used) continue;
        line += (line.empty() ? "" : "; ") + device.value("name", std::string("?")) +
                (backends.empty() ? "" : " (" + backends + ")");
    }
    return line.empty() ? "" : "devices: " + printable(line);
}

}  // namespace onebit
