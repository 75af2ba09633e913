#include "engine/route_table.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <span>

#include "base/error.h"
#include "base/hash.h"

namespace onebit {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kVersion = 1;
constexpr size_t kMostMembers = 8, kMostCells = 1024, kMostTrials = 64, kLongestName = 128;
constexpr uint64_t kMostTokens = 1u << 30;
constexpr double kFastest = 1e9, kSlowest = 1e-6, kLongestSwitch = 1e9, kMostSeconds = 1e6;
constexpr uint64_t kMostBytes = 4 << 20;  // of all tables of this user

Error wrong(const std::string& field, const std::string& expected) {
    return {ErrorCode::invalid, "stored route, field '" + field + "'", expected, "something else",
            "1bit tune measures it again"};
}

bool number(const Json& object, const char* key, double least, double most, double* to) {
    const auto found = object.find(key);
    if (found == object.end() || !found->is_number()) return false;
    *to = found->get<double>();
    return std::isfinite(*to) && *to >= least && *to <= most;
}

bool tokens(const Json& object, const char* key, uint64_t least, uint32_t* to) {
    const auto found = object.find(key);
    if (found == object.end() || !found->is_number_unsigned()) return false;
    const uint64_t value = found->get<uint64_t>();
    *to = static_cast<uint32_t>(std::min(value, kMostTokens));
    return value >= least && value <= kMostTokens;
}

bool name(const Json& value, std::string* to) {
    if (!value.is_string()) return false;
    *to = value.get<std::string>();
    return !to->empty() && to->size() <= kLongestName && printable(*to) == *to;
}

const Json* list(const Json& object, const char* key, size_t least, size_t most) {
    const auto found = object.find(key);
    if (found == object.end() || !found->is_array() || found->size() < least || found->size() > most) return nullptr;
    return &*found;
}

Result<void> parse_cells(const Json& root, RouteTable& table) {
    const Json* cells = list(root, "cells", 0, kMostCells);
    if (cells == nullptr) return wrong("cells", "a list of at most " + std::to_string(kMostCells));
    std::set<std::pair<uint32_t, uint32_t>> seen;
    for (const Json& item : *cells) {
        RouteCell cell;
        if (!item.is_object() || !tokens(item, "ubatch", 1, &cell.ubatch) || cell.ubatch > table.ubatch)
            return wrong("cells.ubatch", "tokens from 1 to " + std::to_string(table.ubatch));
        if (!tokens(item, "depth", 0, &cell.depth)) return wrong("cells.depth", "tokens from 0 on");
        if (!seen.insert({cell.ubatch, cell.depth}).second) return wrong("cells", "each ubatch and depth once");
        const Json* rates = list(item, "tokens_per_second", table.members.size(), table.members.size());
        if (rates == nullptr) return wrong("cells.tokens_per_second", "one number for each member");
        for (const Json& rate : *rates) {
            const double value = rate.is_number() ? rate.get<double>() : 0;
            if (!std::isfinite(value) || value < kSlowest || value > kFastest)
                return wrong("cells.tokens_per_second", "numbers above 0");
            cell.tokens_per_second.push_back(value);
        }
        table.cells.push_back(std::move(cell));
    }
    return {};
}

Result<void> parse_trials(const Json& root, RouteTable& table) {
    const Json* trials = list(root, "trials", 0, kMostTrials);
    if (trials == nullptr) return wrong("trials", "a list of at most " + std::to_string(kMostTrials));
    const auto is_member = [&](const std::string& one) {
        return std::find(table.members.begin(), table.members.end(), one) != table.members.end();
    };
    for (const Json& item : *trials) {
        RouteTrial trial;
        if (!item.is_object() || !item.contains("prefill") || !item.contains("decode") ||
            !name(item["prefill"], &trial.prefill) || !name(item["decode"], &trial.decode) ||
            !is_member(trial.prefill) || !is_member(trial.decode) || trial.prefill == trial.decode)
            return wrong("trials.prefill, trials.decode", "two members");
        if (!tokens(item, "prompt", 1, &trial.prompt) || trial.prompt % table.ubatch != 0 ||
            !tokens(item, "generate", 0, &trial.generate))
            return wrong("trials.prompt, trials.generate", "whole ubatches, and tokens");
        if (!number(item, "seconds", 1e-9, kMostSeconds, &trial.seconds)) return wrong("trials.seconds", "a time");
        table.trials.push_back(std::move(trial));
    }
    return {};
}

Result<RouteTable> parse(std::string_view text) {
    const Json root = Json::parse(text, nullptr, false);
    if (!root.is_object() || !root.contains("version") || root["version"] != kVersion)
        return wrong("version", std::to_string(kVersion));
    RouteTable table;
    const Json* members = list(root, "members", 1, kMostMembers);
    if (members == nullptr) return wrong("members", "1 to 8 names");
    for (const Json& item : *members) {
        std::string member;
        if (!name(item, &member)) return wrong("members", "names of devices");
        if (std::find(table.members.begin(), table.members.end(), member) != table.members.end())
            return wrong("members", "each name once");
        table.members.push_back(std::move(member));
    }
    if (!tokens(root, "ubatch", 1, &table.ubatch)) return wrong("ubatch", "tokens from 1 on");
    if (!number(root, "switch_us", 0, kLongestSwitch, &table.switch_us)) return wrong("switch_us", "microseconds");
    if (!root.contains("source") || (root["source"] != "tune" && root["source"] != "calibration"))
        return wrong("source", "tune or calibration");
    table.source = root["source"].get<std::string>();
    ONEBIT_RETURN_IF_ERROR(parse_cells(root, table));
    ONEBIT_RETURN_IF_ERROR(parse_trials(root, table));
    return table;
}

}  // namespace

