#include <algorithm>
#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "engine/bench.h"
#include "engine/devices_text.h"

namespace onebit {
namespace {

using Rows = std::vector<std::vector<std::string>>;

// Three significant digits of a speed: more is noise.
std::string speed(double value) {
    char text[32];
    std::snprintf(text, sizeof text, value < 10 ? "%.2f" : value < 100 ? "%.1f" : "%.0f", value);
    return text;
}

std::string number(double value, const char* format) {
    char text[32];
    std::snprintf(text, sizeof text, format, value);
    return text;
}

const BenchCheck* check_of(const BenchReport& report, const std::string& device) {
    const auto found =
        std::ranges::find_if(report.checks, [&device](const BenchCheck& check) { return check.device == device; });
    return found == report.checks.end() ? nullptr : &*found;
}

std::string verdict(const BenchReport& report, const std::string& device) {
    const BenchCheck* check = check_of(report, device);
    if (check != nullptr) return check->faults.empty() ? "yes" : "NO";
    if (report.checks.empty()) return "not checked";
    return device == "CPU" ? "reference" : "not checked";
}

Rows speed_rows(const BenchReport& report) {
    Rows rows{{"device", "phase", "tokens", "depth", "tokens/s", "quartiles", "least-most", "correct"}};
    for (const BenchCell& cell : report.cells) {
        const Spread spread = spread_of(cell.samples);
        rows.push_back({cell.device, cell.phase == BenchPhase::prefill ? "prefill" : "decode",
                        std::to_string(cell.tokens), std::to_string(cell.depth), speed(spread.median),
                        speed(spread.lower_quartile) + "-" + speed(spread.upper_quartile),
                        speed(spread.least) + "-" + speed(spread.most), verdict(report, cell.device)});
    }
    return rows;
}

Rows check_rows(const BenchReport& report) {
    Rows rows{
        {"device", "positions", "mean KL", "largest KL", "top-1 equal", "ties", "perplexity", "CPU's", "correct"}};
    for (const BenchCheck& check : report.checks) {
        const Comparison& sum = check.comparison;
        rows.push_back({check.device, std::to_string(sum.tokens), number(sum.mean_kl, "%.6f"),
                        number(sum.max_kl, "%.6f"), number(sum.top1_agreement * 100, "%.2f %%"),
                        std::to_string(sum.ties), number(sum.perplexity, "%.4f"),
                        number(sum.perplexity_reference, "%.4f"), check.faults.empty() ? "yes" : "NO"});
    }
    return rows;
}

const char* const served_title = "Through 1bit serve, requests of all clients begun at once, prompts in no cache";

Rows served_rows(const BenchReport& report) {
    Rows rows{{"device", "clients", "prompt", "generated", "tokens/s of all", "least-most", "decode of each",
               "first token, ms", "correct"}};
    for (const ServedCell& cell : report.served) {
        const Spread all = spread_of(cell.tokens_per_second);
        rows.push_back({cell.device, std::to_string(cell.clients), std::to_string(cell.prompt),
                        std::to_string(cell.generate), speed(all.median), speed(all.least) + "-" + speed(all.most),
                        speed(spread_of(cell.decode_tokens_per_second).median),
                        speed(spread_of(cell.first_token_ms).median), verdict(report, cell.device)});
    }
    return rows;
}

std::string faults_text(const BenchReport& report, const std::string& before) {
    std::string text;
    for (const BenchCheck& check : report.checks) {
        const std::string place = before + check.device + ": ";
        for (const std::string& fault : check.faults) text.append(place).append(fault).append("\n");
    }
    return text;
}

std::string check_title(const BenchReport& report) {
    return "Against the CPU, over the same tokens, windows of " + std::to_string(report.checked_window) + " tokens";
}

}  // namespace

bool BenchReport::right() const {
    return std::ranges::all_of(checks, [](const BenchCheck& check) { return check.faults.empty(); });
}

std::string bench_to_text(const BenchReport& report) {
    std::string text;
    for (const auto& [key, value] : report.conditions) text += key + ": " + printable(value) + "\n";
    text += "\n" + text_table(speed_rows(report));
    if (!report.served.empty()) text += "\n" + std::string(served_title) + ":\n" + text_table(served_rows(report));
    if (!report.checks.empty()) {
        text += "\n" + check_title(report) + ":\n" + text_table(check_rows(report)) + faults_text(report, "WRONG  ");
    }
    return text;
}

std::string bench_to_markdown(const BenchReport& report) {
    std::string text = "# Bench of " + printable(report.model) + "\n\n" + markdown_table(speed_rows(report));
    if (!report.served.empty()) {
        text += "\n" + std::string(served_title) + ":\n\n" + markdown_table(served_rows(report));
    }
    if (!report.checks.empty()) {
        text += "\n" + check_title(report) + ":\n\n" + markdown_table(check_rows(report));
        const std::string wrong = faults_text(report, "- ");
        if (!wrong.empty()) text += "\nWrong:\n\n" + wrong;
    }
    text += "\nConditions:\n\n";
    for (const auto& [key, value] : report.conditions) text += "- " + key + ": " + printable(value) + "\n";
    return text;
}

std::string bench_to_json(const BenchReport& report) {
    using Json = nlohmann::ordered_json;
    // JSON has no NaN and no infinity
    const auto finite = [](double value) { return std::isfinite(value) ? Json(value) : Json(nullptr); };
    Json conditions = Json::array(), cells = Json::array(), served = Json::array(), checks = Json::array();
    for (const auto& [key, value] : report.conditions) {
        conditions.push_back({{"name", key}, {"value", printable(value)}});
    }
    for (const BenchCell& cell : report.cells) {
        const Spread spread = spread_of(cell.samples);
        cells.push_back({{"device", cell.device},
                         {"phase", cell.phase == BenchPhase::prefill ? "prefill" : "decode"},
                         {"tokens", cell.tokens},
                         {"depth", cell.depth},
                         {"tokens_per_second", spread.median},
                         {"lower_quartile", spread.lower_quartile},
                         {"upper_quartile", spread.upper_quartile},
                         {"least", spread.least},
                         {"most", spread.most},
                         {"samples", cell.samples},
                         {"correct", verdict(report, cell.device)}});
    }
    for (const ServedCell& cell : report.served) {
        served.push_back({{"device", cell.device},
                          {"clients", cell.clients},
                          {"prompt_tokens", cell.prompt},
                          {"generated_tokens", cell.generate},
                          {"tokens_per_second", spread_of(cell.tokens_per_second).median},
                          {"decode_tokens_per_second", spread_of(cell.decode_tokens_per_second).median},
                          {"first_token_ms", spread_of(cell.first_token_ms).median},
                          {"samples", cell.tokens_per_second}});
    }
    for (const BenchCheck& check : report.checks) {
        const Comparison& sum = check.comparison;
        checks.push_back({{"device", check.device},
                          {"tokens", sum.tokens},
                          {"not_finite", sum.not_finite},
                          {"ties", sum.ties},
                          {"mean_kl", finite(sum.mean_kl)},
                          {"max_kl", finite(sum.max_kl)},
                          {"top1_agreement", finite(sum.top1_agreement)},
                          {"perplexity", finite(sum.perplexity)},
                          {"perplexity_cpu", finite(sum.perplexity_reference)},
                          {"faults", check.faults}});
    }
    return Json{{"model", printable(report.model)},    {"correct", report.right()},
                {"conditions", std::move(conditions)}, {"results", std::move(cells)},
                {"served", std::move(served)},         {"checks", std::move(checks)}}
               .dump(2) +
           "\n";
}

}  // namespace onebit
