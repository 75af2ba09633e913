// What a name in a request means: one model with the settings that hold for it, and the engine's command line.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "server/catalog/catalog.h"
#include "server/config.h"

namespace onebit {

struct ModelTarget {
    std::string id;                    // the name that answers, metrics and logs use
    std::vector<std::string> aliases;  // other names of onebit.yaml
    ModelEntry entry;
    ModelConfig settings;  // of the model, of `defaults` and of the whole, in this order
    std::map<std::string, std::string> device_identities;  // see ServeConfig

    KeepAlive keep_alive() const { return settings.keep_alive.value_or(KeepAlive{300}); }
};

// Settings of `model` with what is unset taken from config.defaults and config itself.
ModelConfig effective_settings(const ServeConfig& config, const ModelConfig& model);

// What a server on demand loads before the first request: the preload list; without one the default model, so that the
// first request does not wait for it, unless the file names several models, of which a request may mean any.
std::vector<std::string> models_at_start(const ServeConfig& config);

// name: a key or alias of config.models, or a name of the catalog; empty: the default model.
// from_request: a name that came over HTTP, which may not be a path of this machine.
// Errors as find_model; not_found as well for a path in a request; invalid for a model that cannot be used.
Result<ModelTarget> resolve_model(const ServeConfig& config, const CatalogFolders& folders, const std::string& name,
                                  bool from_request);

// A name for a request that meets a model which is loaded at start, as a request may give it: of the first in the
// preload list that is there; without one the default model.
std::string name_to_try(const ServeConfig& config, const CatalogFolders& folders);

// Context per slot and number of slots, where the settings leave them open.
struct SlotShape {
    uint32_t context = 0;  // tokens of each slot
    uint32_t slots = 0;
};

// The shapes to try, best first: one alone if the settings (or the arguments for llama.cpp) fix it.
std::vector<SlotShape> slot_shapes(const ModelTarget& target);

// The argument that makes an engine's tandem (engine/tandem_device.h), or nothing when prompts are read where tokens
// are made. The threshold is at most a ubatch, which is all that a device sees of a prompt at one time; "auto" goes
// with the key under which a measured route is kept.
std::string tandem_argument(const ModelTarget& target);
// Whether there is one.
bool has_tandem(const ModelConfig& settings);

// Key of the measured route of these members, see engine/route_table.h. Errors of a model file that cannot be read.
Result<std::string> stored_route_key(const ModelTarget& target, const std::vector<std::string>& members);

// When the devices were left open and a route of them is stored, sets what it says. Returns the reason, or why nothing
// was set; empty when the devices were named.
std::string use_stored_route(ModelTarget* target);

// What llama.cpp's --device takes for ggml's names: it knows no CPU, "none" leaves all work to it.
std::string engine_device_list(const std::vector<std::string>& devices);

// Arguments of llama.cpp's server. Each slot has its own share of the cache, so that one long request cannot end the
// others; a setting that `settings.arguments` repeats is left to them.
std::vector<std::string> engine_arguments(const ModelTarget& target, const SlotShape& shape, bool offline);

// Whether engine_arguments sets context and slots, or `settings.arguments` does.
bool slots_are_ours(const ModelTarget& target);

// Arguments of `1bit plan` for the same.
std::vector<std::string> plan_arguments(const ModelTarget& target, const SlotShape& shape);

}  // namespace onebit
