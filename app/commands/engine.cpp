// The hidden command `1bit engine`: what the supervisor starts its children with.
#include "engine/engine_main.h"

#include <CLI/CLI.hpp>

#include "app/command.h"
#include "app/command_line.h"

namespace onebit {

void add_engine(CLI::App& app, CommandRun* run) {
    struct Options {
        std::string socket;
        int heartbeat_fd = -1;
        std::vector<std::string> excluded, reasons;
    };
    auto options = std::make_shared<Options>();
    CLI::App* command = app.add_subcommand("engine", "Runs one engine process; started by 1bit serve, not by hand.");
    command->group("");
    command->add_option("--socket", options->socket, "Path of the Unix socket to serve on")->required();
    command->add_option("--heartbeat-fd", options->heartbeat_fd, "Inherited descriptor of the heartbeat page")
        ->required();
    add_repeated(command, "--exclude-member", "NAME", "Member of a tandem to do without; may be repeated",
                 &options->excluded);
    add_repeated(command, "--reason", "TEXT", "Why, one for each --exclude-member", &options->reasons);
    command->callback([options, run] {
        *run = [options] {
            std::vector<ExcludedMember> excluded;
            for (size_t i = 0; i < options->excluded.size(); ++i)
                excluded.push_back({options->excluded[i], i < options->reasons.size() ? options->reasons[i] : ""});
            return engine_main(options->socket, options->heartbeat_fd, arguments_after_dashes(), excluded);
        };
    });
}

}  // namespace onebit
