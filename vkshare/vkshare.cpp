#include "vkshare/vkshare.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <map>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <vector>

#include "ggml-backend-impl.h"
#include "ggml-vulkan-common.h"
#include "vkshare/extensions.h"

namespace onebit::vkshare {
namespace {

using Handle = vk::ExternalMemoryHandleTypeFlagBits;
using Property = vk::MemoryPropertyFlagBits;

// The kinds that a buffer of ours was allocated with; the weak pointer tells a freed buffer from a new one in its
// place.
struct Shared {
    std::weak_ptr<vk_buffer_struct> buffer;
    uint32_t kinds = 0;
};
std::mutex shared_mutex;
std::map<vk_buffer_struct*, Shared> shared_buffers;

[[noreturn]] void refuse(const std::string& text) { throw std::runtime_error(text); }

// Runs f; an exception becomes one line in error and the value that stands for failure.
template <typename T, typename F>
T guarded(T failure, char* error, size_t error_size, F&& f) {
    const char* text = "unknown exception";
    try {
        return f();
    } catch (const std::exception& exception) {
        if (error != nullptr && error_size > 0) std::snprintf(error, error_size, "%s", exception.what());
        return failure;
    } catch (...) {
        if (error != nullptr && error_size > 0) std::snprintf(error, error_size, "%s", text);
        return failure;
    }
}

vk_device device_of(ggml_backend_buffer_type_t type) {
    if (type == nullptr || type->iface.get_name != ggml_backend_vk_buffer_type_name)
        refuse("the buffer type is not that of a Vulkan device");
    return static_cast<ggml_backend_vk_buffer_type_context*>(type->context)->device;
}

Handle handle_type(uint32_t kind) {
    switch (kind) {
        case ONEBIT_VKSHARE_HOST:
            return Handle::eHostAllocationEXT;
        case ONEBIT_VKSHARE_OPAQUE_FD:
            return Handle::eOpaqueFd;
        case ONEBIT_VKSHARE_DMA_BUF:
            return Handle::eDmaBufEXT;
        default:
            refuse("handle kind " + std::to_string(kind) + ": expected one of 1 (host), 2 (opaque fd), 4 (dma-buf)");
    }
}

const char* kind_name(uint32_t kind) {
    return kind == ONEBIT_VKSHARE_HOST ? "host pointer" : kind == ONEBIT_VKSHARE_OPAQUE_FD ? "opaque fd" : "dma-buf";
}

vk::BufferUsageFlags usage_of(const vk_device& device) {
    vk::BufferUsageFlags usage = vk::BufferUsageFlagBits::eStorageBuffer | vk::BufferUsageFlagBits::eTransferSrc |
                                 vk::BufferUsageFlagBits::eTransferDst;
    if (device->buffer_device_address) usage |= vk::BufferUsageFlagBits::eShaderDeviceAddress;
    return usage;
}

vk::ExternalMemoryFeatureFlags features_of(const vk_device& device, uint32_t kind) {
    const vk::PhysicalDeviceExternalBufferInfo info({}, usage_of(device), handle_type(kind));
    return device->physical_device.getExternalBufferProperties(info).externalMemoryProperties.externalMemoryFeatures;
}

bool has_extension(const vk_device& device, uint32_t kind) {
    if (kind == ONEBIT_VKSHARE_HOST) return device->external_memory_host;
    const Extensions enabled = extensions_of(device->device);
    return kind == ONEBIT_VKSHARE_OPAQUE_FD ? enabled.memory_fd : enabled.dma_buf;
}

void require(const vk_device& device, uint32_t kind, vk::ExternalMemoryFeatureFlagBits feature) {
    const std::string what = device->name + ", " + kind_name(kind);
    if (!has_extension(device, kind))
        refuse(
            what +
            ": the device was created without the extension for it (the driver lacks it, or sharing was not enabled)");
    if (!(features_of(device, kind) & feature))
        refuse(what + ": the driver reports storage buffers of this kind as not " +
               (feature == vk::ExternalMemoryFeatureFlagBits::eExportable ? "exportable" : "importable"));
}

// The order in which ggml-vulkan itself tries memory for a device's buffers (ggml_vk_create_buffer_device).
std::vector<vk::MemoryPropertyFlags> preferred_memory(const vk_device& device, bool host_visible) {
    const vk::MemoryPropertyFlags local = Property::eDeviceLocal;
    const vk::MemoryPropertyFlags host = Property::eHostVisible | Property::eHostCoherent;
    std::vector<vk::MemoryPropertyFlags> order;
    if (device->prefer_host_memory)
        order = {host, local};
    else if (device->uma)
        order = {local | host, local, host};
    else if (device->disable_host_visible_vidmem)
        order = {local};
    else
        order = {local | host, local};
    if (!device->uma && !device->prefer_host_memory && device->allow_sysmem_fallback) order.push_back(host);
    if (host_visible) {
        // a guest on the CPU reads and writes it: cached memory where there is some
        std::vector<vk::MemoryPropertyFlags> visible = {local | host | Property::eHostCached, local | host,
                                                        host | Property::eHostCached, host};
        return visible;
    }
    return order;
}

// Frees what was made when a later step throws.
struct Parts {
    vk_device device;
    vk_buffer buffer = std::make_shared<vk_buffer_struct>();
    explicit Parts(vk_device owner) : device(std::move(owner)) { buffer->ptr = nullptr; }
    Parts(const Parts&) = delete;
    Parts& operator=(const Parts&) = delete;
    ~Parts() {
        if (buffer == nullptr || buffer->size != 0) return;  // the buffer's own destructor frees it
        if (buffer->device_memory) device->device.freeMemory(buffer->device_memory);
        if (buffer->buffer) device->device.destroyBuffer(buffer->buffer);
    }
};

// Drivers map memory by pages of 2 MiB only when all of it is made of them.
constexpr uint64_t large_page = uint64_t{2} << 20;

uint64_t whole_pages(uint64_t size) {
    return size < large_page || size > UINT64_MAX - large_page ? size
                                                               : (size + large_page - 1) / large_page * large_page;
}

void create_buffer(Parts& parts, uint64_t size, vk::ExternalMemoryHandleTypeFlags types) {
    if (size == 0) refuse(parts.device->name + ": expected a size of at least 1 byte, found 0");
    if (size > parts.device->max_buffer_size)
        refuse(parts.device->name + ": " + std::to_string(size) + " bytes in one buffer, the device takes at most " +
               std::to_string(parts.device->max_buffer_size));
    const vk::ExternalMemoryBufferCreateInfo external(types);
    vk::BufferCreateInfo info({}, size, usage_of(parts.device), vk::SharingMode::eExclusive);
    if (types) info.setPNext(&external);
    parts.buffer->buffer = parts.device->device.createBuffer(info);
}

// chain: what describes the export or import, put behind the flags and the dedicated allocation.
void allocate_memory(Parts& parts, uint64_t bytes, uint32_t memory_type, const void* chain) {
    const auto& device = parts.device;
    vk::MemoryAllocateFlags flags;
    if (device->buffer_device_address) flags |= vk::MemoryAllocateFlagBits::eDeviceAddress;
    vk::MemoryDedicatedAllocateInfo dedicated({}, parts.buffer->buffer);
    dedicated.setPNext(chain);
    vk::MemoryPriorityAllocateInfoEXT priority(1.0f);
    priority.setPNext(&dedicated);
    vk::MemoryAllocateFlagsInfo flags_info(flags);
    flags_info.setPNext(device->memory_priority ? static_cast<const void*>(&priority) : &dedicated);
    vk::MemoryAllocateInfo info(bytes, memory_type);
    info.setPNext(&flags_info);
    parts.buffer->device_memory = device->device.allocateMemory(info);
    parts.buffer->memory_property_flags =
        device->physical_device.getMemoryProperties().memoryTypes[memory_type].propertyFlags;
}

ggml_backend_buffer_t finish(Parts& parts, ggml_backend_buffer_type_t type, uint64_t size, uint32_t kinds, void* host) {
    const auto& device = parts.device;
    vk_buffer buffer = parts.buffer;
    if (host != nullptr)
        buffer->ptr = host;
    else if (buffer->memory_property_flags & Property::eHostVisible)
        buffer->ptr = device->device.mapMemory(buffer->device_memory, 0, VK_WHOLE_SIZE);
    device->device.bindBufferMemory(buffer->buffer, buffer->device_memory, 0);
    if (device->buffer_device_address)
        buffer->bda_addr = device->device.getBufferAddress(vk::BufferDeviceAddressInfo(buffer->buffer));
    buffer->device = device;
    buffer->size = size;  // from here on its destructor frees the parts
    device->memory_logger->log_allocation(buffer, size);
    {
        const std::lock_guard lock(shared_mutex);
        for (auto entry = shared_buffers.begin(); entry != shared_buffers.end();)
            entry = entry->second.buffer.expired() ? shared_buffers.erase(entry) : std::next(entry);
        shared_buffers[buffer.get()] = {buffer, kinds};
    }
    auto* context = new ggml_backend_vk_buffer_context(device, std::move(buffer), parts.buffer->device->name);
    return ggml_backend_buffer_init(type, ggml_backend_vk_buffer_interface, context, size);
}

std::string memory_type_bits(uint32_t bits) {
    char text[16];
    std::snprintf(text, sizeof text, "0x%x", bits);
    return text;
}

bool enable(char* error, size_t error_size) {
    return guarded(false, error, error_size, [] {
        install();
        return true;
    });
}

bool describe(ggml_backend_buffer_type_t type, onebit_vkshare_device* out, char* error, size_t error_size) {
    return guarded(false, error, error_size, [&] {
        const vk_device device = device_of(type);
        *out = {};
        vk::PhysicalDeviceIDProperties id;
        vk::PhysicalDevicePCIBusInfoPropertiesEXT pci;
        bool has_pci = false;
        for (const auto& extension : device->physical_device.enumerateDeviceExtensionProperties())
            has_pci |= std::string_view(extension.extensionName.data()) == VK_EXT_PCI_BUS_INFO_EXTENSION_NAME;
        vk::PhysicalDeviceProperties2 properties;
        properties.pNext = &id;
        if (has_pci) id.pNext = &pci;
        device->physical_device.getProperties2(&properties);
        std::copy(id.deviceUUID.begin(), id.deviceUUID.end(), out->uuid);
        out->has_pci = has_pci;
        out->pci[0] = pci.pciDomain, out->pci[1] = pci.pciBus, out->pci[2] = pci.pciDevice,
        out->pci[3] = pci.pciFunction;
        for (const uint32_t kind : {ONEBIT_VKSHARE_OPAQUE_FD, ONEBIT_VKSHARE_DMA_BUF}) {
            if (!has_extension(device, kind)) continue;
            const auto features = features_of(device, kind);
            if (features & vk::ExternalMemoryFeatureFlagBits::eExportable) out->exportable |= kind;
            if (features & vk::ExternalMemoryFeatureFlagBits::eImportable) out->importable |= kind;
        }
        if (has_extension(device, ONEBIT_VKSHARE_HOST)) out->importable |= ONEBIT_VKSHARE_HOST;
        for (const auto& memory : device->physical_device.getMemoryProperties().memoryTypes)
            if (memory.propertyFlags & Property::eHostVisible && memory.propertyFlags & Property::eDeviceLocal)
                out->exportable |= ONEBIT_VKSHARE_HOST;
        out->max_buffer = device->max_buffer_size;
        out->host_align = device->min_imported_host_pointer_alignment;
        return true;
    });
}

ggml_backend_buffer_t allocate(ggml_backend_buffer_type_t type, uint64_t size, uint32_t kinds, char* error,
                               size_t error_size) {
    return guarded<ggml_backend_buffer_t>(nullptr, error, error_size, [&]() -> ggml_backend_buffer_t {
        Parts parts(device_of(type));
        const auto& device = parts.device;
        vk::ExternalMemoryHandleTypeFlags types;
        for (const uint32_t kind : {ONEBIT_VKSHARE_OPAQUE_FD, ONEBIT_VKSHARE_DMA_BUF}) {
            if (!(kinds & kind)) continue;
            require(device, kind, vk::ExternalMemoryFeatureFlagBits::eExportable);
            types |= handle_type(kind);
        }
        if (kinds & ~7u) handle_type(kinds);
        create_buffer(parts, whole_pages(size), types);
        const auto needs = device->device.getBufferMemoryRequirements(parts.buffer->buffer);
        const auto memory = device->physical_device.getMemoryProperties();
        const vk::ExportMemoryAllocateInfo exported(types);
        std::string last = "none of the memory types " + memory_type_bits(needs.memoryTypeBits) +
                           " that the buffer can use has the properties asked for";
        for (const auto wanted : preferred_memory(device, (kinds & ONEBIT_VKSHARE_HOST) != 0)) {
            for (uint32_t i = 0; i < memory.memoryTypeCount; ++i) {
                if (!(needs.memoryTypeBits & (1u << i))) continue;
                if ((memory.memoryTypes[i].propertyFlags & wanted) != wanted) continue;
                if (memory.memoryHeaps[memory.memoryTypes[i].heapIndex].size < needs.size) {
                    last = "no heap has " + std::to_string(needs.size) + " bytes";
                    continue;
                }
                try {
                    allocate_memory(parts, needs.size, i, types ? &exported : nullptr);
                } catch (const vk::SystemError& failure) {
                    last = failure.what();
                    continue;
                }
                return finish(parts, type, size, kinds, nullptr);
            }
        }
        refuse(device->name + ": cannot allocate " + std::to_string(size) + " shareable bytes: " + last);
    });
}

vk_buffer buffer_of(ggml_backend_buffer_t buffer) {
    if (buffer == nullptr || buffer->buft->iface.get_name != ggml_backend_vk_buffer_type_name) return nullptr;
    return static_cast<ggml_backend_vk_buffer_context*>(buffer->context)->dev_buffer;
}

uint32_t kinds_of(const vk_buffer& buffer) {
    const std::lock_guard lock(shared_mutex);
    const auto found = shared_buffers.find(buffer.get());
    return found != shared_buffers.end() && found->second.buffer.lock() == buffer ? found->second.kinds : 0;
}

int export_fd(ggml_backend_buffer_t ggml_buffer, uint32_t kind, char* error, size_t error_size) {
    return guarded(-1, error, error_size, [&] {
        const vk_buffer buffer = buffer_of(ggml_buffer);
        if (buffer == nullptr || !(kinds_of(buffer) & kind) || kind == ONEBIT_VKSHARE_HOST)
            refuse(std::string("the buffer was not allocated to be shared as ") + kind_name(kind));
        return buffer->device->device.getMemoryFdKHR({buffer->device_memory, handle_type(kind)});
    });
}

// A file that shows its size must hold what is to be imported; opaque handles of real drivers show none.
void check_size(int fd, uint32_t kind, uint64_t allocation) {
    struct stat state = {};
    if (fstat(fd, &state) != 0) refuse("fd " + std::to_string(fd) + ": expected an open descriptor");
    const off_t seek = lseek(fd, 0, SEEK_END);
    const uint64_t bytes = S_ISREG(state.st_mode)                       ? static_cast<uint64_t>(state.st_size)
                           : kind == ONEBIT_VKSHARE_DMA_BUF && seek > 0 ? static_cast<uint64_t>(seek)
                                                                        : allocation;
    if (bytes < allocation)
        refuse(std::string(kind_name(kind)) + ": expected at least " + std::to_string(allocation) +
               " bytes behind the descriptor, found " + std::to_string(bytes));
}

ggml_backend_buffer_t import_fd(ggml_backend_buffer_type_t type, uint32_t kind, int fd, uint64_t size,
                                uint64_t allocation, char* error, size_t error_size) {
    return guarded<ggml_backend_buffer_t>(nullptr, error, error_size, [&]() -> ggml_backend_buffer_t {
        Parts parts(device_of(type));
        const auto& device = parts.device;
        if (kind == ONEBIT_VKSHARE_HOST) refuse("host memory has no descriptor; use import_host");
        require(device, kind, vk::ExternalMemoryFeatureFlagBits::eImportable);
        if (allocation < size)
            refuse("allocation: expected at least " + std::to_string(size) + " bytes, found " +
                   std::to_string(allocation));
        check_size(fd, kind, allocation);
        create_buffer(parts, size, handle_type(kind));
        const auto needs = device->device.getBufferMemoryRequirements(parts.buffer->buffer);
        if (needs.size > allocation)
            refuse("allocation: this device needs " + std::to_string(needs.size) +
                   " bytes for the buffer, the exporter has " + std::to_string(allocation));
        uint32_t bits = needs.memoryTypeBits;
        if (kind == ONEBIT_VKSHARE_DMA_BUF)  // the query is only valid for handles that are not opaque
            bits &= device->device.getMemoryFdPropertiesKHR(handle_type(kind), fd).memoryTypeBits;
        const auto memory = device->physical_device.getMemoryProperties();
        const vk::ImportMemoryFdInfoKHR imported(handle_type(kind), fd);
        std::string last = "none of the memory types " + memory_type_bits(bits) + " fits";
        auto order = preferred_memory(device, false);
        order.emplace_back();
        for (const auto wanted : order) {
            for (uint32_t i = 0; i < memory.memoryTypeCount; ++i) {
                if (!(bits & (1u << i)) || (memory.memoryTypes[i].propertyFlags & wanted) != wanted) continue;
                try {
                    allocate_memory(parts, allocation, i, &imported);
                } catch (const vk::SystemError& failure) {
                    last = failure.what();
                    continue;
                }
                return finish(parts, type, size, 0, nullptr);
            }
        }
        refuse(device->name + ": cannot import " + std::to_string(size) + " bytes as " + kind_name(kind) + ": " + last);
    });
}

ggml_backend_buffer_t import_host(ggml_backend_buffer_type_t type, void* pointer, uint64_t size, char* error,
                                  size_t error_size) {
    return guarded<ggml_backend_buffer_t>(nullptr, error, error_size, [&]() -> ggml_backend_buffer_t {
        Parts parts(device_of(type));
        const auto& device = parts.device;
        require(device, ONEBIT_VKSHARE_HOST, vk::ExternalMemoryFeatureFlagBits::eImportable);
        const uint64_t align = device->min_imported_host_pointer_alignment;
        if (reinterpret_cast<uintptr_t>(pointer) % align != 0 || size % align != 0)
            refuse("host memory: expected an address and a size that are multiples of " + std::to_string(align));
        create_buffer(parts, size, handle_type(ONEBIT_VKSHARE_HOST));
        const auto needs = device->device.getBufferMemoryRequirements(parts.buffer->buffer);
        const auto host = device->device.getMemoryHostPointerPropertiesEXT(handle_type(ONEBIT_VKSHARE_HOST), pointer);
        const auto memory = device->physical_device.getMemoryProperties();
        const vk::ImportMemoryHostPointerInfoEXT imported(handle_type(ONEBIT_VKSHARE_HOST), pointer);
        const vk::MemoryPropertyFlags wanted = Property::eHostVisible | Property::eHostCoherent;
        for (uint32_t i = 0; i < memory.memoryTypeCount; ++i) {
            if (!(needs.memoryTypeBits & host.memoryTypeBits & (1u << i))) continue;
            if ((memory.memoryTypes[i].propertyFlags & wanted) != wanted) continue;
            allocate_memory(parts, size, i, &imported);
            return finish(parts, type, size, ONEBIT_VKSHARE_HOST, pointer);
        }
        refuse(device->name + ": no memory type takes this host memory");
    });
}

bool memory(ggml_backend_buffer_t ggml_buffer, onebit_vkshare_memory* out) {
    return guarded(false, nullptr, 0, [&] {
        const vk_buffer buffer = buffer_of(ggml_buffer);
        if (buffer == nullptr || buffer->size == 0) return false;
        *out = {};
        out->host = buffer->ptr;
        out->size = buffer->size;
        out->allocation = buffer->device->device.getBufferMemoryRequirements(buffer->buffer).size;
        out->memory_flags = static_cast<uint32_t>(static_cast<VkMemoryPropertyFlags>(buffer->memory_property_flags));
        const auto types = buffer->device->physical_device.getMemoryProperties();
        for (uint32_t i = types.memoryTypeCount; i-- > 0;)
            if (types.memoryTypes[i].propertyFlags == buffer->memory_property_flags) out->memory_type = i;
        out->kinds = kinds_of(buffer) | (buffer->ptr != nullptr ? uint32_t{ONEBIT_VKSHARE_HOST} : 0);
        return true;
    });
}

}  // namespace
}  // namespace onebit::vkshare

const onebit_vkshare_api* onebit_vkshare(uint32_t version) {
    using namespace onebit::vkshare;
    static const onebit_vkshare_api api = {
        ONEBIT_VKSHARE_VERSION, &enable, &describe, &allocate, &export_fd, &import_fd, &import_host, &memory,
    };
    return version == ONEBIT_VKSHARE_VERSION ? &api : nullptr;
}
