// The memory that emulated kernels may touch: every allocation with its exact size. Addresses are host addresses.
// Threads: MemoryMap from any thread; a MemoryPort belongs to one thread.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "hrx/emulator/types.h"

namespace onebit::emulator {

struct Region {
    u64 base = 0;
    u64 bytes = 0;
    bool writable = true;
};

using RegionTable = std::vector<Region>;  // sorted by base, not overlapping

class MemoryMap {
public:
    // False when it overlaps a region or is empty.
    bool add(Region region);
    // False when no region starts there.
    bool remove(u64 base);
    std::optional<Region> find(u64 address) const;

    std::shared_ptr<const RegionTable> table() const;
    // Changes with every add and remove.
    u64 version() const { return version_.load(std::memory_order_acquire); }

private:
    mutable std::mutex mutex_;
    std::shared_ptr<const RegionTable> table_ = std::make_shared<RegionTable>();
    std::atomic<u64> version_{1};
};

// A thread's view of the map, with the regions that it used last.
class MemoryPort {
public:
    explicit MemoryPort(const MemoryMap& map) : map_(map) {}

    // True if [address, address + bytes) lies in one region (a writable one for writes).
    bool inside(u64 address, u32 bytes, bool write) {
        refresh();
        const Region& last = recent_[0];
        if (address - last.base <= last.bytes - bytes && last.bytes >= bytes && (!write || last.writable)) return true;
        return find(address, bytes, write);
    }
    // True if that holds for every lane of `exec` in the region of the first of them; false says nothing.
    bool all_inside(const u64* addresses, u32 exec, u32 bytes, bool write);
    // "; the nearest one ..." for a message, empty without allocations.
    std::string nearest(u64 address);

private:
    void refresh() {
        if (version_ != map_.version()) reload();
    }
    void reload();
    bool find(u64 address, u32 bytes, bool write);

    const MemoryMap& map_;
    u64 version_ = 0;
    std::shared_ptr<const RegionTable> table_;
    Region recent_[4] = {};
};

}  // namespace onebit::emulator
