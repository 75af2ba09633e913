#include <dlfcn.h>

#include <array>
#include <string>

#include "ggml-backend-impl.h"
#include "tandem/owner.h"
#include "vkshare/vkshare.h"

namespace onebit::tandem {
namespace {

// The library that the device's code is in may have been loaded at run time, so its functions are looked up there.
Result<const onebit_vkshare_api*> find_sharing(ggml_backend_dev_t device) {
    const std::string name = ggml_backend_dev_name(device);
    Dl_info info = {};
    if (dladdr(reinterpret_cast<void*>(device->iface.get_name), &info) == 0 || info.dli_fname == nullptr)
        return Error{ErrorCode::internal, name, "the library of its code", "none", ""};
    void* library = dlopen(info.dli_fname, RTLD_NOW | RTLD_NOLOAD);
    if (library == nullptr) library = dlopen(nullptr, RTLD_NOW);
    using Function = const onebit_vkshare_api* (*)(uint32_t);
    const auto function = reinterpret_cast<Function>(dlsym(library, "onebit_vkshare"));
    if (function == nullptr)
        return Error{ErrorCode::unsupported, info.dli_fname, "a ggml-vulkan with 1bit's sharing unit (onebit_vkshare)",
                     "one without it", "use the libggml-vulkan.so that was built together with this program"};
    const onebit_vkshare_api* api = function(ONEBIT_VKSHARE_VERSION);
    if (api == nullptr)
        return Error{ErrorCode::unsupported, info.dli_fname,
                     "version " + std::to_string(ONEBIT_VKSHARE_VERSION) + " of the sharing unit", "another version",
                     "use the libggml-vulkan.so that was built together with this program"};
    return api;
}

class VulkanOwner final : public Owner {
public:
    VulkanOwner(ggml_backend_dev_t device, const onebit_vkshare_api* api, const onebit_vkshare_device& about)
        : device_(device), api_(api), kinds_(about.exportable) {
        identity_.backend = "Vulkan";
        identity_.name = ggml_backend_dev_name(device);
        DeviceUuid uuid;
        std::copy(std::begin(about.uuid), std::end(about.uuid), uuid.begin());
        if (uuid != DeviceUuid{}) identity_.uuid = uuid;
        if (about.has_pci)
            identity_.pci = PciAddress{about.pci[0], static_cast<uint8_t>(about.pci[1]),
                                       static_cast<uint8_t>(about.pci[2]), static_cast<uint8_t>(about.pci[3])};
    }
    ggml_backend_dev_t device() const override { return device_; }
    const DeviceId& identity() const override { return identity_; }
    MemoryKinds kinds() const override { return kinds_; }

    Result<ggml_backend_buffer_t> allocate(size_t size, MemoryKinds kinds) override {
        Text text = {};
        ggml_backend_buffer_t buffer =
            api_->allocate(ggml_backend_dev_buffer_type(device_), size, kinds, text.data(), text.size());
        if (buffer == nullptr) return refusal(ErrorCode::no_space, "shareable memory", text);
        return buffer;
    }

    Result<SharedMemory> share(ggml_backend_buffer_t buffer, MemoryKind kind) override {
        onebit_vkshare_memory about = {};
        if (!api_->memory(buffer, &about))
            return Error{ErrorCode::internal, identity_.name, "a Vulkan buffer", "another one", ""};
        SharedMemory memory;
        memory.kind = kind;
        memory.size = about.size;
        memory.allocation = about.allocation;
        if (kind == host_pointer) {
            memory.host = about.host;
            if (memory.host == nullptr)
                return Error{ErrorCode::unsupported, identity_.name, "memory that the CPU sees",
                             "memory type " + std::to_string(about.memory_type) + " without a host mapping", ""};
            return memory;
        }
        Text text = {};
        memory.fd = UniqueFd(api_->export_fd(buffer, kind, text.data(), text.size()));
        if (!memory.fd) return refusal(ErrorCode::unsupported, to_string(kind), text);
        return memory;
    }

    void* host(ggml_backend_buffer_t buffer) const override {
        onebit_vkshare_memory about = {};
        return api_->memory(buffer, &about) ? about.host : nullptr;
    }

private:
    using Text = std::array<char, 512>;
    Error refusal(ErrorCode code, const char* what, const Text& text) const {
        return {code, identity_.name + ", " + what, "", text.data(), ""};
    }

    ggml_backend_dev_t device_;
    const onebit_vkshare_api* api_;
    MemoryKinds kinds_;
    DeviceId identity_;
};

}  // namespace

Result<std::unique_ptr<Owner>> make_vulkan_owner(ggml_backend_dev_t device) {
    auto api = find_sharing(device);
    if (!api) return std::move(api).error();
    std::array<char, 512> text = {};
    const std::string name = ggml_backend_dev_name(device);
    if (!(*api)->enable(text.data(), text.size()))
        return Error{ErrorCode::conflict, name, "a Vulkan device that can share memory", text.data(), ""};
    onebit_vkshare_device about = {};
    if (!(*api)->describe(ggml_backend_dev_buffer_type(device), &about, text.data(), text.size()))
        return Error{ErrorCode::unavailable, name, "a description of the device", text.data(), ""};
    if (about.exportable == 0)
        return Error{ErrorCode::unsupported, name,
                     "a driver that exports memory (VK_KHR_external_memory_fd) or maps it", "neither",
                     "use this device alone"};
    return std::unique_ptr<Owner>(std::make_unique<VulkanOwner>(device, *api, about));
}

}  // namespace onebit::tandem
