#include "server/supervisor/tandem_table.h"

#include <algorithm>

#include "server/supervisor/shared_text.h"

namespace onebit {
namespace {

constexpr auto kRelaxed = std::memory_order_relaxed;
// who sees a word of a change sees the odd version before it too
constexpr auto kPublish = std::memory_order_release, kSee = std::memory_order_acquire;
constexpr int kTries = 100;

size_t bounded(const TandemTable::Word& count, size_t most) { return std::min<uint64_t>(count.load(kSee), most); }

}  // namespace

void write_tandem(TandemTable& table, const TandemReport& report) {
    const uint64_t version = table.version.load(kRelaxed) | 1;
    table.version.store(version, kRelaxed);
    write_shared_text(table.name, report.name);
    table.owner.store(report.owner, kPublish);
    table.prefill.store(report.prefill, kPublish);
    table.decode.store(report.decode, kPublish);
    table.min_tokens.store(report.min_tokens, kPublish);
    table.handoffs.store(report.handoffs, kPublish);
    table.handoff_us.store(report.handoff_us, kPublish);
    table.repeats.store(report.repeats, kPublish);
    table.refused.store(report.refused, kPublish);
    table.shared_bytes.store(report.shared_bytes, kPublish);
    const size_t members = std::min(report.members.size(), TandemTable::kMembers);
    for (size_t i = 0; i < members; i++) {
        TandemTable::Member& to = table.members[i];
        const TandemMember& from = report.members[i];
        write_shared_text(to.name, from.name);
        to.graphs.store(from.graphs, kPublish);
        to.prefill_graphs.store(from.prefill_graphs, kPublish);
        to.prefill_tokens.store(from.prefill_tokens, kPublish);
        to.decode_tokens.store(from.decode_tokens, kPublish);
        to.errors.store(from.errors, kPublish);
        to.dropped.store(from.dropped, kPublish);
    }
    table.member_count.store(members, kPublish);
    const size_t reasons = std::min(report.fallbacks.size(), TandemTable::kReasons);
    for (size_t i = 0; i < reasons; i++) {
        write_shared_text(table.reasons[i].text, report.fallbacks[i].first);
        table.reasons[i].count.store(report.fallbacks[i].second, kPublish);
    }
    if (report.fallbacks.size() > reasons) {
        uint64_t others = 0;
        for (size_t i = reasons - 1; i < report.fallbacks.size(); i++) others += report.fallbacks[i].second;
        write_shared_text(table.reasons[reasons - 1].text, "others");
        table.reasons[reasons - 1].count.store(others, kPublish);
    }
    table.reason_count.store(reasons, kPublish);
    table.version.store(version + 1, std::memory_order_release);
}

TandemReport read_tandem(const TandemTable& table) {
    for (int i = 0; i < kTries; i++) {
        const uint64_t before = table.version.load(std::memory_order_acquire);
        if (before & 1) continue;
        TandemReport report;
        report.name = read_shared_text(table.name);
        report.owner = table.owner.load(kSee);
        report.prefill = table.prefill.load(kSee);
        report.decode = table.decode.load(kSee);
        report.min_tokens = table.min_tokens.load(kSee);
        report.handoffs = table.handoffs.load(kSee);
        report.handoff_us = table.handoff_us.load(kSee);
        report.repeats = table.repeats.load(kSee);
        report.refused = table.refused.load(kSee);
        report.shared_bytes = table.shared_bytes.load(kSee);
        for (size_t row = 0; row < bounded(table.member_count, TandemTable::kMembers); row++) {
            const TandemTable::Member& from = table.members[row];
            report.members.push_back({read_shared_text(from.name), from.graphs.load(kSee),
                                      from.prefill_graphs.load(kSee), from.prefill_tokens.load(kSee),
                                      from.decode_tokens.load(kSee), from.errors.load(kSee),
                                      from.dropped.load(kSee) != 0});
        }
        for (size_t row = 0; row < bounded(table.reason_count, TandemTable::kReasons); row++)
            report.fallbacks.emplace_back(read_shared_text(table.reasons[row].text),
                                          table.reasons[row].count.load(kSee));
        if (table.version.load(kRelaxed) == before) return report;
    }
    return {};
}

}  // namespace onebit
