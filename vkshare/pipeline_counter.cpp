#include "vkshare/pipeline_counter.h"

#include "ggml-vulkan-common.h"
#include "ggml-vulkan-types.h"

namespace onebit {
namespace {

std::atomic<std::atomic<uint64_t>*> counter{nullptr};
PFN_vkCreateComputePipelines next_create = nullptr;

VKAPI_ATTR VkResult VKAPI_CALL counting_create(VkDevice device, VkPipelineCache cache, uint32_t count,
                                               const VkComputePipelineCreateInfo* infos,
                                               const VkAllocationCallbacks* allocator, VkPipeline* pipelines) {
    const VkResult result = next_create(device, cache, count, infos, allocator, pipelines);
    counter.load(std::memory_order_relaxed)->fetch_add(count, std::memory_order_relaxed);
    return result;
}

}  // namespace

bool count_vulkan_pipelines(std::atomic<uint64_t>* count) {
    try {
        ggml_vk_instance_init();
        auto& dispatcher = ggml_vk_default_dispatcher();
        if (count == nullptr || dispatcher.vkCreateComputePipelines == nullptr) return false;
        counter.store(count, std::memory_order_relaxed);
        if (dispatcher.vkCreateComputePipelines != &counting_create) {
            next_create = dispatcher.vkCreateComputePipelines;
            dispatcher.vkCreateComputePipelines = &counting_create;
        }
        return true;
    } catch (...) {
        return false;  // no driver, or one too old: ggml-vulkan says so itself
    }
}

}  // namespace onebit
