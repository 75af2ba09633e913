// The tandem as a ggml device: "Tandem0" beside "CPU" and "Vulkan0".
#pragma once

#include <string>

#include "base/result.h"
#include "ggml-backend.h"
#include "tandem/settings.h"

namespace onebit::tandem {

// Makes a tandem as the next "TandemN". It lives until the process ends. One thread at a time, before its members'
// devices are used by anyone else. announce: tell ggml's registry; a dynamic backend is told of by its loader.
Result<ggml_backend_dev_t> register_tandem(const Settings& settings, bool announce = true);

// Another route of the tandem of that name: which members read prompts and make tokens, and from how many tokens on a
// graph is one of a prompt. Any thread; graphs that are computed meanwhile take the old one or the new one. Error
// not_found for a name that is none.
Result<void> set_tandem_route(const std::string& name, const std::string& prefill, const std::string& decode,
                              int64_t min_tokens);

}  // namespace onebit::tandem
