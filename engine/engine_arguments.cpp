#include "engine/engine_arguments.h"

#include <algorithm>
#include <cstdlib>
#include <iterator>

namespace onebit {
namespace {

struct Refused {
    const char* flag;
    const char* remedy;
};
constexpr Refused kRefused[] = {
    {"--host", "use --host of 1bit serve"},
    {"--port", "use --port of 1bit serve"},
    {"--reuse-port", "leave it out"},
    {"--api-key", "use --api-key of 1bit serve"},
    {"--api-key-file", "use --api-key of 1bit serve"},
    {"--ssl-key-file", "put a TLS proxy before 1bit serve"},
    {"--ssl-cert-file", "put a TLS proxy before 1bit serve"},
    {"--api-prefix", "leave it out"},
    {"--cors-origins", "use --cors-origin of 1bit serve"},
    {"--cors-credentials", "use --cors-origin of 1bit serve"},
    {"--models-dir", "1bit serve loads models itself"},
    {"--models-preset", "1bit serve loads models itself"},
    {"--log-jsonl", "leave it out"},
    {"--log-file", "redirect the output of 1bit serve"},
    {"--log-disable", "leave it out"},
};

constexpr const char* kModelFlags[] = {"-m", "--model"};

// Variables that would override what the supervisor decides, or make this process a part of llama.cpp's router.
constexpr const char* kVariables[] = {
    "LLAMA_ARG_HOST",
    "LLAMA_ARG_PORT",
    "LLAMA_ARG_REUSE_PORT",
    "LLAMA_API_KEY",
    "LLAMA_ARG_API_KEY_FILE",
    "LLAMA_ARG_SSL_KEY_FILE",
    "LLAMA_ARG_SSL_CERT_FILE",
    "LLAMA_ARG_API_PREFIX",
    "LLAMA_ARG_CORS_ORIGINS",
    "LLAMA_ARG_CORS_CREDENTIALS",
    "LLAMA_ARG_MODELS_DIR",
    "LLAMA_ARG_MODELS_PRESET",
    "LLAMA_ARG_LOG_JSONL",
    "LLAMA_ARG_LOG_FILE",
    "LLAMA_ARG_LOG_PREFIX",
    "LLAMA_SERVER_ROUTER_PORT",
    "LLAMA_SERVER_CHILD_MODE",
    "LLAMA_APP_CMD",
    "AIP_MODE",
};

}  // namespace

Result<std::vector<std::string>> engine_arguments(const std::string& socket, const std::vector<std::string>& users) {
    if (!socket.ends_with(".sock") || socket.find_first_of(",\"") != std::string::npos)
        return Error{ErrorCode::usage, "--socket", "a path that ends in .sock and holds no comma and no quote", socket,
                     "set XDG_RUNTIME_DIR to a folder with a plain name"};
    for (const auto& word : users) {
        const std::string flag = word.substr(0, word.find('='));
        const auto* refused = std::find_if(std::begin(kRefused), std::end(kRefused),
                                           [&](const Refused& one) { return flag == one.flag; });
        if (refused != std::end(kRefused))
            return Error{ErrorCode::usage, "argument " + flag + " of the llama.cpp server",
                         "only arguments that do not touch the connection", flag, refused->remedy};
    }
    const bool has_model = std::any_of(users.begin(), users.end(), [](const std::string& word) {
        return std::find(std::begin(kModelFlags), std::end(kModelFlags), word) != std::end(kModelFlags);
    });
    if (!has_model)
        return Error{ErrorCode::usage, "arguments of the llama.cpp server", "-m FILE", "no model",
                     "name a model: without one llama.cpp would start its router"};
    // --slots is llama.cpp's default and read-only; --props would let any client change the server's settings.
    // The page is the supervisor's. An empty origin allows none; llama.cpp's default allows all.
    std::vector<std::string> all{
        "--metrics", "--slots",      "--no-ui", "--cors-origins", "", "--no-cors-credentials", "--sse-ping-interval",
        "5",         "--log-colors", "off"};
    all.insert(all.end(), users.begin(), users.end());
    all.insert(all.end(), {"--host", socket});
    return all;
}

void clean_engine_environment() {
    for (const char* name : kVariables) ::unsetenv(name);
}

}  // namespace onebit
