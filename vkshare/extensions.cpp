#include "vkshare/extensions.h"

#include <cstring>
#include <map>
#include <mutex>
#include <stdexcept>
#include <vector>

#include "ggml-vulkan-common.h"

namespace onebit::vkshare {
namespace {

std::mutex mutex;
std::map<VkDevice, Extensions> created;
PFN_vkCreateDevice next_create = nullptr;

bool contains(const std::vector<VkExtensionProperties>& all, const char* name) {
    for (const auto& extension : all)
        if (std::strcmp(extension.extensionName, name) == 0) return true;
    return false;
}

VKAPI_ATTR VkResult VKAPI_CALL create_with_sharing(VkPhysicalDevice physical, const VkDeviceCreateInfo* info,
                                                   const VkAllocationCallbacks* allocator, VkDevice* device) {
    std::vector<const char*> names(info->ppEnabledExtensionNames,
                                   info->ppEnabledExtensionNames + info->enabledExtensionCount);
    const auto& dispatcher = ggml_vk_default_dispatcher();
    uint32_t count = 0;
    dispatcher.vkEnumerateDeviceExtensionProperties(physical, nullptr, &count, nullptr);
    std::vector<VkExtensionProperties> present(count);
    dispatcher.vkEnumerateDeviceExtensionProperties(physical, nullptr, &count, present.data());
    present.resize(count);

    const auto add = [&](const char* name) {
        if (!contains(present, name)) return false;
        for (const char* already : names)
            if (std::strcmp(already, name) == 0) return true;
        names.push_back(name);
        return true;
    };
    Extensions found;
    found.memory_fd = add(VK_KHR_EXTERNAL_MEMORY_FD_EXTENSION_NAME);
    found.dma_buf = found.memory_fd && add(VK_EXT_EXTERNAL_MEMORY_DMA_BUF_EXTENSION_NAME);

    VkDeviceCreateInfo extended = *info;
    extended.enabledExtensionCount = static_cast<uint32_t>(names.size());
    extended.ppEnabledExtensionNames = names.data();
    const VkResult result = next_create(physical, &extended, allocator, device);
    if (result == VK_SUCCESS) {
        const std::lock_guard lock(mutex);
        created[*device] = found;
    }
    return result;
}

}  // namespace

void install() {
    ggml_vk_instance_init();
    auto& dispatcher = ggml_vk_default_dispatcher();
    if (dispatcher.vkCreateDevice == &create_with_sharing) return;
    for (const auto& device : vk_instance.devices)
        if (device != nullptr)
            throw std::runtime_error("a Vulkan device was used before sharing was enabled; enable it first");
    next_create = dispatcher.vkCreateDevice;
    dispatcher.vkCreateDevice = &create_with_sharing;
}

Extensions extensions_of(VkDevice device) {
    const std::lock_guard lock(mutex);
    const auto found = created.find(device);
    return found == created.end() ? Extensions{} : found->second;
}

}  // namespace onebit::vkshare
