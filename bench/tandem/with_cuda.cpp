// Preloaded into a program that was built without ggml-cuda: loads the library that ONEBIT_BENCH_CUDA names when
// devices are first asked for, as ggml's own dynamic builds do, so that a program of a machine without nvcc can be
// measured on one that has it. Not at the start of the process: CUDA does not live through a fork.
#include <dlfcn.h>

#include <cstdlib>

#include "ggml-backend.h"

namespace {

void load_cuda() {
    static bool loaded = false;
    if (loaded) return;
    loaded = true;
    if (const char* library = std::getenv("ONEBIT_BENCH_CUDA")) ggml_backend_load(library);
}

template <typename Function>
Function next(const char* name) {
    load_cuda();
    return reinterpret_cast<Function>(::dlsym(RTLD_NEXT, name));
}

}  // namespace

size_t ggml_backend_dev_count() { return next<size_t (*)()>("ggml_backend_dev_count")(); }
size_t ggml_backend_reg_count() { return next<size_t (*)()>("ggml_backend_reg_count")(); }
ggml_backend_dev_t ggml_backend_dev_by_name(const char* name) {
    return next<ggml_backend_dev_t (*)(const char*)>("ggml_backend_dev_by_name")(name);
}
ggml_backend_dev_t ggml_backend_dev_by_type(enum ggml_backend_dev_type type) {
    return next<ggml_backend_dev_t (*)(enum ggml_backend_dev_type)>("ggml_backend_dev_by_type")(type);
}
ggml_backend_reg_t ggml_backend_reg_by_name(const char* name) {
    return next<ggml_backend_reg_t (*)(const char*)>("ggml_backend_reg_by_name")(name);
}
