// `1bit ps`: what a running server has loaded, as it measures it.
#include "app/command.h"
#include "app/server_client.h"

namespace onebit {

void add_ps(CLI::App& app, CommandRun* run) {
    auto question = std::make_shared<ServerQuestion>();
    CLI::App* command = app.add_subcommand("ps", "Show what a running server has loaded, measured.");
    add_question_flags(command, question.get());
    command->footer(
        "Examples:\n"
        "  1bit ps\n"
        "  1bit ps --port 8081 --json\n"
        "  ONEBIT_HOST=http://gpu-box:8080 1bit ps");
    command->callback([question, run] {
        *run = [question] {
            return ask_and_print(*question, "/onebit/ps", "",
                                 [](const std::string& answer) { return engines_table(answer); });
        };
    });
}

}  // namespace onebit
