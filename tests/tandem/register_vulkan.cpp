// Makes the Vulkan devices known to a ggml that was built without them, before the first test asks for one.
#include "ggml-backend-impl.h"
#include "ggml-vulkan.h"

namespace {
[[maybe_unused]] const bool registered = (ggml_backend_register(ggml_backend_vk_reg()), true);
}  // namespace
