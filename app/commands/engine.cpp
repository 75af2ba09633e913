// The hidden command `1bit engine`: what the supervisor starts its children with.
#include "engine/engine_main.h"

#include <CLI/CLI.hpp>

#include "app/command.h"

namespace onebit {

void add_engine(CLI::App& app, CommandRun* run) {
    struct Options {
        std::string socket;
        int heartbeat_fd = -1;
    };
    auto options = std::make_shared<Options>();
    CLI::App* command = app.add_subcommand("engine", "Runs one engine process; started by 1bit serve, not by hand.");
    command->group("");
    command->add_option("--socket", options->socket, "Path of the Unix socket to serve on")->required();
    command->add_option("--heartbeat-fd", options->heartbeat_fd, "Inherited descriptor of the heartbeat page")
        ->required();
    command->callback([options, run] {
        *run = [options] { return engine_main(options->socket, options->heartbeat_fd, arguments_after_dashes()); };
    });
}

}  // namespace onebit
