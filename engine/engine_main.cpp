#include "engine/engine_main.h"

#include <sys/stat.h>

#include <cstdio>

#include "base/log.h"
#include "engine/calibration.h"
#include "engine/direct_stream.h"
#include "engine/engine_arguments.h"
#include "engine/heartbeat_hooks.h"
#include "engine/request_hooks.h"
#include "engine/response_wait.h"
#include "engine/tandem_account.h"
#include "engine/tandem_device.h"

int llama_server(int argc, char** argv);  // llama.cpp, tools/server/server.cpp; it has no header

namespace onebit {

int engine_main(const std::string& socket, int heartbeat_fd, const std::vector<std::string>& arguments,
                const std::vector<ExcludedMember>& excluded) {
    const auto fail = [](const Error& error) {
        std::fprintf(stderr, "E %s\n", error.message().c_str());
        return exit_code(error.code);
    };
    ::umask(0077);  // the socket is this user's alone
    clean_engine_environment();
    use_response_wait();
    use_request_hooks();
    set_log_level(LogLevel::verbose);  // the supervisor keeps what it wants
    hide_excluded_backends(excluded, arguments);
    auto heartbeat = Heartbeat::attach(heartbeat_fd);
    if (!heartbeat) return fail(heartbeat.error());
    // ggml's threads may count until the very end of the process
    static auto* const page = new Heartbeat(std::move(*heartbeat));
    install_heartbeat(page->page());
    install_direct_streams(&page->page().streams);
    std::vector<std::string> own = arguments;
    if (auto made = set_up_tandem(&own, excluded); !made) return fail(made.error());
    install_tandem_account(page->page(), excluded);
    start_calibration(page->page());
    auto words = engine_arguments(socket, own);
    if (!words) return fail(words.error());

    std::string name = "1bit-engine";
    std::vector<char*> argv{name.data()};
    for (auto& word : *words) argv.push_back(word.data());
    argv.push_back(nullptr);
    try {
        return llama_server(static_cast<int>(argv.size()) - 1, argv.data());
    } catch (const std::exception& error) {
        return fail({ErrorCode::internal, "llama.cpp's server", "no exception", error.what(), ""});
    } catch (...) {
        return fail({ErrorCode::internal, "llama.cpp's server", "no exception", "an unknown one", ""});
    }
}

}  // namespace onebit
