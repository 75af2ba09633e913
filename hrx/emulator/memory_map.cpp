#include "hrx/emulator/memory_map.h"

#include <algorithm>
#include <cstdio>

namespace onebit::emulator {
namespace {

// The last region that starts at or before the address.
RegionTable::const_iterator at_or_before(const RegionTable& table, u64 address) {
    auto next = std::upper_bound(table.begin(), table.end(), address,
                                 [](u64 value, const Region& region) { return value < region.base; });
    return next == table.begin() ? table.end() : next - 1;
}

}  // namespace

bool MemoryMap::add(Region region) {
    if (region.bytes == 0 || region.base + region.bytes < region.base) return false;
    std::lock_guard lock(mutex_);
    auto table = std::make_shared<RegionTable>(*table_);
    auto next = std::upper_bound(table->begin(), table->end(), region.base,
                                 [](u64 value, const Region& other) { return value < other.base; });
    if (next != table->end() && next->base < region.base + region.bytes) return false;
    if (next != table->begin() && (next - 1)->base + (next - 1)->bytes > region.base) return false;
    table->insert(next, region);
    table_ = std::move(table);
    version_.fetch_add(1, std::memory_order_release);
    return true;
}

bool MemoryMap::remove(u64 base) {
    std::lock_guard lock(mutex_);
    auto found = at_or_before(*table_, base);
    if (found == table_->end() || found->base != base) return false;
    auto table = std::make_shared<RegionTable>(*table_);
    table->erase(table->begin() + (found - table_->begin()));
    table_ = std::move(table);
    version_.fetch_add(1, std::memory_order_release);
    return true;
}

std::optional<Region> MemoryMap::find(u64 address) const {
    auto table = this->table();
    auto found = at_or_before(*table, address);
    if (found == table->end() || address - found->base >= found->bytes) return std::nullopt;
    return *found;
}

std::shared_ptr<const RegionTable> MemoryMap::table() const {
    std::lock_guard lock(mutex_);
    return table_;
}

void MemoryPort::reload() {
    version_ = map_.version();
    table_ = map_.table();
    for (Region& region : recent_) region = {};
}

bool MemoryPort::find(u64 address, u32 bytes, bool write) {
    auto fits = [&](const Region& region) {
        return region.bytes >= bytes && address - region.base <= region.bytes - bytes && (!write || region.writable);
    };
    for (int i = 1; i < 4; ++i) {
        if (!fits(recent_[i])) continue;
        std::swap(recent_[0], recent_[i]);
        return true;
    }
    auto found = at_or_before(*table_, address);
    if (found == table_->end() || !fits(*found)) return false;
    for (int i = 3; i > 0; --i) recent_[i] = recent_[i - 1];
    recent_[0] = *found;
    return true;
}

std::string MemoryPort::nearest(u64 address) {
    refresh();
    auto found = at_or_before(*table_, address);
    if (found == table_->end()) {
        if (table_->empty()) return {};
        found = table_->begin();
    }
    char text[120];
    std::snprintf(text, sizeof(text), "; the nearest one starts at 0x%llx and has %llu bytes",
                  static_cast<unsigned long long>(found->base), static_cast<unsigned long long>(found->bytes));
    return text;
}

bool MemoryPort::all_inside(const u64* addresses, u32 exec, u32 bytes, bool write) {
    if (exec == 0) return true;
    if (!inside(addresses[std::countr_zero(exec)], bytes, write)) return false;
    const u64 base = recent_[0].base;
    const u64 last = recent_[0].bytes - bytes;
    if (exec == kAllLanes) {
        u64 farthest = 0;
        for (int lane = 0; lane < kLanes; ++lane) farthest = std::max(farthest, addresses[lane] - base);
        return farthest <= last;
    }
    for (u32 rest = exec; rest != 0; rest &= rest - 1)
        if (addresses[std::countr_zero(rest)] - base > last) return false;
    return true;
}

}  // namespace onebit::emulator
