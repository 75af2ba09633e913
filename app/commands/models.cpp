// `1bit models`: which models are on this disk.
#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "app/command.h"
#include "app/model_list.h"
#include "app/output.h"

namespace onebit {

void add_models(CLI::App& app, CommandRun* run) {
    struct Options {
        bool json = false, paths = false;
    };
    auto options = std::make_shared<Options>();
    CLI::App* command = app.add_subcommand("models", "List the models on this disk.");
    command->add_flag("--json", options->json, "Print JSON");
    command->add_flag("--paths", options->paths, "Print the path of every file, one a line");
    command->footer(
        "Looks into the folders of 1bit, Hugging Face, LM Studio and Ollama. The shards of a model are one entry.\n\n"
        "Examples:\n"
        "  1bit models\n"
        "  1bit models --json\n"
        "  1bit models --paths | head -1\n"
        "  ONEBIT_MODELS=/data/models 1bit models");
    command->callback([options, run] {
        *run = [options] {
            std::vector<ModelEntry> models = list_models(CatalogFolders::of_this_user());
            if (options->json)
                print(models_json(models));
            else if (options->paths)
                print(models_paths(models));
            else
                print(models_table(models));
            return 0;
        };
    });
}

}  // namespace onebit
