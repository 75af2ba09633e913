// Preloaded into a program that was built without ggml-cuda: loads the library that ONEBIT_BENCH_CUDA names, as ggml's own
// dynamic builds do, so that a program of a machine without nvcc can be measured on one that has it.
#include <cstdlib>

#include "ggml-backend.h"

namespace {

__attribute__((constructor)) void load_cuda() {
    const char* library = std::getenv("ONEBIT_BENCH_CUDA");
    if (library != nullptr) ggml_backend_load(library);
}

}  // namespace
