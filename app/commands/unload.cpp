// `1bit unload`: frees a model of a running server.
#include <nlohmann/json.hpp>

#include "app/command.h"
#include "app/server_client.h"

namespace onebit {

void add_unload(CLI::App& app, CommandRun* run) {
    auto question = std::make_shared<ServerQuestion>();
    auto model = std::make_shared<std::string>();
    CLI::App* command = app.add_subcommand("unload", "Free a model of a running server.");
    command->add_option("MODEL", *model, "A name that 1bit ps shows")->required()->type_name("");
    add_question_flags(command, question.get());
    command->footer(
        "Running requests of the model end first. The next request that names it loads it again.\n\n"
        "Examples:\n"
        "  1bit unload builtin\n"
        "  1bit unload builtin --port 8081");
    command->callback([question, model, run] {
        *run = [question, model] {
            std::string name = printable(*model);
            return ask_and_print(*question, "/onebit/unload", nlohmann::json{{"model", name}}.dump(),
                                 [&](const std::string&) -> Result<std::string> { return "unloaded " + name + "\n"; });
        };
    });
}

}  // namespace onebit
