// Memory pools, copies, import and export.
#include <unistd.h>

#include "hrx/emulator/hsa_exports.h"

using namespace onebit::emulator;  // exported C functions live in the global namespace

namespace {

struct Pool {
    u64 handle;
    u64 agent;
    hsa_amd_segment_t segment;
    u32 flags;
    bool allocates;
    bool for_all;
    u64 bytes;
};

constexpr Pool kPools[] = {
    {1, kCpuAgent.handle, HSA_AMD_SEGMENT_GLOBAL, HSA_AMD_MEMORY_POOL_GLOBAL_FLAG_FINE_GRAINED, true, true,
     u64{1} << 35},
    {2, kCpuAgent.handle, HSA_AMD_SEGMENT_GLOBAL,
     HSA_AMD_MEMORY_POOL_GLOBAL_FLAG_FINE_GRAINED | HSA_AMD_MEMORY_POOL_GLOBAL_FLAG_KERNARG_INIT, true, true,
     u64{1} << 35},
    {3, kCpuAgent.handle, HSA_AMD_SEGMENT_GLOBAL, HSA_AMD_MEMORY_POOL_GLOBAL_FLAG_COARSE_GRAINED, true, true,
     u64{1} << 35},
    {4, kGpuAgent.handle, HSA_AMD_SEGMENT_GLOBAL, HSA_AMD_MEMORY_POOL_GLOBAL_FLAG_COARSE_GRAINED, true, false,
     u64{1} << 35},
    {5, kGpuAgent.handle, HSA_AMD_SEGMENT_GLOBAL, HSA_AMD_MEMORY_POOL_GLOBAL_FLAG_FINE_GRAINED, true, false,
     u64{1} << 35},
    {6, kGpuAgent.handle, HSA_AMD_SEGMENT_GROUP, 0, false, false, 65536},
};

const Pool* pool_of(u64 handle) {
    for (const Pool& pool : kPools)
        if (pool.handle == handle) return &pool;
    return nullptr;
}

}  // namespace

