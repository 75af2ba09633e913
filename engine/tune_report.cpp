#include <algorithm>
#include <cstdio>
#include <map>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "engine/devices_text.h"
#include "engine/tune.h"

namespace onebit {
namespace {

using Json = nlohmann::ordered_json;
using Row = std::vector<std::string>;

std::string number(double value) {
    char text[32];
    std::snprintf(text, sizeof text, value >= 99.95 ? "%.0f" : value >= 9.995 ? "%.1f" : "%.2f", value);
    return text;
}

std::string time_text(double seconds) { return seconds < 1 ? number(seconds * 1000) + " ms" : number(seconds) + " s"; }

std::string rates(const RouteTable& table) {
    std::map<uint32_t, std::map<uint32_t, const RouteCell*>> sizes;
    std::vector<uint32_t> depths;
    for (const RouteCell& cell : table.cells) {
        sizes[cell.ubatch][cell.depth] = &cell;
        if (std::find(depths.begin(), depths.end(), cell.depth) == depths.end()) depths.push_back(cell.depth);
    }
    Row head = {"tokens/s, ubatch of"};
    for (const uint32_t depth : depths)
        for (const std::string& member : table.members)
            head.push_back(printable(member) + (depth == 0 ? "" : " at " + std::to_string(depth)));
    std::vector<Row> rows = {head};
    for (const auto& [size, cells] : sizes) {
        Row row = {std::to_string(size)};
        for (const uint32_t depth : depths) {
            const auto found = cells.find(depth);
            for (size_t m = 0; m < table.members.size(); m++)
                row.push_back(found == cells.end() ? "-" : number(found->second->tokens_per_second[m]));
        }
        rows.push_back(std::move(row));
    }
    return text_table(rows);
}

std::string first_tokens(const TuneReport& report) {
    Row head = {"expected time to first token, prompt of"};
    for (const std::string& member : report.table.members) head.push_back(printable(member));
    head.emplace_back("route");
    std::vector<Row> rows = {head};
    for (const uint32_t prompt : tuned_prompts()) {
        Row row = {std::to_string(prompt)};
        for (const std::string& member : report.table.members)
            row.push_back(time_text(expected_seconds(report.table, one_device(member, ""), prompt, 1)));
        row.push_back(time_text(expected_seconds(report.table, report.choice, prompt, 1)));
        rows.push_back(std::move(row));
    }
    return text_table(rows);
}

Json choice_to_json(const RouteChoice& choice) {
    return {{"decode", printable(choice.decode)},
            {"prefill", printable(choice.prefill)},
            {"prefill_min_tokens", choice.split() ? Json(choice.min_tokens) : Json(nullptr)},
            {"reason", printable(choice.reason)}};
}

}  // namespace

std::vector<uint32_t> tuned_prompts() { return {128, 512, 2048, 8192}; }

std::string tune_to_text(const TuneReport& report) {
    std::string text = printable(report.model) + "\n\n" + rates(report.table) + "\n";
    if (report.table.members.size() > 1) text += "a switch costs " + number(report.table.switch_us) + " us\n";
    for (const RouteTrial& trial : report.table.trials)
        text += "prompt of " + std::to_string(trial.prompt) + " tokens on " + printable(trial.prefill) +
                " after tokens on " + printable(trial.decode) + ": " + time_text(trial.seconds) + "\n";
    text += "\nroute: " + printable(report.choice.reason) + "\n";
    if (report.free.decode != report.choice.decode || report.free.prefill != report.choice.prefill)
        text += "without --device: " + printable(report.free.reason) + "\n";
    text += "\n" + first_tokens(report);
    if (!report.stored.empty()) return text + "\nstored in " + printable(report.stored) + "\n";
    const bool one = report.table.members.size() < 2;
    return text + (one ? "\nnot stored: with one device there is nothing to choose; --device and --prefill-device name "
                         "two\n"
                       : "\nnot stored: --dry-run\n");
}

std::string tune_to_json(const TuneReport& report) {
    Json json = Json::parse(route_table_to_json(report.table));
    json.erase("version");
    Json expected = Json::array();
    for (const uint32_t prompt : tuned_prompts()) {
        Json alone = Json::object();
        for (const std::string& member : report.table.members)
            alone[printable(member)] = expected_seconds(report.table, one_device(member, ""), prompt, 1);
        expected.push_back({{"prompt", prompt},
                            {"alone_seconds", std::move(alone)},
                            {"seconds", expected_seconds(report.table, report.choice, prompt, 1)}});
    }
    Json all = {{"model", printable(report.model)},
                {"route", choice_to_json(report.choice)},
                {"route_without_wish", choice_to_json(report.free)},
                {"first_token", std::move(expected)},
                {"stored", report.stored.empty() ? Json(nullptr) : Json(printable(report.stored))}};
    all.update(json);
    return all.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace onebit
