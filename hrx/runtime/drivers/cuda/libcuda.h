// libcuda opened at run time, and its results as errors.
#pragma once

#include <string>
#include <vector>

#include "hrx/runtime/driver.h"
#include "hrx/runtime/drivers/cuda/cuda_api.h"

namespace onebit::hrx::runtime::cuda {

// The functions; filled by load(), constant afterwards.
const Functions& api();

// Opens the library and calls cuInit. ONEBIT_HRX_LIBCUDA names another library than the system's.
Result<void> load(std::vector<ProbeEntry>& tried);

// "CUDA_ERROR_OUT_OF_MEMORY (2, out of memory)".
std::string describe(CUresult result);
// no_space, unsupported, cancelled (the context is lost) or io, with the call's name.
Error error(const char* call, CUresult result);

}  // namespace onebit::hrx::runtime::cuda

// Calls a function of libcuda; returns its failure from the enclosing function.
#define ONEBIT_HRX_CUDA(function, ...)                                                          \
    do {                                                                                        \
        if (const auto cuda_result = ::onebit::hrx::runtime::cuda::api().function(__VA_ARGS__); \
            cuda_result != ::onebit::hrx::runtime::cuda::CUDA_SUCCESS)                          \
            return ::onebit::hrx::runtime::cuda::error(#function, cuda_result);                 \
    } while (false)
