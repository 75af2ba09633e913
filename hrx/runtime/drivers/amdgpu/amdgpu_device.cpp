#include "hrx/runtime/drivers/amdgpu/amdgpu_device.h"

#include <algorithm>
#include <cstring>

#include "hrx/runtime/drivers.h"

namespace onebit::hrx::runtime::amdgpu {
namespace {

template <typename T>
T attribute(hsa_agent_t agent, hsa_agent_info_t name, T otherwise = {}) {
    T value{};
    return api().hsa_agent_get_info(agent, name, &value) == HSA_STATUS_SUCCESS ? value : otherwise;
}

struct PoolFacts {
    hsa_amd_segment_t segment{};
    uint32_t flags = 0;
    bool usable = false;
    Pool pool;
};

PoolFacts facts_of(hsa_amd_memory_pool_t handle) {
    const auto get = [handle](hsa_amd_memory_pool_info_t name, auto* value) {
        return api().hsa_amd_memory_pool_get_info(handle, name, value) == HSA_STATUS_SUCCESS;
    };
    PoolFacts facts;
    facts.pool.handle = handle;
    if (!get(HSA_AMD_MEMORY_POOL_INFO_SEGMENT, &facts.segment)) return facts;
    get(HSA_AMD_MEMORY_POOL_INFO_SIZE, &facts.pool.bytes);
    if (facts.segment != HSA_AMD_SEGMENT_GLOBAL) return facts;
    get(HSA_AMD_MEMORY_POOL_INFO_GLOBAL_FLAGS, &facts.flags);
    get(HSA_AMD_MEMORY_POOL_INFO_RUNTIME_ALLOC_ALLOWED, &facts.usable);
    get(HSA_AMD_MEMORY_POOL_INFO_RUNTIME_ALLOC_GRANULE, &facts.pool.granule);
    if (!get(HSA_AMD_MEMORY_POOL_INFO_ALLOC_MAX_SIZE, &facts.pool.largest)) facts.pool.largest = facts.pool.bytes;
    facts.pool.granule = std::max<size_t>(facts.pool.granule, 1);
    return facts;
}

Result<std::vector<PoolFacts>> pools_of(hsa_agent_t agent) {
    std::vector<PoolFacts> pools;
    const auto keep = [](hsa_amd_memory_pool_t pool, void* data) {
        static_cast<std::vector<PoolFacts>*>(data)->push_back(facts_of(pool));
        return HSA_STATUS_SUCCESS;
    };
    ONEBIT_HRX_HSA(hsa_amd_agent_iterate_memory_pools, agent, keep, &pools);
    return pools;
}

}  // namespace

Result<std::unique_ptr<DriverDevice>> AmdgpuDevice::open(uint32_t index) {
    auto device = std::make_unique<AmdgpuDevice>(gpu_agents()[index]);
    ONEBIT_RETURN_IF_ERROR(device->start());
    return std::unique_ptr<DriverDevice>(std::move(device));
}

Result<void> AmdgpuDevice::start() {
    ONEBIT_RETURN_IF_ERROR(find_pools());
    return read_info();
}

Result<void> AmdgpuDevice::find_pools() {
    const auto device_pools = pools_of(agent_);
    if (!device_pools.ok()) return device_pools.error();
    for (const PoolFacts& facts : *device_pools) {
        if (facts.segment == HSA_AMD_SEGMENT_GROUP) lds_bytes_ = static_cast<uint32_t>(facts.pool.bytes);
        const bool coarse = (facts.flags & HSA_AMD_MEMORY_POOL_GLOBAL_FLAG_COARSE_GRAINED) != 0;
        if (facts.usable && coarse && facts.pool.bytes > device_pool_.bytes) device_pool_ = facts.pool;
    }
    for (const hsa_agent_t cpu : cpu_agents()) {
        const auto host_pools = pools_of(cpu);
        if (!host_pools.ok()) return host_pools.error();
        for (const PoolFacts& facts : *host_pools) {
            const bool fine = (facts.flags & HSA_AMD_MEMORY_POOL_GLOBAL_FLAG_FINE_GRAINED) != 0;
            const bool arguments = (facts.flags & HSA_AMD_MEMORY_POOL_GLOBAL_FLAG_KERNARG_INIT) != 0;
            if (!facts.usable || !fine) continue;
            if (arguments && argument_pool_.bytes == 0) argument_pool_ = facts.pool;
            if (!arguments && host_pool_.bytes == 0) host_pool_ = facts.pool;
        }
        if (argument_pool_.bytes != 0 || host_pool_.bytes != 0) break;
    }
    if (host_pool_.bytes == 0) host_pool_ = argument_pool_;
    if (argument_pool_.bytes == 0) argument_pool_ = host_pool_;
    const auto missing = [](const char* what) {
        return Error{ErrorCode::unsupported, "hsa_amd_agent_iterate_memory_pools", what, "none", ""};
    };
    if (device_pool_.bytes == 0) return missing("a coarse-grained pool of the GPU");
    if (host_pool_.bytes == 0) return missing("a fine-grained pool of the CPU");
    return {};
}

Result<void> AmdgpuDevice::read_info() {
    set_text(info_.driver, "amdgpu");
    ONEBIT_HRX_HSA(hsa_agent_get_info, agent_, HSA_AGENT_INFO_NAME, info_.architecture);
    char product[64] = {};
    const bool named = api().hsa_agent_get_info(agent_, HSA_AMD_AGENT_INFO_PRODUCT_NAME, product) == HSA_STATUS_SUCCESS;
    set_text(info_.name, named && product[0] != '\0' ? std::string_view(product, strnlen(product, sizeof product))
                                                     : std::string_view(info_.architecture));
    info_.compute_units = attribute<uint32_t>(agent_, HSA_AMD_AGENT_INFO_COMPUTE_UNIT_COUNT);
    info_.wave_size = attribute<uint32_t>(agent_, HSA_AGENT_INFO_WAVEFRONT_SIZE);
    info_.max_workgroup_size = attribute<uint32_t>(agent_, HSA_AGENT_INFO_WORKGROUP_MAX_SIZE);
    uint16_t dimensions[3] = {};
    ONEBIT_HRX_HSA(hsa_agent_get_info, agent_, HSA_AGENT_INFO_WORKGROUP_MAX_DIM, dimensions);
    hsa_dim3_t grid{};
    ONEBIT_HRX_HSA(hsa_agent_get_info, agent_, HSA_AGENT_INFO_GRID_MAX_DIM, &grid);
    const uint32_t counts[3] = {grid.x, grid.y, grid.z};
    for (int i = 0; i < 3; ++i) {
        info_.max_workgroup_dimension[i] = dimensions[i];
        info_.max_workgroup_count[i] = counts[i];
    }
    info_.lds_bytes = lds_bytes_;
    info_.clock_mhz = attribute<uint32_t>(agent_, HSA_AMD_AGENT_INFO_MAX_CLOCK_FREQUENCY);
    info_.memory_bytes = device_pool_.bytes;
    info_.max_buffer_bytes = device_pool_.largest;
    uint8_t properties[8] = {};
    if (api().hsa_agent_get_info(agent_, HSA_AMD_AGENT_INFO_MEMORY_PROPERTIES, properties) == HSA_STATUS_SUCCESS) {
        info_.integrated = (properties[0] & 1) != 0;
    }

    info_.features = HRX_FEATURE_IMPORT_DMA_BUF | HRX_FEATURE_IMPORT_HOST;
    bool dma_buf = false;
    if (api().hsa_amd_portable_export_dmabuf != nullptr &&
        api().hsa_system_get_info(HSA_AMD_SYSTEM_INFO_DMABUF_SUPPORTED, &dma_buf) == HSA_STATUS_SUCCESS && dma_buf) {
        info_.features |= HRX_FEATURE_EXPORT_DMA_BUF;
    }
    // a discrete GPU sees the host's writes through its BAR only after a flush of a cache on the way
    if (info_.integrated && host_reaches_device_pool()) info_.features |= HRX_FEATURE_DEVICE_MEMORY_MAPPABLE;

    const auto location = attribute<uint32_t>(agent_, HSA_AMD_AGENT_INFO_BDFID);
    info_.has_pci_address = true;
    info_.pci_domain = attribute<uint32_t>(agent_, HSA_AMD_AGENT_INFO_DOMAIN);
    info_.pci_bus = static_cast<uint8_t>(location >> 8);
    info_.pci_device = static_cast<uint8_t>(location >> 3 & 0x1F);
    info_.pci_function = static_cast<uint8_t>(location & 7);
    char uuid[32] = {};
    const bool known = api().hsa_agent_get_info(agent_, HSA_AMD_AGENT_INFO_UUID, uuid) == HSA_STATUS_SUCCESS;
    // the 16 digits after "GPU-" as they are, which is also what HIP reports; "GPU-XX" is a chip without one
    if (known && std::strncmp(uuid, "GPU-", 4) == 0 && std::strlen(uuid) == 4 + sizeof info_.uuid) {
        std::memcpy(info_.uuid, uuid + 4, sizeof info_.uuid);
        info_.has_uuid = true;
    }

    ticks_per_second_ = attribute<uint64_t>(agent_, HSA_AMD_AGENT_INFO_TIMESTAMP_FREQUENCY);
    if (ticks_per_second_ == 0) {
        ONEBIT_HRX_HSA(hsa_system_get_info, HSA_SYSTEM_INFO_TIMESTAMP_FREQUENCY, &ticks_per_second_);
    }
    if (ticks_per_second_ == 0) {
        return Error{ErrorCode::unsupported, "HSA_SYSTEM_INFO_TIMESTAMP_FREQUENCY", "above 0", "0", ""};
    }
    return {};
}

bool AmdgpuDevice::host_reaches_device_pool() const {
    if (api().hsa_amd_agent_memory_pool_get_info != nullptr) {
        hsa_amd_memory_pool_access_t access{};
        return api().hsa_amd_agent_memory_pool_get_info(cpu_agents().front(), device_pool_.handle,
                                                        HSA_AMD_AGENT_MEMORY_POOL_INFO_ACCESS,
                                                        &access) == HSA_STATUS_SUCCESS &&
               access != HSA_AMD_MEMORY_POOL_ACCESS_NEVER_ALLOWED;
    }
    const hsa_agent_t both[] = {agent_, cpu_agents().front()};
    return PoolMemory::allocate(device_pool_, 4096, both).ok();
}

Result<uint64_t> AmdgpuDevice::free_memory() {
    uint64_t bytes = 0;
    ONEBIT_HRX_HSA(hsa_agent_get_info, agent_, HSA_AMD_AGENT_INFO_MEMORY_AVAIL, &bytes);
    return bytes;
}

// ---- the driver ----

namespace {

class AmdgpuDriver final : public Driver {
public:
    const char* name() const override { return "amdgpu"; }
    Result<void> start(std::vector<ProbeEntry>& tried) override { return load(tried); }
    Result<uint32_t> device_count() override { return static_cast<uint32_t>(gpu_agents().size()); }
    Result<std::unique_ptr<DriverDevice>> open(uint32_t index) override { return AmdgpuDevice::open(index); }
};

}  // namespace
}  // namespace onebit::hrx::runtime::amdgpu

namespace onebit::hrx::runtime {
std::unique_ptr<Driver> make_amdgpu_driver() { return std::make_unique<amdgpu::AmdgpuDriver>(); }
}  // namespace onebit::hrx::runtime
