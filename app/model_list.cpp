#include "app/model_list.h"

#include <nlohmann/json.hpp>

#include "engine/devices_text.h"

namespace onebit {
namespace {

using Json = nlohmann::ordered_json;

Json to_json(const ModelEntry& model) {
    Json files = Json::array();
    for (const auto& file : model.files) files.push_back(printable(file.string()));
    return {{"id", printable(model.id)},
            {"origin", to_string(model.origin)},
            {"name", printable(model.name)},
            {"architecture", printable(model.architecture)},
            {"quantization", printable(model.quantization)},
            {"bytes", model.bytes},
            {"parameters", model.parameters},
            {"context_length", model.context_length},
            {"files", std::move(files)},
            {"projector", model.projector.empty() ? Json(nullptr) : Json(printable(model.projector.string()))},
            {"problem", model.problem.empty() ? Json(nullptr) : Json(printable(model.problem))}};
}

uint64_t total_bytes(const std::vector<ModelEntry>& models) {
    uint64_t total = 0;
    for (const ModelEntry& model : models) total += model.bytes;
    return total;
}

}  // namespace

std::string models_table(const std::vector<ModelEntry>& models) {
    if (models.empty()) return "no models on this disk; 1bit pull REPO:QUANT fetches one\n";
    std::vector<std::vector<std::string>> rows = {{"MODEL", "SIZE", "QUANT", "ARCHITECTURE", "CONTEXT", "ORIGIN"}};
    std::string problems;
    for (const ModelEntry& model : models) {
        std::string shards = model.files.size() > 1 ? " in " + std::to_string(model.files.size()) + " shards" : "";
        rows.push_back({printable(model.id), bytes_text(model.bytes) + shards,
                        model.quantization.empty() ? "-" : printable(model.quantization),
                        model.architecture.empty() ? "-" : printable(model.architecture),
                        model.context_length ? std::to_string(model.context_length) : "-", to_string(model.origin)});
        if (!model.problem.empty())
            problems += "cannot be used: " + printable(model.id) + ": " + printable(model.problem) + "\n";
    }
    std::string count = std::to_string(models.size()) + (models.size() == 1 ? " model, " : " models, ");
    return text_table(rows) + problems + count + bytes_text(total_bytes(models)) + "\n";
}

std::string models_json(const std::vector<ModelEntry>& models) {
    Json list = Json::array();
    for (const ModelEntry& model : models) list.push_back(to_json(model));
    return Json{{"models", std::move(list)}, {"total_bytes", total_bytes(models)}}.dump(2) + "\n";
}

std::string models_paths(const std::vector<ModelEntry>& models) {
    std::string text;
    for (const ModelEntry& model : models)
        for (const auto& file : model.files) text += file.string() + "\n";
    return text;
}

std::string model_json(const ModelEntry& model) { return to_json(model).dump(2) + "\n"; }

}  // namespace onebit
