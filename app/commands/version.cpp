// `1bit version`: what this program was built from and where it lies.
#include <CLI/CLI.hpp>

#include "app/command.h"
#include "app/output.h"
#include "app/version.h"

namespace onebit {

void add_version(CLI::App& app, CommandRun* run) {
    CLI::App* command = app.add_subcommand("version", "Show versions, the llama.cpp pin and its date, and backends.");
    auto json = std::make_shared<bool>(false);
    command->add_flag("--json", *json, "Print JSON");
    command->footer(
        "Examples:\n"
        "  1bit version\n"
        "  1bit version --json");
    command->callback([json, run] {
        *run = [json] {
            print(*json ? version_json(build_info(), program_path()) : version_text(build_info(), program_path()));
            return 0;
        };
    });
}

}  // namespace onebit