extern "C" {

ONEBIT_HSA_EXPORT hsa_status_t hsa_amd_agent_iterate_memory_pools(
    hsa_agent_t agent, hsa_status_t (*callback)(hsa_amd_memory_pool_t, void*), void* data) {
    if (callback == nullptr) return HSA_STATUS_ERROR_INVALID_ARGUMENT;
    return with_device([&](Device&) {
        if (agent.handle != kGpuAgent.handle && agent.handle != kCpuAgent.handle) return HSA_STATUS_ERROR_INVALID_AGENT;
        for (const Pool& pool : kPools)
            if (pool.agent == agent.handle)
                if (hsa_status_t status = callback({pool.handle}, data); status != HSA_STATUS_SUCCESS) return status;
        return HSA_STATUS_SUCCESS;
    });
}

ONEBIT_HSA_EXPORT hsa_status_t hsa_amd_memory_pool_get_info(hsa_amd_memory_pool_t handle,
                                                            hsa_amd_memory_pool_info_t attribute, void* value) {
    if (value == nullptr) return HSA_STATUS_ERROR_INVALID_ARGUMENT;
    return with_device([&](Device&) {
        const Pool* pool = pool_of(handle.handle);
        if (pool == nullptr) return HSA_STATUS_ERROR_INVALID_MEMORY_POOL;
        const bool gpu = pool->agent == kGpuAgent.handle;
        switch (attribute) {
            case HSA_AMD_MEMORY_POOL_INFO_SEGMENT:
                return put(value, pool->segment);
            case HSA_AMD_MEMORY_POOL_INFO_GLOBAL_FLAGS:
                return put(value, pool->flags);
            case HSA_AMD_MEMORY_POOL_INFO_SIZE:
                return put(value, std::size_t{pool->bytes});
            case HSA_AMD_MEMORY_POOL_INFO_RUNTIME_ALLOC_ALLOWED:
                return put(value, pool->allocates);
            // hardware has pages of 4096; with single bytes a driver that rounds up does not hide overruns
            case HSA_AMD_MEMORY_POOL_INFO_RUNTIME_ALLOC_GRANULE:
                return put(value, std::size_t{pool->allocates ? 1u : 0u});
            case HSA_AMD_MEMORY_POOL_INFO_RUNTIME_ALLOC_ALIGNMENT:
            case HSA_AMD_MEMORY_POOL_INFO_RUNTIME_ALLOC_REC_GRANULE:
                return put(value, std::size_t{pool->allocates ? 4096u : 0u});
            case HSA_AMD_MEMORY_POOL_INFO_ACCESSIBLE_BY_ALL:
                return put(value, pool->for_all);
            case HSA_AMD_MEMORY_POOL_INFO_ALLOC_MAX_SIZE:
                return put(value, std::size_t{pool->allocates ? pool->bytes : 0});
            case HSA_AMD_MEMORY_POOL_INFO_LOCATION:
                return put(value, gpu ? HSA_AMD_MEMORY_POOL_LOCATION_GPU : HSA_AMD_MEMORY_POOL_LOCATION_CPU);
            default:
                return HSA_STATUS_ERROR_INVALID_ARGUMENT;
        }
    });
}

ONEBIT_HSA_EXPORT hsa_status_t hsa_amd_memory_pool_allocate(hsa_amd_memory_pool_t handle, size_t size, uint32_t,
                                                            void** ptr) {
    if (ptr == nullptr || size == 0) return HSA_STATUS_ERROR_INVALID_ARGUMENT;
    return with_device([&](Device& current) {
        const Pool* pool = pool_of(handle.handle);
        if (pool == nullptr) return HSA_STATUS_ERROR_INVALID_MEMORY_POOL;
        if (!pool->allocates || size > pool->bytes) return HSA_STATUS_ERROR_INVALID_ALLOCATION;
        return current.allocate(size, pool->handle, ptr);
    });
}

ONEBIT_HSA_EXPORT hsa_status_t hsa_amd_memory_pool_free(void* ptr) {
    if (ptr == nullptr) return HSA_STATUS_SUCCESS;
    return with_device([&](Device& current) { return current.free(ptr); });
}

// All memory here is the host's and every agent sees it; the pointer must still be one of ours.
ONEBIT_HSA_EXPORT hsa_status_t hsa_amd_agents_allow_access(uint32_t num_agents, const hsa_agent_t* agents,
                                                           const uint32_t* flags, const void* ptr) {
    if (num_agents == 0 || agents == nullptr || flags != nullptr || ptr == nullptr)
        return HSA_STATUS_ERROR_INVALID_ARGUMENT;
    return with_device([&](Device& current) {
        for (u32 k = 0; k < num_agents; ++k)
            if (agents[k].handle != kGpuAgent.handle && agents[k].handle != kCpuAgent.handle)
                return HSA_STATUS_ERROR_INVALID_AGENT;
        return current.find(ptr) ? HSA_STATUS_SUCCESS : HSA_STATUS_ERROR_INVALID_ARGUMENT;
    });
}

ONEBIT_HSA_EXPORT hsa_status_t hsa_amd_memory_lock(void* host_ptr, size_t size, hsa_agent_t*, int, void** agent_ptr) {
    if (agent_ptr == nullptr) return HSA_STATUS_ERROR_INVALID_ARGUMENT;
    return with_device([&](Device& current) {
        const hsa_status_t status = current.lock(host_ptr, size);
        *agent_ptr = status == HSA_STATUS_SUCCESS ? host_ptr : nullptr;
        return status;
    });
}

ONEBIT_HSA_EXPORT hsa_status_t hsa_amd_memory_unlock(void* host_ptr) {
    return with_device([&](Device& current) { return current.unlock(host_ptr); });
}

ONEBIT_HSA_EXPORT hsa_status_t hsa_amd_pointer_info(const void* ptr, hsa_amd_pointer_info_t* info,
                                                    void* (*alloc)(size_t), uint32_t* num_agents_accessible,
                                                    hsa_agent_t** accessible) {
    if (info == nullptr || info->size < sizeof(u32) + sizeof(u32)) return HSA_STATUS_ERROR_INVALID_ARGUMENT;
    return with_device([&](Device& current) {
        hsa_amd_pointer_info_t found{};
        const auto bytes = std::min<std::size_t>(info->size, sizeof(found));
        found.size = static_cast<u32>(bytes);
        found.type = HSA_EXT_POINTER_TYPE_UNKNOWN;
        u32 agents = 0;
        if (auto allocation = current.find(ptr)) {
            const Pool* pool = pool_of(allocation->pool);
            found.type = allocation->type;
            found.agentBaseAddress = found.hostBaseAddress = reinterpret_cast<void*>(allocation->base);
            found.sizeInBytes = allocation->bytes;
            found.agentOwner = pool == nullptr ? kGpuAgent : hsa_agent_t{pool->agent};
            found.global_flags = pool == nullptr ? 0 : pool->flags;
            agents = 2;
        }
        std::memcpy(info, &found, bytes);
        if (alloc != nullptr && num_agents_accessible != nullptr && accessible != nullptr) {
            *num_agents_accessible = agents;
            *accessible = static_cast<hsa_agent_t*>(alloc(sizeof(hsa_agent_t) * 2));
            if (*accessible == nullptr) return HSA_STATUS_ERROR_OUT_OF_RESOURCES;
            (*accessible)[0] = kGpuAgent;
            (*accessible)[1] = kCpuAgent;
        }
        return HSA_STATUS_SUCCESS;
    });
}

ONEBIT_HSA_EXPORT hsa_status_t hsa_memory_copy(void* dst, const void* src, size_t size) {
    if (dst == nullptr || src == nullptr) return HSA_STATUS_ERROR_INVALID_ARGUMENT;
    return with_device([&](Device&) {
        std::memmove(dst, src, size);
        return HSA_STATUS_SUCCESS;
    });
}

ONEBIT_HSA_EXPORT hsa_status_t hsa_amd_memory_async_copy(void* dst, hsa_agent_t dst_agent, const void* src,
                                                         hsa_agent_t src_agent, size_t size, uint32_t num_dep_signals,
                                                         const hsa_signal_t* dep_signals,
                                                         hsa_signal_t completion_signal) {
    if (dst == nullptr || src == nullptr || (num_dep_signals != 0 && dep_signals == nullptr))
        return HSA_STATUS_ERROR_INVALID_ARGUMENT;
    return with_device([&](Device& current) {
        for (hsa_agent_t agent : {dst_agent, src_agent})
            if (agent.handle != kGpuAgent.handle && agent.handle != kCpuAgent.handle)
                return HSA_STATUS_ERROR_INVALID_AGENT;
        std::vector<Signal*> after;
        for (u32 k = 0; k < num_dep_signals; ++k) {
            Signal* signal = signal_of(dep_signals[k]);
            if (signal == nullptr) return HSA_STATUS_ERROR_INVALID_SIGNAL;
            after.push_back(signal);
        }
        Signal* completion = signal_of(completion_signal);
        if (completion == nullptr && completion_signal.handle != 0) return HSA_STATUS_ERROR_INVALID_SIGNAL;
        current.copy_later([=] { std::memmove(dst, src, size); }, std::move(after), completion);
        return HSA_STATUS_SUCCESS;
    });
}

ONEBIT_HSA_EXPORT hsa_status_t hsa_amd_memory_fill(void* ptr, uint32_t value, size_t count) {
    if (ptr == nullptr || reinterpret_cast<u64>(ptr) % 4 != 0) return HSA_STATUS_ERROR_INVALID_ARGUMENT;
    return with_device([&](Device&) {
        std::fill_n(static_cast<u32*>(ptr), count, value);
        return HSA_STATUS_SUCCESS;
    });
}

ONEBIT_HSA_EXPORT hsa_status_t hsa_amd_interop_map_buffer(uint32_t num_agents, hsa_agent_t* agents, int interop_handle,
                                                          uint32_t flags, size_t* size, void** ptr,
                                                          size_t* metadata_size, const void** metadata) {
    if (num_agents == 0 || agents == nullptr || flags != 0 || size == nullptr || ptr == nullptr)
        return HSA_STATUS_ERROR_INVALID_ARGUMENT;
    return with_device([&](Device& current) {
        u64 bytes = 0;
        const hsa_status_t status = current.map_file(interop_handle, &bytes, ptr);
        if (status != HSA_STATUS_SUCCESS) return status;
        *size = bytes;
        if (metadata_size != nullptr) *metadata_size = 0;
        if (metadata != nullptr) *metadata = nullptr;
        return HSA_STATUS_SUCCESS;
    });
}

ONEBIT_HSA_EXPORT hsa_status_t hsa_amd_interop_unmap_buffer(void* ptr) {
    return with_device([&](Device& current) { return current.unmap_file(ptr); });
}

ONEBIT_HSA_EXPORT hsa_status_t hsa_amd_portable_export_dmabuf(const void* ptr, size_t size, int* dmabuf,
                                                              uint64_t* offset) {
    if (ptr == nullptr || size == 0 || dmabuf == nullptr || offset == nullptr) return HSA_STATUS_ERROR_INVALID_ARGUMENT;
    return with_device([&](Device& current) { return current.export_file(ptr, size, dmabuf, offset); });
}

ONEBIT_HSA_EXPORT hsa_status_t hsa_amd_portable_close_dmabuf(int dmabuf) {
    return close(dmabuf) == 0 ? HSA_STATUS_SUCCESS : HSA_STATUS_ERROR_RESOURCE_FREE;
}
}
