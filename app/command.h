// A command of the program: adds itself to the command line and is run if chosen. One file per command in app/commands.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace onebit {

// What a command leaves behind: its exit code (0, 1 failure, 2 usage, 3 of plan: does not fit).
using CommandRun = std::function<int()>;

// Adds the sub-command to `app` and sets *run when the user chose it.
using AddCommand = void (*)(CLI::App& app, CommandRun* run);

// What stood after "--" on the command line, untouched: arguments of the llama.cpp server. Set before any command runs.
const std::vector<std::string>& arguments_after_dashes();

void add_serve(CLI::App& app, CommandRun* run);
void add_run(CLI::App& app, CommandRun* run);
void add_devices(CLI::App& app, CommandRun* run);
void add_doctor(CLI::App& app, CommandRun* run);
void add_bench(CLI::App& app, CommandRun* run);
void add_plan(CLI::App& app, CommandRun* run);
void add_verify(CLI::App& app, CommandRun* run);
void add_tune(CLI::App& app, CommandRun* run);
void add_models(CLI::App& app, CommandRun* run);
void add_pull(CLI::App& app, CommandRun* run);
void add_ps(CLI::App& app, CommandRun* run);
void add_unload(CLI::App& app, CommandRun* run);
void add_kernels(CLI::App& app, CommandRun* run);  // where hrx is built
void add_version(CLI::App& app, CommandRun* run);
void add_completions(CLI::App& app, CommandRun* run);
void add_engine(CLI::App& app, CommandRun* run);  // hidden: the engine process

}  // namespace onebit
