#include "server/supervisor/metrics.h"

#include <algorithm>
#include <cctype>
#include <cstdio>
#include <set>

namespace onebit {
namespace {

std::string number(double value) {
    char text[32];
    std::snprintf(text, sizeof(text), "%.9g", value);
    return text;
}

void family(std::string& out, std::string_view name, std::string_view type, std::string_view help) {
    out.append("# HELP ").append(name).append(" ").append(help).append("\n# TYPE ").append(name).append(" ");
    out.append(type).append("\n");
}

void sample(std::string& out, std::string_view name, const std::string& model, double value,
            std::string_view more = {}) {
    out.append(name).append("{model=\"").append(metric_label(model)).append("\"").append(more).append("} ");
    out.append(number(value)).append("\n");
}

std::string label(std::string_view name, std::string_view value) {
    return "," + std::string(name) + "=\"" + metric_label(value) + "\"";
}

// What the tandems did, of the engine processes that run now.
void tandem_families(std::string& out, const std::vector<EngineView>& engines) {
    const auto each_engine = [&](const char* name, const char* type, const char* help,
                                 double (*value)(const TandemReport&)) {
        family(out, name, type, help);
        for (const EngineView& engine : engines)
            if (!engine.tandem.name.empty()) sample(out, name, engine.id, value(engine.tandem));
    };
    const auto each_phase = [&](const char* name, const char* help, uint64_t (*prefill)(const TandemMember&),
                                uint64_t (*decode)(const TandemMember&)) {
        family(out, name, "counter", help);
        for (const EngineView& engine : engines)
            for (const TandemMember& member : engine.tandem.members) {
                const std::string who = label("member", member.name);
                sample(out, name, engine.id, static_cast<double>(prefill(member)), who + label("phase", "prefill"));
                sample(out, name, engine.id, static_cast<double>(decode(member)), who + label("phase", "decode"));
            }
    };
    each_phase(
        "onebit_tandem_graphs_total", "Graphs that a member of the tandem computed, by the phase of their batch.",
        [](const TandemMember& m) { return m.prefill_graphs; },
        [](const TandemMember& m) { return m.graphs - std::min(m.graphs, m.prefill_graphs); });
    each_phase(
        "onebit_tandem_tokens_total", "Tokens of those graphs.", [](const TandemMember& m) { return m.prefill_tokens; },
        [](const TandemMember& m) { return m.decode_tokens; });
    family(out, "onebit_tandem_errors_total", "counter",
           "Graphs that ended in an error or in a value that is no number.");
    for (const EngineView& engine : engines)
        for (const TandemMember& member : engine.tandem.members)
            sample(out, "onebit_tandem_errors_total", engine.id, static_cast<double>(member.errors),
                   label("member", member.name));
    family(out, "onebit_tandem_dropped", "gauge", "1 for a member that is not used any more after repeated errors.");
    for (const EngineView& engine : engines)
        for (const TandemMember& member : engine.tandem.members)
            sample(out, "onebit_tandem_dropped", engine.id, member.dropped ? 1 : 0, label("member", member.name));
    family(out, "onebit_tandem_fallbacks_total", "counter",
           "Graphs that did not run whole on the member of their phase, by reason.");
    for (const EngineView& engine : engines)
        for (const auto& [reason, count] : engine.tandem.fallbacks)
            sample(out, "onebit_tandem_fallbacks_total", engine.id, static_cast<double>(count),
                   label("reason", reason));
    each_engine("onebit_tandem_refused_graphs_total", "counter",
                "Graphs that no member could run, or strict allowed none.",
                [](const TandemReport& t) { return static_cast<double>(t.refused); });
    each_engine("onebit_tandem_handoffs_total", "counter", "Changes of the member that computes.",
                [](const TandemReport& t) { return static_cast<double>(t.handoffs); });
    each_engine("onebit_tandem_handoff_seconds_total", "counter", "Time spent waiting at those changes.",
                [](const TandemReport& t) { return static_cast<double>(t.handoff_us) / 1e6; });
    each_engine("onebit_tandem_repeats_total", "counter", "Graphs computed again on another member after an error.",
                [](const TandemReport& t) { return static_cast<double>(t.repeats); });
    each_engine("onebit_tandem_shared_bytes", "gauge", "Memory that the members share, counted once.",
                [](const TandemReport& t) { return static_cast<double>(t.shared_bytes); });
}

// Members that took their process with them; kept over restarts of the engine.
void member_families(std::string& out, const std::vector<EngineView>& engines) {
    family(out, "onebit_engine_member_failures_total", "counter",
           "Engine processes that ended in a member of their tandem, by crash or hang.");
    for (const EngineView& engine : engines)
        for (const auto& [what, count] : engine.status.member_failures)
            sample(out, "onebit_engine_member_failures_total", engine.id, static_cast<double>(count),
                   label("member", what.first) + label("kind", what.second));
    family(out, "onebit_engine_member_excluded", "gauge", "1 for a member that the engine does without.");
    for (const EngineView& engine : engines) {
        std::set<std::string> seen;
        for (const ExcludedMember& one : engine.status.excluded)
            if (seen.insert(one.member).second)
                sample(out, "onebit_engine_member_excluded", engine.id, 1, label("member", one.member));
    }
}

bool name_char(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == ':'; }

// "name_sum" and its like belong to the family "name" of a histogram or summary.
std::string family_of(const std::string& name, const std::map<std::string, size_t>& known) {
    for (std::string_view suffix : {"_bucket", "_sum", "_count"}) {
        if (!name.ends_with(suffix)) continue;
        std::string base = name.substr(0, name.size() - suffix.size());
        if (known.count(base)) return base;
    }
    return name;
}

}  // namespace

std::string metric_label(std::string_view value) {
    std::string result;
    for (char c : value) {
        if (c == '\\' || c == '"') result += '\\';
        if (c == '\n')
            result += "\\n";
        else if (static_cast<unsigned char>(c) >= 0x20)
            result += c;
    }
    return result;
}

std::string merge_engine_metrics(const std::vector<std::pair<std::string, std::string>>& texts) {
    struct Family {
        std::string help, type, samples;
    };
    std::vector<std::pair<std::string, Family>> families;
    std::map<std::string, size_t> index;
    auto get = [&](const std::string& name) -> Family& {
        auto [at, added] = index.emplace(name, families.size());
        if (added) families.emplace_back(name, Family{});
        return families[at->second].second;
    };
    for (const auto& [model, text] : texts) {
        std::string label = "model=\"" + metric_label(model) + "\"";
        size_t begin = 0;
        while (begin < text.size()) {
            size_t end = std::min(text.find('\n', begin), text.size());
            std::string line = text.substr(begin, end - begin);
            begin = end + 1;
            if (!line.empty() && line.back() == '\r') line.pop_back();
            if (line.starts_with("# HELP ") || line.starts_with("# TYPE ")) {
                size_t stop = line.find(' ', 7);
                if (stop == std::string::npos || stop == 7) continue;
                Family& entry = get(line.substr(7, stop - 7));
                std::string& slot = line[2] == 'H' ? entry.help : entry.type;
                if (slot.empty()) slot = line + "\n";
                continue;
            }
            size_t stop = 0;
            while (stop < line.size() && name_char(line[stop])) stop++;
            if (stop == 0 || stop == line.size() || (line[stop] != ' ' && line[stop] != '{')) continue;
            std::string name = line.substr(0, stop);
            std::string rest = line.substr(stop);
            Family& entry = get(family_of(name, index));
            entry.samples.append(name).append("{").append(label);
            if (rest[0] == '{')
                entry.samples.append(rest.starts_with("{}") ? "" : ",").append(rest, 1).append("\n");
            else
                entry.samples.append("}").append(rest).append("\n");
        }
    }
    std::string out;
    for (const auto& [name, entry] : families)
        if (!entry.samples.empty()) out += entry.help + entry.type + entry.samples;
    return out;
}

void Metrics::done(const RequestRecord& record) {
    in_flight_.fetch_sub(1, std::memory_order_relaxed);
    std::lock_guard lock(mutex_);
    requests_[{record.model, record.status}]++;
    Sums& sums = sums_[record.model];
    sums.bytes_in += record.bytes_in;
    sums.bytes_out += record.bytes_out;
    sums.direct_bytes += record.direct_bytes;
    sums.seconds += record.seconds;
    if (record.first_byte_seconds < 0) return;
    size_t bucket = 0;
    while (bucket < kBuckets.size() && record.first_byte_seconds > kBuckets[bucket]) bucket++;
    sums.first_byte.counts[bucket]++;
    sums.first_byte.sum += record.first_byte_seconds;
    sums.first_byte.count++;
}

std::string Metrics::render(const std::vector<EngineView>& engines,
                            const std::vector<std::pair<std::string, std::string>>& engine_texts) const {
    std::string out;
    std::lock_guard lock(mutex_);
    family(out, "onebit_requests_total", "counter",
           "Requests answered, by model (empty: the supervisor itself) and HTTP status.");
    for (const auto& [key, count] : requests_)
        sample(out, "onebit_requests_total", key.first, static_cast<double>(count),
               ",status=\"" + std::to_string(key.second) + "\"");
    family(out, "onebit_request_errors_total", "counter", "Requests answered with a status of 500 or more.");
    std::map<std::string, uint64_t> errors;
    for (const auto& [key, count] : requests_) errors[key.first] += key.second >= 500 ? count : 0;
    for (const auto& [model, count] : errors)
        sample(out, "onebit_request_errors_total", model, static_cast<double>(count));
    family(out, "onebit_requests_in_flight", "gauge", "Requests being answered now.");
    out += "onebit_requests_in_flight " + std::to_string(in_flight()) + "\n";
    family(out, "onebit_received_bytes_total", "counter", "Bytes of request bodies.");
    for (const auto& [model, sums] : sums_)
        sample(out, "onebit_received_bytes_total", model, static_cast<double>(sums.bytes_in));
    family(out, "onebit_sent_bytes_total", "counter", "Bytes of response bodies.");
    for (const auto& [model, sums] : sums_)
        sample(out, "onebit_sent_bytes_total", model, static_cast<double>(sums.bytes_out));
    family(out, "onebit_sent_directly_bytes_total", "counter",
           "Of these the ones that engines wrote to clients themselves.");
    for (const auto& [model, sums] : sums_)
        sample(out, "onebit_sent_directly_bytes_total", model, static_cast<double>(sums.direct_bytes));
    family(out, "onebit_request_seconds_total", "counter",
           "Time from the head of a request to the end of its response.");
    for (const auto& [model, sums] : sums_) sample(out, "onebit_request_seconds_total", model, sums.seconds);
    family(out, "onebit_first_byte_seconds", "histogram",
           "Time from the head of a request to the first byte of the engine's response.");
    for (const auto& [model, sums] : sums_) {
        const Times& times = sums.first_byte;
        if (!times.count) continue;
        uint64_t below = 0;
        for (size_t i = 0; i < kBuckets.size(); i++) {
            below += times.counts[i];
            sample(out, "onebit_first_byte_seconds_bucket", model, static_cast<double>(below),
                   ",le=\"" + number(kBuckets[i]) + "\"");
        }
        sample(out, "onebit_first_byte_seconds_bucket", model, static_cast<double>(times.count), ",le=\"+Inf\"");
        sample(out, "onebit_first_byte_seconds_sum", model, times.sum);
        sample(out, "onebit_first_byte_seconds_count", model, static_cast<double>(times.count));
    }

    struct Column {
        const char *name, *type, *help;
        double (*value)(const EngineView&);
    };
    static constexpr Column kColumns[] = {
        {"onebit_engine_ready", "gauge", "1 while the engine serves.",
         [](const EngineView& e) { return e.status.state == EngineState::ready ? 1.0 : 0.0; }},
        {"onebit_engine_restarts_total", "counter", "Restarts of the engine after a crash or a hang.",
         [](const EngineView& e) { return static_cast<double>(e.status.restarts); }},
        {"onebit_engine_hangs_total", "counter", "Times the engine was ended because it made no progress.",
         [](const EngineView& e) { return static_cast<double>(e.status.hangs); }},
        {"onebit_engine_loads_total", "counter", "Times the model was loaded.",
         [](const EngineView& e) { return static_cast<double>(e.loads); }},
        {"onebit_engine_load_seconds", "gauge", "Time that the last load took.",
         [](const EngineView& e) { return e.load_seconds; }},
        {"onebit_engine_resident_bytes", "gauge", "Resident memory of the engine's process, measured.",
         [](const EngineView& e) { return static_cast<double>(e.status.resident_bytes); }},
        {"onebit_engine_cpu_seconds_total", "counter", "CPU time of the engine's process.",
         [](const EngineView& e) { return static_cast<double>(e.status.cpu_milliseconds) / 1000; }},
        {"onebit_engine_graphs_total", "counter", "Graphs computed by the engine since its start.",
         [](const EngineView& e) { return static_cast<double>(e.status.graphs); }},
        {"onebit_engine_requests_in_flight", "gauge", "Requests in the engine now.",
         [](const EngineView& e) { return static_cast<double>(e.requests); }},
    };
    if (!engines.empty())
        for (const Column& column : kColumns) {
            family(out, column.name, column.type, column.help);
            for (const EngineView& engine : engines) sample(out, column.name, engine.id, column.value(engine));
        }
    if (!engines.empty()) {
        tandem_families(out, engines);
        member_families(out, engines);
    }
    out += merge_engine_metrics(engine_texts);
    return out;
}

}  // namespace onebit
