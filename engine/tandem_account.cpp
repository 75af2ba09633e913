#include "engine/tandem_account.h"

#include <algorithm>
#include <mutex>
#include <optional>

#include <nlohmann/json.hpp>

#include "base/log.h"
#include "llama.h"
#include "server/supervisor/heartbeat.h"
#include "tandem/counters.h"

namespace onebit {
namespace {

struct State {
    std::mutex mutex;
    HeartbeatPage* page = nullptr;
    bool has_tandem = false;
    std::vector<ExcludedMember> excluded;
    TandemReport last;
    std::map<int32_t, RequestAccount> accounts;  // by sequence, which is the number of the slot
    std::string error;
};
State& state() {
    static auto* all = new State;  // batches may run until the very end of the process
    return *all;
}

uint64_t place_of(const tandem::Counts& counts, const std::string& member) {
    for (size_t i = 0; i < counts.members.size(); ++i)
        if (counts.members[i].member == member) return i;
    return 0;
}

TandemReport report_of(const tandem::Counts& counts) {
    TandemReport report;
    report.name = counts.tandem;
    for (const tandem::MemberCounts& member : counts.members)
        report.members.push_back({member.member, member.graphs, member.prefill_graphs, member.prefill_tokens,
                                  member.decode_tokens, member.failures, member.dropped});
    report.prefill = place_of(counts, counts.prefill);
    report.decode = place_of(counts, counts.decode);
    report.min_tokens = counts.min_tokens;
    report.handoffs = counts.handoffs;
    report.handoff_us = counts.handoff_us;
    report.repeats = counts.repeats;
    report.refused = counts.refused;
    report.shared_bytes = counts.shared_bytes;
    report.fallbacks.assign(counts.fallbacks.begin(), counts.fallbacks.end());
    return report;
}

// None in a batch that names no sequence, as the one that warms up: it is no request's.
std::map<int32_t, uint64_t> tokens_of(const llama_batch& batch) {
    std::map<int32_t, uint64_t> tokens;
    if (batch.seq_id == nullptr) return tokens;
    for (int32_t i = 0; i < batch.n_tokens; ++i)
        if (batch.n_seq_id[i] > 0) ++tokens[batch.seq_id[i][0]];
    return tokens;
}

// Empty when prompt and answer were computed where they should be.
std::string why_unsplit(const TandemReport& tandem, const RequestAccount& account) {
    if (tandem.members.size() < 2 || tandem.prefill >= tandem.members.size()) return "";
    const TandemMember& prefill = tandem.members[tandem.prefill];
    if (tandem.prefill == tandem.decode) return "the route is " + prefill.name + " for everything";
    const auto used = account.members.find(prefill.name);
    if (used != account.members.end() && used->second.prefill_tokens > 0) return "";
    for (const TandemMember& member : tandem.members)
        if (member.dropped) return member.name + " is not used any more, after repeated errors";
    if (!account.fallbacks.empty()) return account.fallbacks.begin()->first + " does not run on its member";
    return "no batch of at least " + std::to_string(tandem.min_tokens) + " tokens";
}

std::string describe(const RequestAccount& account) {
    std::string text;
    for (const auto& [member, tokens] : account.members)
        text += (text.empty() ? "" : ", ") + member + " " + std::to_string(tokens.prefill_tokens) + " in prefill and " +
                std::to_string(tokens.decode_tokens) + " in decode";
    for (const auto& [reason, graphs] : account.fallbacks)
        text += "; " + reason + ": " + std::to_string(graphs) + " graphs elsewhere";
    return text;
}

}  // namespace

void share_out(const TandemReport& before, const TandemReport& after, const std::map<int32_t, uint64_t>& tokens,
               std::map<int32_t, RequestAccount>* accounts) {
    uint64_t total = 0;
    for (const auto& [sequence, count] : tokens) total += count;
    if (total == 0) return;
    const int32_t largest = std::max_element(tokens.begin(), tokens.end(), [](const auto& a, const auto& b) {
                                return a.second < b.second;
                            })->first;
    size_t kinds = 0;
    const auto share = [&](const std::string& member, uint64_t difference, uint64_t RequestAccount::Member::*counter) {
        if (difference == 0) return;
        ++kinds;
        uint64_t passed = 0, given = 0;
        for (const auto& [sequence, count] : tokens) {
            passed += count;
            const uint64_t until = difference / total * passed + difference % total * passed / total;
            (*accounts)[sequence].members[member].*counter += until - given;
            given = until;
        }
    };
    for (size_t i = 0; i < after.members.size(); ++i) {
        const TandemMember none;
        const TandemMember& old = i < before.members.size() ? before.members[i] : none;
        const TandemMember& now = after.members[i];
        share(now.name, now.prefill_tokens - old.prefill_tokens, &RequestAccount::Member::prefill_tokens);
        share(now.name, now.decode_tokens - old.decode_tokens, &RequestAccount::Member::decode_tokens);
    }
    (*accounts)[largest].handoffs += after.handoffs - before.handoffs;
    (*accounts)[largest].handoff_us += after.handoff_us - before.handoff_us;
    for (const auto& [reason, count] : after.fallbacks) {
        uint64_t old = 0;
        for (const auto& [known, times] : before.fallbacks)
            if (known == reason) old = times;
        if (count == old) continue;
        for (const auto& [sequence, part] : tokens) (*accounts)[sequence].fallbacks[reason] += count - old;
    }
    if (kinds > 1 && tokens.size() > 1)
        for (const auto& [sequence, part] : tokens) (*accounts)[sequence].mixed = true;
}

void install_tandem_account(HeartbeatPage& page, const std::vector<ExcludedMember>& excluded) {
    const auto all = tandem::tandem_counts();
    State& here = state();
    const std::lock_guard lock(here.mutex);
    here.page = &page;
    here.excluded = excluded;
    here.has_tandem = !all.empty();
    if (all.empty()) return;
    here.last = report_of(all.front());
    write_tandem(page.tandem, here.last);
    tandem::watch_running_member(&page.running_member);
}

void account_batch(const llama_batch& batch, bool failed) {
    State& here = state();
    if (!here.has_tandem) return;
    const auto all = tandem::tandem_counts();
    const auto tokens = tokens_of(batch);
    const std::lock_guard lock(here.mutex);
    TandemReport now = report_of(all.front());
    share_out(here.last, now, tokens, &here.accounts);
    here.last = std::move(now);
    here.error = failed ? all.front().last_error : "";
    write_tandem(here.page->tandem, here.last);
}

std::string account_json(int32_t slot) {
    State& here = state();
    const std::lock_guard lock(here.mutex);
    if (!here.has_tandem && here.excluded.empty()) return "";
    nlohmann::json object = nlohmann::json::object();
    for (const ExcludedMember& one : here.excluded) object["excluded"][one.member] = one.reason;
    if (here.has_tandem) {
        const RequestAccount account = here.accounts[slot];
        object["members"] = nlohmann::json::object();
        for (const auto& [member, tokens] : account.members)
            object["members"][member] = {{"prefill_tokens", tokens.prefill_tokens},
                                         {"decode_tokens", tokens.decode_tokens}};
        object["handoffs"] = account.handoffs;
        object["handoff_ms"] = static_cast<double>(account.handoff_us) / 1000;
        object["fallbacks"] = account.fallbacks;
        object["mixed"] = account.mixed;
        const std::string why = why_unsplit(here.last, account);
        if (!why.empty()) object["unsplit"] = why;
        log_verbose("tandem", "slot " + std::to_string(slot) + ": " + describe(account) +
                                  (why.empty() ? "" : "; not split: " + why));
    }
    return object.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

void forget_slot(int32_t slot) {
    State& here = state();
    const std::lock_guard lock(here.mutex);
    here.accounts.erase(slot);
}

std::string last_batch_error() {
    State& here = state();
    const std::lock_guard lock(here.mutex);
    return here.error;
}

}  // namespace onebit
