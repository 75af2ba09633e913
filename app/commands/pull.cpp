// `1bit pull`: downloads a model.
#include "server/catalog/pull.h"

#include <CLI/CLI.hpp>

#include "app/command.h"
#include "app/interrupt.h"
#include "app/model_list.h"
#include "app/output.h"
#include "app/progress.h"

namespace onebit {
namespace {

struct Options {
    std::string reference, hub;
    bool offline = false, update = false, json = false;
};

int run_pull(const Options& options) {
    Interrupt interrupt;
    Progress progress;
    PullOptions pull;
    pull.hub = options.hub;
    pull.offline = options.offline;
    pull.update = options.update;
    pull.cancel = &interrupt.flag();
    pull.progress = [&](const std::string& file, uint64_t done, uint64_t total) { progress.show(file, done, total); };
    Result<ModelEntry> model = pull_model(options.reference, CatalogFolders::of_this_user(), pull);
    progress.end();
    if (!model)
        return model.error().code == ErrorCode::cancelled ? (report(model.error()), 130) : report(model.error());
    if (options.json)
        print(model_json(*model));
    else
        print(models_table({*model}) + models_paths({*model}));
    return 0;
}

}  // namespace

void add_pull(CLI::App& app, CommandRun* run) {
    auto options = std::make_shared<Options>();
    CLI::App* command = app.add_subcommand("pull", "Download a model; resumes, takes all shards, checks digests.");
    command->add_option("REFERENCE", options->reference, "ORG/REPO, ORG/REPO:QUANT or ORG/REPO/FILE.gguf")
        ->required()
        ->type_name("");
    command->add_flag("--update", options->update, "Ask the hub even when a complete copy is here");
    command->add_flag("--offline", options->offline, "Look at the disk only");
    command->add_option("--hub", options->hub, "Address of the hub; else $HF_ENDPOINT, else the public one")
        ->type_name("URL");
    command->add_flag("--json", options->json, "Print the model as JSON");
    command->footer(
        "What is on the disk already is not fetched again. A token for closed models is read from $HF_TOKEN.\n\n"
        "Examples:\n"
        "  1bit pull ORG/REPO-GGUF              # the hub's usual quantisation\n"
        "  1bit pull ORG/REPO-GGUF:Q4_K_M\n"
        "  1bit pull ORG/REPO-GGUF:Q4_K_M --update\n"
        "  HF_ENDPOINT=http://mirror.local 1bit pull ORG/REPO-GGUF:Q8_0");
    command->callback([options, run] { *run = [options] { return run_pull(*options); }; });
}

}  // namespace onebit
