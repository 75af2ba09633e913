#include "server/supervisor/tandem_table.h"

#include <algorithm>

#include "server/supervisor/shared_text.h"

namespace onebit {
namespace {

constexpr auto kRelaxed = std::memory_order_relaxed;
constexpr int kTries = 100;

size_t bounded(const TandemTable::Word& count, size_t most) { return std::min<uint64_t>(count.load(kRelaxed), most); }

}  // namespace

void write_tandem(TandemTable& table, const TandemReport& report) {
    const uint64_t version = table.version.load(kRelaxed) | 1;
    table.version.store(version, kRelaxed);
    std::atomic_thread_fence(std::memory_order_release);
    write_shared_text(table.name, report.name);
    table.owner.store(report.owner, kRelaxed);
    table.prefill.store(report.prefill, kRelaxed);
    table.decode.store(report.decode, kRelaxed);
    table.min_tokens.store(report.min_tokens, kRelaxed);
    table.handoffs.store(report.handoffs, kRelaxed);
    table.handoff_us.store(report.handoff_us, kRelaxed);
    table.repeats.store(report.repeats, kRelaxed);
    table.refused.store(report.refused, kRelaxed);
    table.shared_bytes.store(report.shared_bytes, kRelaxed);
    const size_t members = std::min(report.members.size(), TandemTable::kMembers);
    for (size_t i = 0; i < members; i++) {
        TandemTable::Member& to = table.members[i];
        const TandemMember& from = report.members[i];
        write_shared_text(to.name, from.name);
        to.graphs.store(from.graphs, kRelaxed);
        to.prefill_graphs.store(from.prefill_graphs, kRelaxed);
        to.prefill_tokens.store(from.prefill_tokens, kRelaxed);
        to.decode_tokens.store(from.decode_tokens, kRelaxed);
        to.errors.store(from.errors, kRelaxed);
        to.dropped.store(from.dropped, kRelaxed);
    }
    table.member_count.store(members, kRelaxed);
    const size_t reasons = std::min(report.fallbacks.size(), TandemTable::kReasons);
    for (size_t i = 0; i < reasons; i++) {
        write_shared_text(table.reasons[i].text, report.fallbacks[i].first);
        table.reasons[i].count.store(report.fallbacks[i].second, kRelaxed);
    }
    if (report.fallbacks.size() > reasons) {
        uint64_t others = 0;
        for (size_t i = reasons - 1; i < report.fallbacks.size(); i++) others += report.fallbacks[i].second;
        write_shared_text(table.reasons[reasons - 1].text, "others");
        table.reasons[reasons - 1].count.store(others, kRelaxed);
    }
    table.reason_count.store(reasons, kRelaxed);
    table.version.store(version + 1, std::memory_order_release);
}

TandemReport read_tandem(const TandemTable& table) {
    for (int i = 0; i < kTries; i++) {
        const uint64_t before = table.version.load(std::memory_order_acquire);
        if (before & 1) continue;
        TandemReport report;
        report.name = read_shared_text(table.name);
        report.owner = table.owner.load(kRelaxed);
        report.prefill = table.prefill.load(kRelaxed);
        report.decode = table.decode.load(kRelaxed);
        report.min_tokens = table.min_tokens.load(kRelaxed);
        report.handoffs = table.handoffs.load(kRelaxed);
        report.handoff_us = table.handoff_us.load(kRelaxed);
        report.repeats = table.repeats.load(kRelaxed);
        report.refused = table.refused.load(kRelaxed);
        report.shared_bytes = table.shared_bytes.load(kRelaxed);
        for (size_t row = 0; row < bounded(table.member_count, TandemTable::kMembers); row++) {
            const TandemTable::Member& from = table.members[row];
            report.members.push_back({read_shared_text(from.name), from.graphs.load(kRelaxed),
                                      from.prefill_graphs.load(kRelaxed), from.prefill_tokens.load(kRelaxed),
                                      from.decode_tokens.load(kRelaxed), from.errors.load(kRelaxed),
                                      from.dropped.load(kRelaxed) != 0});
        }
        for (size_t row = 0; row < bounded(table.reason_count, TandemTable::kReasons); row++)
            report.fallbacks.emplace_back(read_shared_text(table.reasons[row].text),
                                          table.reasons[row].count.load(kRelaxed));
        std::atomic_thread_fence(std::memory_order_acquire);
        if (table.version.load(kRelaxed) == before) return report;
    }
    return {};
}

}  // namespace onebit
