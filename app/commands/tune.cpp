// `1bit tune`: which device reads prompts and which makes tokens, by measurement.
#include "engine/tune.h"

#include <algorithm>

#include "app/command_line.h"
#include "app/model_choice.h"
#include "app/output.h"
#include "base/cache_folder.h"
#include "engine/devices.h"
#include "server/catalog/catalog.h"

namespace onebit {
namespace {

struct Options {
    std::string model = "builtin", device, prefill_device;
    TuneRequest request;
    bool json = false, dry_run = false;
};

Result<std::string> one_device_of(const char* flag, const std::string& text,
                                  const std::vector<PhysicalDevice>& devices) {
    auto names = select_devices(text, devices);
    if (!names) return std::move(names).error();
    if (names->empty()) names->push_back("CPU");
    if (names->size() == 1) return names->front();
    return Error{ErrorCode::usage, flag, "one device", std::to_string(names->size()) + " of them", "see 1bit devices"};
}

// The two devices that are named, the backends of the default GPU, or the one device that there is.
Result<void> set_members(const Options& options, const std::vector<PhysicalDevice>& devices, TuneRequest* request) {
    if (options.device.empty() || options.device == "auto") {
        if (!options.prefill_device.empty())
            return Error{ErrorCode::usage, "--prefill-device", "--device beside it, which makes the tokens", "none",
                         "see 1bit devices"};
        const size_t gpus = default_devices(devices).size();
        if (gpus > 1)
            return Error{ErrorCode::usage, "--device", "one of the " + std::to_string(gpus) + " GPUs", "none",
                         "name it, and with --prefill-device another backend of it; see 1bit devices"};
        request->members = default_backends(devices);
        if (request->members.empty()) request->members = {"CPU"};
        if (request->members.size() > 2) request->members.resize(2);
        return {};
    }
    auto decode = one_device_of("--device", options.device, devices);
    if (!decode) return std::move(decode).error();
    request->members = {*decode};
    request->wish.decode = *decode;
    if (options.prefill_device.empty()) return {};
    auto prefill = one_device_of("--prefill-device", options.prefill_device, devices);
    if (!prefill) return std::move(prefill).error();
    if (*prefill == *decode)
        return Error{ErrorCode::usage, "--prefill-device", "another device than --device", *prefill,
                     "leave it out to measure one device"};
    request->members.push_back(*prefill);
    request->wish.prefill = *prefill;
    return {};
}

Result<std::string> store(const TuneRequest& request, const ModelEntry& model,
                          const std::vector<PhysicalDevice>& devices, const RouteTable& table) {
    RouteKey key;
    key.model_files = model.files;
    for (const std::string& member : request.members) key.devices.push_back(device_identity(devices, member));
    key.ubatch = request.ubatch;
    key.cache_type_k = request.cache_type_k;
    key.cache_type_v = request.cache_type_v;
    key.flash_attention = request.flash_attention;
    if (request.threads != 0) key.threads = std::to_string(request.threads);
    auto digits = route_key(key);
    if (!digits) return digits;
    auto tables = open_route_tables();
    if (!tables) return std::move(tables).error();
    ONEBIT_RETURN_IF_ERROR(store_route_table(*tables, *digits, table));
    auto folder = cache_folder();
    if (!folder) return std::move(folder).error();
    return (*folder / "routes").string();
}

int run_tune_command(Options options) {
    TuneRequest& request = options.request;
    const auto model = find_usable_model(options.model);
    if (!model.ok()) return report(model.error());
    request.model_file = model->files.front().string();
    request.model_name = model->id;
    const auto devices = list_devices();
    if (!devices) return report(devices.error());
    if (auto set = set_members(options, *devices, &request); !set) return report(set.error());
    for (const std::string& member : request.members) tell("device " + device_line(*devices, member));
    request.progress = [](const std::string& step) { tell(step); };
    auto tuned = run_tune(request);
    if (!tuned) return report(tuned.error());
    if (request.members.size() > 1 && !options.dry_run) {
        auto stored = store(request, *model, *devices, tuned->table);
        if (!stored) return report(stored.error());
        tuned->stored = *stored;
    }
    print(options.json ? tune_to_json(*tuned) : tune_to_text(*tuned));
    return 0;
}

}  // namespace

void add_tune(CLI::App& app, CommandRun* run) {
    auto options = std::make_shared<Options>();
    TuneRequest& request = options->request;
    CLI::App* command =
        app.add_subcommand("tune", "Measure which device reads prompts and which makes tokens faster, and keep it.");
    add_model(command, &options->model);
    command
        ->add_option("--device", options->device,
                     "the device that makes tokens, a name of 1bit devices; the backends of the default GPU if not "
                     "given")
        ->type_name("NAME");
    command
        ->add_option("--prefill-device", options->prefill_device,
                     "the device that reads prompts, on the memory of the other: one of the two must be Vulkan")
        ->type_name("NAME");
    add_number(command, "--rounds", "measurements of each, 5 if not given", &request.rounds, 1, 1000);
    add_number(command, "-c,--ctx-size", "tokens that the measured depths may take up, 16384 if not given",
               &request.context, 1, 1u << 24);
    add_number(command, "--ubatch-size", "tokens computed at once, 512 if not given; as the server will have it",
               &request.ubatch, 1, 1 << 20);
    add_number(command, "-t,--threads", "of the CPU, as the server will have them", &request.threads, 1, 1024);
    add_cache_types(command, &request.cache_type_k, &request.cache_type_v);
    add_flash_attention(command, &request.flash_attention);
    command->add_flag("--dry-run", options->dry_run, "keep nothing");
    command->add_flag("--json", options->json, "print JSON");
    command->footer(
        "The table is kept in the cache folder, for this model, these devices, their drivers, this llama.cpp and "
        "these\n"
        "settings. 1bit serve and 1bit run use it: without --device for the choice of the devices, and with\n"
        "--prefill-device for the number of tokens from which on it reads prompts.\n\n"
        "Examples:\n"
        "  1bit tune MODEL.gguf                                          # the backends of the default GPU\n"
        "  1bit tune MODEL.gguf --device cuda --prefill-device vulkan\n"
        "  1bit tune MODEL.gguf --device vulkan --ubatch-size 1024 --json");
    command->callback([options, run] { *run = [options] { return run_tune_command(*options); }; });
}

}  // namespace onebit