std::string route_table_to_json(const RouteTable& table) {
    Json cells = Json::array(), trials = Json::array();
    for (const RouteCell& cell : table.cells)
        cells.push_back(
            {{"ubatch", cell.ubatch}, {"depth", cell.depth}, {"tokens_per_second", cell.tokens_per_second}});
    for (const RouteTrial& trial : table.trials)
        trials.push_back({{"prefill", trial.prefill},
                          {"decode", trial.decode},
                          {"prompt", trial.prompt},
                          {"generate", trial.generate},
                          {"seconds", trial.seconds}});
    return Json{{"version", kVersion},        {"source", table.source},       {"members", table.members},
                {"ubatch", table.ubatch},     {"switch_us", table.switch_us}, {"cells", std::move(cells)},
                {"trials", std::move(trials)}}
        .dump(2, ' ', false, Json::error_handler_t::replace);
}

Result<RouteTable> parse_route_table(std::string_view json) try {
    return parse(json);
} catch (const std::exception& error) {
    return Error{ErrorCode::invalid, "stored route", "a table", error.what(), "1bit tune measures it again"};
}

Result<std::string> route_key(const RouteKey& key) {
    constexpr std::streamsize kBegin = 1 << 20;
    std::string text = "llama.cpp " ONEBIT_LLAMA_TREE "\n";
    for (const std::filesystem::path& file : key.model_files) {
        std::error_code error;
        const uintmax_t size = std::filesystem::file_size(file, error);
        if (error) return error_from_errno(error.value(), file.string(), "see 1bit models");
        text += "file of " + std::to_string(size) + " bytes\n";
    }
    if (key.model_files.empty())
        return Error{ErrorCode::invalid, "model", "at least one file", "none", "see 1bit models"};
    std::ifstream stream(key.model_files.front(), std::ios::binary);
    std::string begin(kBegin, '\0');
    stream.read(begin.data(), kBegin);
    begin.resize(static_cast<size_t>(std::max<std::streamsize>(stream.gcount(), 0)));
    if (begin.empty())
        return Error{ErrorCode::io, key.model_files.front().string(), "a model", "nothing that can be read", ""};
    text += "model " + to_hex(sha256(begin)) + "\n";
    std::vector<std::string> devices = key.devices;
    std::sort(devices.begin(), devices.end());
    for (const std::string& device : devices) text += "device " + device + "\n";
    text += "ubatch " + std::to_string(key.ubatch) + "\ncache " + key.cache_type_k + " " + key.cache_type_v +
            "\nflash attention " + key.flash_attention + "\nthreads " + key.threads + "\n";
    return to_hex(sha256(text));
}

std::string route_identity(const std::string& device, const std::string& hardware, const std::string& driver) {
    return printable(device + ", " + hardware + ", " + driver);
}

Result<FileCache> open_route_tables() {
    auto folder = cache_folder();
    if (!folder) return std::move(folder).error();
    return FileCache::open(*folder / "routes", kMostBytes);
}

Result<RouteTable> load_route_table(FileCache& tables, const std::string& key, std::vector<std::string> members) {
    const auto bytes = tables.get(key);
    if (!bytes) return bytes.error();
    auto table = parse_route_table({reinterpret_cast<const char*>(bytes->data()), bytes->size()});
    if (!table) return Error{ErrorCode::not_found, "stored route", "a table", table.error().message(), ""};
    std::vector<std::string> known = table->members;
    std::sort(known.begin(), known.end());
    std::sort(members.begin(), members.end());
    if (!members.empty() && known != members)
        return Error{ErrorCode::not_found, "stored route", "a table of these devices", "one of others", ""};
    return table;
}

Result<void> store_route_table(FileCache& tables, const std::string& key, const RouteTable& table) {
    const std::string text = route_table_to_json(table);
    return tables.put(key, std::as_bytes(std::span(text)));
}

}  // namespace onebit
