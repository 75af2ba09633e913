// Which sharing extensions each Vulkan device was created with.
#pragma once

#include "ggml-vulkan-types.h"

namespace onebit::vkshare {

struct Extensions {
    bool memory_fd = false;  // VK_KHR_external_memory_fd
    bool dma_buf = false;    // VK_EXT_external_memory_dma_buf
};

// Wraps vkCreateDevice in ggml-vulkan's dispatch table, so that devices are created with what they have of the
// extensions. Throws std::runtime_error when a device was created before. Not for two threads at once.
void install();

// Of a device created after install(); all false for another one. Any thread.
Extensions extensions_of(VkDevice device);

}  // namespace onebit::vkshare
