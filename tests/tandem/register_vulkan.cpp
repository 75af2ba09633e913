// Makes the Vulkan devices known to a ggml that was built without them, before the first test asks for one.
#include <cstdlib>

#include "ggml-backend-impl.h"
#include "ggml-vulkan.h"

namespace {

bool register_vulkan() {
    setenv("GGML_VK_VISIBLE_DEVICES", "0", 0);  // ggml-vulkan leaves software devices out unless they are named
    ggml_backend_register(ggml_backend_vk_reg());
    return true;
}
[[maybe_unused]] const bool registered = register_vulkan();

}  // namespace
