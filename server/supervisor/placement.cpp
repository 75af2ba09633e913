#include "server/supervisor/placement.h"

#include <algorithm>

#include "server/supervisor/shared_text.h"

namespace onebit {
namespace {

constexpr auto kRelaxed = std::memory_order_relaxed;
// who sees a word of a change sees the odd version before it too
constexpr auto kPublish = std::memory_order_release, kSee = std::memory_order_acquire;
constexpr int kTries = 100;

}  // namespace

void write_placement(PlacementTable& table, const std::vector<DeviceMemory>& memory) {
    std::vector<DeviceMemory> rows = memory;
    while (rows.size() > PlacementTable::kEntries) {
        const DeviceMemory more = rows.back();
        rows.pop_back();
        DeviceMemory& last = rows.back();
        last.weights += more.weights;
        last.kv_cache += more.kv_cache;
        last.compute += more.compute;
        last.layers += more.layers;
    }
    const uint64_t version = table.version.load(kRelaxed) | 1;
    table.version.store(version, kRelaxed);
    for (size_t i = 0; i < rows.size(); i++) {
        PlacementTable::Entry& entry = table.entries[i];
        write_shared_text(entry.name, rows[i].device);
        entry.weights.store(rows[i].weights, kPublish);
        entry.kv_cache.store(rows[i].kv_cache, kPublish);
        entry.compute.store(rows[i].compute, kPublish);
        entry.layers.store(rows[i].layers, kPublish);
    }
    table.count.store(rows.size(), kPublish);
    table.version.store(version + 1, std::memory_order_release);
}

std::vector<DeviceMemory> read_placement(const PlacementTable& table) {
    for (int i = 0; i < kTries; i++) {
        const uint64_t before = table.version.load(std::memory_order_acquire);
        if (before & 1) continue;
        std::vector<DeviceMemory> rows(std::min<uint64_t>(table.count.load(kSee), PlacementTable::kEntries));
        for (size_t row = 0; row < rows.size(); row++) {
            const PlacementTable::Entry& entry = table.entries[row];
            rows[row] = {read_shared_text(entry.name), entry.weights.load(kSee), entry.kv_cache.load(kSee),
                         entry.compute.load(kSee), static_cast<uint32_t>(entry.layers.load(kSee))};
        }
        if (table.version.load(kRelaxed) == before) return rows;
    }
    return {};
}

}  // namespace onebit
