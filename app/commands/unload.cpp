// `1bit unload`: frees a model of a running server.
#include <nlohmann/json.hpp>

#include "app/command.h"
#include "app/output.h"
#include "app/server_client.h"

namespace onebit {

void add_unload(CLI::App& app, CommandRun* run) {
    struct Options {
        ServerFlags server;
        std::string model;
        bool json = false;
    };
    auto options = std::make_shared<Options>();
    CLI::App* command = app.add_subcommand("unload", "Free a model of a running server.");
    command->add_option("MODEL", options->model, "A name that 1bit ps shows")->required()->type_name("");
    add_server_flags(command, &options->server);
    command->add_flag("--json", options->json, "Print the server's own JSON");
    command->footer(
        "Running requests of the model end first. The next request that names it loads it again.\n\n"
        "Examples:\n"
        "  1bit unload builtin\n"
        "  1bit unload builtin --port 8081");
    command->callback([options, run] {
        *run = [options]() -> int {
            std::string body = nlohmann::json{{"model", printable(options->model)}}.dump();
            Result<std::string> answer = ask_server(options->server, "/onebit/unload", body);
            if (!answer) return report(answer.error());
            print(options->json ? *answer + "\n" : "unloaded " + printable(options->model) + "\n");
            return 0;
        };
    });
}

}  // namespace onebit
