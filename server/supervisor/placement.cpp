#include "server/supervisor/placement.h"

#include <algorithm>
#include <cstring>

namespace onebit {
namespace {

constexpr auto kRelaxed = std::memory_order_relaxed;
constexpr size_t kNameBytes = PlacementTable::kNameWords * sizeof(uint64_t);
constexpr int kTries = 100;

void write_name(PlacementTable::Entry& entry, const std::string& name) {
    char bytes[kNameBytes] = {};
    std::copy_n(name.data(), std::min(name.size(), kNameBytes - 1), bytes);
    for (size_t i = 0; i < PlacementTable::kNameWords; i++) {
        uint64_t word = 0;
        std::memcpy(&word, bytes + i * sizeof(word), sizeof(word));
        entry.name[i].store(word, kRelaxed);
    }
}

std::string read_name(const PlacementTable::Entry& entry) {
    char bytes[kNameBytes];
    for (size_t i = 0; i < PlacementTable::kNameWords; i++) {
        const uint64_t word = entry.name[i].load(kRelaxed);
        std::memcpy(bytes + i * sizeof(word), &word, sizeof(word));
    }
    return {bytes, ::strnlen(bytes, kNameBytes)};
}

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
        write_name(entry, rows[i].device);
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
            rows[row] = {read_name(entry), entry.weights.load(kRelaxed), entry.kv_cache.load(kRelaxed),
                         entry.compute.load(kRelaxed), static_cast<uint32_t>(entry.layers.load(kRelaxed))};
        }
        std::atomic_thread_fence(std::memory_order_acquire);
        if (table.version.load(kRelaxed) == before) return rows;
    }
    return {};
}

}  // namespace onebit
