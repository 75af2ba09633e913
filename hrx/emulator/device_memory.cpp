// Allocation, locking, import and export of the emulated device's memory.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <fstream>
#include <string>

#include "hrx/emulator/device.h"

namespace onebit::emulator {
namespace {

constexpr u64 kPage = 4096;
u64 whole_pages(u64 bytes) { return (bytes + kPage - 1) / kPage * kPage; }
u64 address(const void* pointer) { return reinterpret_cast<u64>(pointer); }

// Pages that are not there cannot be pinned, and a kernel that ran into them would end the process.
struct Pages {
    bool readable = false, writable = false;
};
Pages pages_of_process(u64 first, u64 bytes) {
    const u64 end = first + bytes;
    if (end < first) return {};
    std::ifstream maps("/proc/self/maps");
    Pages pages{false, true};
    std::string line;
    for (u64 at = first; std::getline(maps, line);) {
        unsigned long long from = 0, to = 0;
        char access[5] = {};
        if (std::sscanf(line.c_str(), "%llx-%llx %4s", &from, &to, access) != 3 || to <= at) continue;
        if (from > at || access[0] != 'r') return {};
        pages.writable &= access[1] == 'w';
        at = to;
        if (at < end) continue;
        pages.readable = true;
        return pages;
    }
    return {};
}

}  // namespace

hsa_status_t Device::allocate(u64 bytes, u64 pool, void** out) {
    if (bytes == 0 || bytes > (u64{1} << 46)) return HSA_STATUS_ERROR_INVALID_ALLOCATION;
    Allocation allocation;
    allocation.bytes = bytes;
    allocation.mapped_bytes = whole_pages(bytes);
    allocation.pool = pool;
    void* memory = mmap(nullptr, allocation.mapped_bytes, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) return HSA_STATUS_ERROR_OUT_OF_RESOURCES;
    allocation.base = address(memory);
    std::lock_guard lock(mutex_);
    memory_.add({allocation.base, bytes, true});
    allocations_[allocation.base] = allocation;
    *out = memory;
    return HSA_STATUS_SUCCESS;
}

hsa_status_t Device::free(void* pointer) {
    std::lock_guard lock(mutex_);
    auto found = allocations_.find(address(pointer));
    if (found == allocations_.end() || found->second.type != HSA_EXT_POINTER_TYPE_HSA)
        return HSA_STATUS_ERROR_INVALID_ALLOCATION;
    memory_.remove(found->first);
    // a kernel that is running may have checked an address just before; its pages go when it has ended
    if (running_.try_lock()) {
        munmap(pointer, found->second.mapped_bytes);
        running_.unlock();
    } else {
        to_unmap_.push_back(found->second);
    }
    if (found->second.shared_fd >= 0) close(found->second.shared_fd);
    allocations_.erase(found);
    return HSA_STATUS_SUCCESS;
}

hsa_status_t Device::lock(void* pointer, u64 bytes) {
    if (pointer == nullptr || bytes == 0) return HSA_STATUS_ERROR_INVALID_ARGUMENT;
    const Pages pages = pages_of_process(address(pointer), bytes);
    if (!pages.readable) return HSA_STATUS_ERROR_INVALID_ARGUMENT;
    std::lock_guard lock(mutex_);
    auto found = allocations_.find(address(pointer));
    if (found != allocations_.end()) {
        if (found->second.bytes < bytes) return HSA_STATUS_ERROR_INVALID_ARGUMENT;
        ++found->second.locks;
        return HSA_STATUS_SUCCESS;
    }
    if (!memory_.add({address(pointer), bytes, pages.writable})) return HSA_STATUS_ERROR_INVALID_ARGUMENT;
    Allocation allocation;
    allocation.base = address(pointer);
    allocation.bytes = bytes;
    allocation.type = HSA_EXT_POINTER_TYPE_LOCKED;
    allocations_[allocation.base] = allocation;
    return HSA_STATUS_SUCCESS;
}

hsa_status_t Device::unlock(void* pointer) {
    std::lock_guard lock(mutex_);
    auto found = allocations_.find(address(pointer));
    if (found == allocations_.end()) return HSA_STATUS_ERROR_INVALID_ARGUMENT;
    if (found->second.locks > 1) {
        --found->second.locks;
        return HSA_STATUS_SUCCESS;
    }
    if (found->second.type != HSA_EXT_POINTER_TYPE_LOCKED) return HSA_STATUS_ERROR_INVALID_ARGUMENT;
    memory_.remove(found->first);
    allocations_.erase(found);
    return HSA_STATUS_SUCCESS;
}

hsa_status_t Device::map_file(int fd, u64* bytes, void** out) {
    const off_t size = lseek(fd, 0, SEEK_END);
    if (size <= 0) return HSA_STATUS_ERROR_INVALID_ARGUMENT;
    Allocation allocation;
    allocation.bytes = static_cast<u64>(size);
    allocation.mapped_bytes = whole_pages(allocation.bytes);
    allocation.type = HSA_EXT_POINTER_TYPE_GRAPHICS;
    void* memory = mmap(nullptr, allocation.mapped_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (memory == MAP_FAILED) return HSA_STATUS_ERROR_INVALID_ARGUMENT;
    allocation.base = address(memory);
    std::lock_guard lock(mutex_);
    memory_.add({allocation.base, allocation.bytes, true});
    allocations_[allocation.base] = allocation;
    *bytes = allocation.bytes;
    *out = memory;
    return HSA_STATUS_SUCCESS;
}

hsa_status_t Device::unmap_file(void* pointer) {
    std::lock_guard lock(mutex_);
    auto found = allocations_.find(address(pointer));
    if (found == allocations_.end() || found->second.type != HSA_EXT_POINTER_TYPE_GRAPHICS)
        return HSA_STATUS_ERROR_INVALID_ARGUMENT;
    memory_.remove(found->first);
    if (running_.try_lock()) {
        munmap(pointer, found->second.mapped_bytes);
        running_.unlock();
    } else {
        to_unmap_.push_back(found->second);
    }
    allocations_.erase(found);
    return HSA_STATUS_SUCCESS;
}

hsa_status_t Device::export_file(const void* pointer, u64 bytes, int* fd, u64* offset) {
    // pages are replaced below, which no kernel may see half done
    std::lock_guard running(running_);
    std::lock_guard lock(mutex_);
    auto found = allocations_.upper_bound(address(pointer));
    if (found == allocations_.begin()) return HSA_STATUS_ERROR_INVALID_ALLOCATION;
    --found;
    Allocation& allocation = found->second;
    const u64 at = address(pointer) - allocation.base;
    if (allocation.type != HSA_EXT_POINTER_TYPE_HSA || at > allocation.bytes || allocation.bytes - at < bytes)
        return HSA_STATUS_ERROR_INVALID_ALLOCATION;
    if (allocation.shared_fd < 0) {
        const int file = memfd_create("onebit-emulator", MFD_CLOEXEC);
        if (file < 0) return HSA_STATUS_ERROR_OUT_OF_RESOURCES;
        void* target = reinterpret_cast<void*>(allocation.base);
        bool copied = ftruncate(file, static_cast<off_t>(allocation.mapped_bytes)) == 0;
        for (u64 done = 0; copied && done < allocation.mapped_bytes;) {
            const ssize_t written = pwrite(file, reinterpret_cast<const u8*>(allocation.base) + done,
                                           allocation.mapped_bytes - done, static_cast<off_t>(done));
            copied = written > 0;
            done += copied ? static_cast<u64>(written) : 0;
        }
        if (!copied || mmap(target, allocation.mapped_bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, file, 0) ==
                           MAP_FAILED) {
            close(file);
            return HSA_STATUS_ERROR_OUT_OF_RESOURCES;
        }
        allocation.shared_fd = file;
    }
    *fd = fcntl(allocation.shared_fd, F_DUPFD_CLOEXEC, 0);
    *offset = at;
    return *fd >= 0 ? HSA_STATUS_SUCCESS : HSA_STATUS_ERROR_OUT_OF_RESOURCES;
}

std::optional<Allocation> Device::find(const void* pointer) {
    std::lock_guard lock(mutex_);
    auto found = allocations_.upper_bound(address(pointer));
    if (found == allocations_.begin()) return std::nullopt;
    --found;
    if (address(pointer) - found->second.base >= found->second.bytes) return std::nullopt;
    return found->second;
}

}  // namespace onebit::emulator
