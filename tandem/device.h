// The tandem as a ggml device: "Tandem0" beside "CPU" and "Vulkan0".
#pragma once

#include "base/result.h"
#include "ggml-backend.h"
#include "tandem/settings.h"

namespace onebit::tandem {

// Makes a tandem as the next "TandemN". It lives until the process ends. One thread at a time, before its members'
// devices are used by anyone else. announce: tell ggml's registry; a dynamic backend is told of by its loader.
Result<ggml_backend_dev_t> register_tandem(const Settings& settings, bool announce = true);

}  // namespace onebit::tandem
