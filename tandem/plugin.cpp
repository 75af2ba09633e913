// libggml-tandem.so: Tandem0 in any program of the same llama.cpp, as a dynamic backend (GGML_BACKEND_PATH names it) or
// preloaded (LD_PRELOAD). ONEBIT_TANDEM says what it is made of.
#include <cstdlib>
#include <cstring>

#include "base/log.h"
#include "ggml-backend-impl.h"
#include "tandem/device.h"

namespace {

// Null, with a log line, when there is no tandem to be had.
ggml_backend_dev_t make_from_environment(bool announce) {
    const char* text = std::getenv("ONEBIT_TANDEM");
    if (text == nullptr) {
        onebit::log_error(
            "tandem", "ONEBIT_TANDEM: expected owner=DEVICE,prefill=DEVICE,decode=DEVICE,min=TOKENS, found nothing");
        return nullptr;
    }
    auto settings = onebit::tandem::parse_settings(text);
    if (!settings) {
        onebit::log_error("tandem", settings.error().message());
        return nullptr;
    }
    auto device = onebit::tandem::register_tandem(*settings, announce);
    if (!device) {
        onebit::log_error("tandem", device.error().message());
        return nullptr;
    }
    return *device;
}

bool preloaded() {
    const char* list = std::getenv("LD_PRELOAD");
    return list != nullptr && std::strstr(list, "libggml-tandem") != nullptr;
}

// A preloaded library is loaded before main() and asked for nothing, so it registers itself.
__attribute__((constructor)) void register_when_preloaded() {
    if (preloaded()) make_from_environment(true);
}

}  // namespace

extern "C" __attribute__((visibility("default"))) ggml_backend_reg_t ggml_backend_init() {
    ggml_backend_dev_t device = preloaded() ? nullptr : make_from_environment(false);
    return device == nullptr ? nullptr : ggml_backend_dev_backend_reg(device);
}
