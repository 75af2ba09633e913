#include "engine/devices_vulkan.h"

#include <dlfcn.h>
#include <vulkan/vulkan_core.h>

#include <algorithm>
#include <cstring>
#include <memory>

namespace onebit {
namespace {

constexpr const char* loader_name = "libvulkan.so.1";

std::string version_text(uint32_t version) {
    return std::to_string(VK_API_VERSION_MAJOR(version)) + "." + std::to_string(VK_API_VERSION_MINOR(version)) + "." +
           std::to_string(VK_API_VERSION_PATCH(version));
}

struct Functions {
    PFN_vkGetInstanceProcAddr get = nullptr;
    VkInstance instance = nullptr;

    template <typename F>
    F find(const char* name) const {
        return reinterpret_cast<F>(get(instance, name));
    }
};

VulkanDevice describe(const Functions& vulkan, VkPhysicalDevice handle) {
    const auto extensions_of =
        vulkan.find<PFN_vkEnumerateDeviceExtensionProperties>("vkEnumerateDeviceExtensionProperties");
    const auto properties_of = vulkan.find<PFN_vkGetPhysicalDeviceProperties2>("vkGetPhysicalDeviceProperties2");
    uint32_t count = 0;
    extensions_of(handle, nullptr, &count, nullptr);
    std::vector<VkExtensionProperties> extensions(count);
    extensions_of(handle, nullptr, &count, extensions.data());
    extensions.resize(count);
    const auto has = [&extensions](const char* name) {
        return std::ranges::any_of(extensions, [name](const auto& one) { return !strcmp(one.extensionName, name); });
    };

    VkPhysicalDevicePCIBusInfoPropertiesEXT pci{};
    pci.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PCI_BUS_INFO_PROPERTIES_EXT;
    VkPhysicalDeviceIDProperties id{};
    id.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_ID_PROPERTIES;
    VkPhysicalDeviceDriverProperties driver{};
    driver.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_DRIVER_PROPERTIES;
    driver.pNext = &id;
    const bool has_pci = has(VK_EXT_PCI_BUS_INFO_EXTENSION_NAME);
    if (has_pci) id.pNext = &pci;
    VkPhysicalDeviceProperties2 properties{};
    properties.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2;
    properties.pNext = &driver;
    properties_of(handle, &properties);

    VulkanDevice device;
    device.name = properties.properties.deviceName;
    device.driver = std::string(driver.driverName) + (driver.driverInfo[0] != '\0' ? " " : "") + driver.driverInfo;
    device.api_version = version_text(properties.properties.apiVersion);
    device.on_cpu = properties.properties.deviceType == VK_PHYSICAL_DEVICE_TYPE_CPU;
    device.integrated = properties.properties.deviceType == VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU;
    device.cooperative_matrix = has("VK_KHR_cooperative_matrix");
    DeviceUuid uuid{};
    std::memcpy(uuid.data(), id.deviceUUID, uuid.size());
    if (uuid != DeviceUuid{}) device.uuid = uuid;
    if (has_pci) {
        device.pci = PciAddress{pci.pciDomain, static_cast<uint8_t>(pci.pciBus), static_cast<uint8_t>(pci.pciDevice),
                                static_cast<uint8_t>(pci.pciFunction)};
    }
    return device;
}

}  // namespace

Result<std::vector<VulkanDevice>> query_vulkan() {
    // never closed: a driver's threads and exit handlers may still run code of it
    void* loader = dlopen(loader_name, RTLD_NOW | RTLD_LOCAL);
    if (loader == nullptr) {
        const char* reason = dlerror();
        return Error{ErrorCode::not_found, "Vulkan loader", loader_name, reason != nullptr ? reason : "nothing",
                     "apt-get install libvulkan1"};
    }
    Functions vulkan;
    vulkan.get = reinterpret_cast<PFN_vkGetInstanceProcAddr>(dlsym(loader, "vkGetInstanceProcAddr"));
    if (vulkan.get == nullptr) {
        return Error{ErrorCode::invalid, loader_name, "the function vkGetInstanceProcAddr", "none",
                     "reinstall libvulkan1"};
    }
    VkApplicationInfo application{};
    application.sType = VK_STRUCTURE_TYPE_APPLICATION_INFO;
    application.apiVersion = VK_API_VERSION_1_2;
    VkInstanceCreateInfo create{};
    create.sType = VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO;
    create.pApplicationInfo = &application;
    const auto create_instance = vulkan.find<PFN_vkCreateInstance>("vkCreateInstance");
    const VkResult created = create_instance == nullptr ? VK_ERROR_INITIALIZATION_FAILED
                                                        : create_instance(&create, nullptr, &vulkan.instance);
    if (created != VK_SUCCESS) {
        return Error{ErrorCode::unavailable, "Vulkan", "a driver (ICD) that starts",
                     "vkCreateInstance gave " + std::to_string(created),
                     "install the driver of your GPU: mesa-vulkan-drivers for AMD and Intel, NVIDIA's own for NVIDIA"};
    }
    const auto list = vulkan.find<PFN_vkEnumeratePhysicalDevices>("vkEnumeratePhysicalDevices");
    uint32_t count = 0;
    list(vulkan.instance, &count, nullptr);
    std::vector<VkPhysicalDevice> handles(count);
    list(vulkan.instance, &count, handles.data());
    handles.resize(count);
    std::vector<VulkanDevice> devices;
    for (const VkPhysicalDevice handle : handles) {
        // below 1.1 there is no vkGetPhysicalDeviceProperties2, and ggml-vulkan needs 1.2
        VkPhysicalDeviceProperties plain;
        vulkan.find<PFN_vkGetPhysicalDeviceProperties>("vkGetPhysicalDeviceProperties")(handle, &plain);
        if (plain.apiVersion >= VK_API_VERSION_1_2) devices.push_back(describe(vulkan, handle));
    }
    vulkan.find<PFN_vkDestroyInstance>("vkDestroyInstance")(vulkan.instance, nullptr);
    return devices;
}

}  // namespace onebit
