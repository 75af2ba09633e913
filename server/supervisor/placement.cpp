#include "server/supervisor/placement.h"

#include <algorithm>

#include "server/supervisor/shared_text.h"

namespace onebit {
namespace {

constexpr auto kRelaxed = std::memory_order_relaxed;
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
    std::atomic_thread_fence(std::memory_order_release);
    for (size_t i = 0; i < rows.size(); i++) {
        PlacementTable::Entry& entry = table.entries[i];
        write_shared_text(entry.name, rows[i].device);
        entry.weights.store(rows[i].weights, kRelaxed);
        entry.kv_cache.store(rows[i].kv_cache, kRelaxed);
        entry.compute.store(rows[i].compute, kRelaxed);
        entry.layers.store(rows[i].layers, kRelaxed);
    }
    table.count.store(rows.size(), kRelaxed);
    table.version.store(version + 1, std::memory_order_release);
}

std::vector<DeviceMemory> read_placement(const PlacementTable& table) {
    for (int i = 0; i < kTries; i++) {
        const uint64_t before = table.version.load(std::memory_order_acquire);
        if (before & 1) continue;
        std::vector<DeviceMemory> rows(std::min<uint64_t>(table.count.load(kRelaxed), PlacementTable::kEntries));
        for (size_t row = 0; row < rows.size(); row++) {
            const PlacementTable::Entry& entry = table.entries[row];
            rows[row] = {read_shared_text(entry.name), entry.weights.load(kRelaxed), entry.kv_cache.load(kRelaxed),
                         entry.compute.load(kRelaxed), static_cast<uint32_t>(entry.layers.load(kRelaxed))};
        }
        std::atomic_thread_fence(std::memory_order_acquire);
        if (table.version.load(kRelaxed) == before) return rows;
    }
    return {};
}

}  // namespace onebit
