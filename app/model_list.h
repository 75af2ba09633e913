// Models as `1bit models` and `1bit pull` print them.
#pragma once

#include <string>
#include <vector>

#include "server/catalog/catalog.h"

namespace onebit {

// A line for each, the problems of damaged ones below, and the total.
std::string models_table(const std::vector<ModelEntry>& models);
// {"models": [...], "total_bytes": N}
std::string models_json(const std::vector<ModelEntry>& models);
// One path a line, as it is on the disk.
std::string models_paths(const std::vector<ModelEntry>& models);
// One entry of models_json.
std::string model_json(const ModelEntry& model);

}  // namespace onebit
