#include <algorithm>
#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "engine/verify.h"

namespace onebit {
namespace {

using Json = nlohmann::ordered_json;
using Row = std::vector<std::string>;

std::string number(double value) {
    char text[32];
    std::snprintf(text, sizeof text, "%.3g", value);
    return text;
}

std::string tokens_text(const std::vector<MemberTokens>& tokens) {
    std::string text;
    for (const MemberTokens& member : tokens) {
        text += (text.empty() ? "" : ", ") + printable(member.member) + " " + std::to_string(member.prefill) + "+" +
                std::to_string(member.decode);
    }
    return text.empty() ? "-" : text;
}

std::string place(const std::optional<VerifyDivergence>& divergence) {
    if (!divergence) return "-";
    return "slot " + std::to_string(divergence->slot) + ", token " + std::to_string(divergence->position);
}

std::vector<Row> rows_of(const VerifyReport& report) {
    std::vector<Row> rows;
    const bool third = !report.third.empty(), members = !report.tokens.empty();
    Row head = {"prompt", "slots", "mean KL", "largest KL"};
    if (third) head.insert(head.end(), {"third's mean", "largest"});
    head.insert(head.end(), {"other best", "ties", "first", "perplexity", "reference"});
    if (members) head.push_back("prefill+decode");
    rows.push_back(head);
    for (const VerifyCase& one : report.cases) {
        const Comparison& tested = one.tested;
        Row row = {std::to_string(one.prompt), std::to_string(one.slots), number(tested.mean_kl),
                   number(tested.max_kl)};
        if (third) {
            const Comparison compared = one.third.value_or(Comparison{});
            row.insert(row.end(), {number(compared.mean_kl), number(compared.max_kl)});
        }
        row.insert(row.end(), {std::to_string(one.different) + " of " +
                                   std::to_string(tested.tokens - tested.not_finite - tested.ties),
                               std::to_string(tested.ties), place(one.first_divergence), number(tested.perplexity),
                               number(tested.perplexity_reference)});
        if (members) row.push_back(tokens_text(one.tokens));
        rows.push_back(row);
    }
    return rows;
}

std::string table(const std::vector<Row>& rows) {
    std::vector<size_t> widths(rows.front().size(), 0);
    for (const Row& row : rows) {
        for (size_t i = 0; i < row.size(); i++) widths[i] = std::max(widths[i], row[i].size());
    }
    std::string text;
    for (const Row& row : rows) {
        for (size_t i = 0; i < row.size(); i++) {
            text += row[i];
            text += i + 1 < row.size() ? std::string(widths[i] - row[i].size() + 2, ' ') : "\n";
        }
    }
    return text;
}

// JSON has no NaN and no infinity.
Json finite(double value) { return std::isfinite(value) ? Json(value) : Json(nullptr); }

Json to_json(const Comparison& comparison) {
    return {{"positions", comparison.tokens},
            {"not_finite", comparison.not_finite},
            {"ties", comparison.ties},
            {"mean_kl", finite(comparison.mean_kl)},
            {"max_kl", finite(comparison.max_kl)},
            {"top1_agreement", finite(comparison.top1_agreement)},
            {"perplexity", finite(comparison.perplexity)},
            {"perplexity_reference", finite(comparison.perplexity_reference)}};
}

Json to_json(const std::vector<MemberTokens>& tokens) {
    Json list = Json::array();
    for (const MemberTokens& member : tokens) {
        list.push_back({{"member", printable(member.member)}, {"prefill", member.prefill}, {"decode", member.decode}});
    }
    return list;
}

Json to_json(const std::vector<std::string>& texts) {
    Json list = Json::array();
    for (const std::string& text : texts) list.push_back(printable(text));
    return list;
}

Json to_json(const VerifyCase& one) {
    Json json = {{"prompt", one.prompt}, {"slots", one.slots}, {"submitted_tokens", one.submitted}};
    json["tested"] = to_json(one.tested);
    json["third"] = one.third ? to_json(*one.third) : Json(nullptr);
    json["different"] = one.different;
    json["first_divergence"] =
        one.first_divergence ? Json{{"slot", one.first_divergence->slot}, {"token", one.first_divergence->position}}
                             : Json(nullptr);
    json["tokens"] = to_json(one.tokens);
    json["faults"] = to_json(one.faults);
    return json;
}

}  // namespace

std::string verify_to_text(const VerifyReport& report) {
    std::string text;
    for (const auto& [key, value] : report.conditions) text += key + ": " + printable(value) + "\n";
    text += "tested: " + printable(report.tested) + "\nreference: " + printable(report.reference) + "\n";
    if (!report.third.empty()) text += "third: " + printable(report.third) + "\n";
    if (!report.tokens.empty()) text += "tokens, prefill+decode: " + tokens_text(report.tokens) + "\n";
    if (!report.cases.empty()) text += "\n" + table(rows_of(report));
    std::string wrong;
    for (const VerifyCase& one : report.cases) {
        for (const std::string& fault : one.faults) {
            wrong += "WRONG  prompt " + std::to_string(one.prompt) + ", slots " + std::to_string(one.slots) + ": " +
                     printable(fault) + "\n";
        }
    }
    for (const std::string& fault : report.faults) wrong += "WRONG  " + printable(fault) + "\n";
    return text + "\n" +
           (report.right()  ? "the same within the limits\n"
            : wrong.empty() ? "nothing was compared\n"
                            : wrong);
}

std::string verify_to_json(const VerifyReport& report) {
    Json conditions = Json::array(), cases = Json::array();
    for (const auto& [key, value] : report.conditions) {
        conditions.push_back({{"name", key}, {"value", printable(value)}});
    }
    for (const VerifyCase& one : report.cases) cases.push_back(to_json(one));
    const VerifyLimits& limits = report.limits;
    Json json = {{"model", printable(report.model)},
                 {"tested", printable(report.tested)},
                 {"reference", printable(report.reference)},
                 {"third", report.third.empty() ? Json(nullptr) : Json(printable(report.third))},
                 {"right", report.right()},
                 {"split", report.split}};
    json["limits"] = {{"mean_kl", limits.mean_kl},       {"max_kl", limits.max_kl},
                      {"factor", limits.factor},         {"one_different_in", limits.one_in},
                      {"tie_margin", limits.tie_margin}, {"perplexity", limits.perplexity}};
    json["usual"] = report.usual ? to_json(*report.usual) : Json(nullptr);
    json["tokens"] = to_json(report.tokens);
    json["faults"] = to_json(report.faults);
    json["cases"] = cases;
    json["conditions"] = conditions;
    return json.dump(2) + "\n";
}

}  // namespace onebit
