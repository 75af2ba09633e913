// Counts the pipelines that ggml-vulkan compiles. Part of the ggml-vulkan library; needs no Vulkan headers to call.
#pragma once

#include <atomic>
#include <cstdint>

namespace onebit {

// From now on `count` grows by one with each compute pipeline compiled by ggml-vulkan in this process; it must stay
// valid for ever. Call it before the first Vulkan device is used, from one thread. Returns false without a Vulkan
// driver.
__attribute__((visibility("default"))) bool count_vulkan_pipelines(std::atomic<uint64_t>* count);

}  // namespace onebit
