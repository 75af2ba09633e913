// `1bit ps`: what a running server has loaded, as it measures it.
#include "app/command.h"
#include "app/output.h"
#include "app/server_client.h"

namespace onebit {

void add_ps(CLI::App& app, CommandRun* run) {
    struct Options {
        ServerFlags server;
        bool json = false;
    };
    auto options = std::make_shared<Options>();
    CLI::App* command = app.add_subcommand("ps", "Show what a running server has loaded, measured.");
    add_server_flags(command, &options->server);
    command->add_flag("--json", options->json, "Print the server's own JSON");
    command->footer(
        "Examples:\n"
        "  1bit ps\n"
        "  1bit ps --port 8081 --json\n"
        "  ONEBIT_HOST=http://gpu-box:8080 1bit ps");
    command->callback([options, run] {
        *run = [options] {
            Result<std::string> answer = ask_server(options->server, "/onebit/ps", "");
            if (!answer) return report(answer.error());
            if (options->json) {
                print(*answer + (answer->ends_with('\n') ? "" : "\n"));
                return 0;
            }
            Result<std::string> table = engines_table(*answer);
            if (!table) return report(table.error());
            print(*table);
            return 0;
        };
    });
}

}  // namespace onebit
