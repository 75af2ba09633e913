// Where an engine's memory lies: told by the engine through the shared page, shown by /onebit/ps.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

namespace onebit {

// What the engine has allocated in the memory of one ggml device. Host memory counts as the device "CPU", whoever
// allocated it.
struct DeviceMemory {
    std::string device;
    uint64_t weights = 0, kv_cache = 0, compute = 0;  // bytes
    uint32_t layers = 0;  // whose weights are there, each with the device that holds the most of it
    bool operator==(const DeviceMemory&) const = default;
};

// In shared memory: the engine writes, the supervisor reads. A reader that meets a writer tries again.
struct PlacementTable {
    static constexpr size_t kEntries = 16, kNameWords = 6;
    struct Entry {
        std::array<std::atomic<uint64_t>, kNameWords> name;  // bytes of the name, the rest 0
        std::atomic<uint64_t> weights, kv_cache, compute, layers;
    };
    std::atomic<uint64_t> version;  // odd while it is written
    std::atomic<uint64_t> count;
    std::array<Entry, kEntries> entries;
};

// One thread at a time. Names are cut at 47 bytes; devices beyond the sixteenth are added to the last.
void write_placement(PlacementTable& table, const std::vector<DeviceMemory>& memory);
// Any thread. Empty when nothing was written yet, or when a writer died in the middle. The page is the engine's, so
// that any content is read without harm.
std::vector<DeviceMemory> read_placement(const PlacementTable& table);

}  // namespace onebit
