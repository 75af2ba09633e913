// libhsa-runtime64 opened at run time: where it is looked for, its functions, its results as errors.
#pragma once

#include <string>
#include <vector>

#include "hrx/hsa/hsa_api.h"
#include "hrx/runtime/driver.h"

extern "C" {
// Not in hsa_api.h, since only real drivers have it: how an agent may reach a pool (AMD extension, same version).
enum hsa_amd_agent_memory_pool_info_t : uint32_t { HSA_AMD_AGENT_MEMORY_POOL_INFO_ACCESS = 0 };
enum hsa_amd_memory_pool_access_t : uint32_t { HSA_AMD_MEMORY_POOL_ACCESS_NEVER_ALLOWED = 0 };
hsa_status_t hsa_amd_agent_memory_pool_get_info(hsa_agent_t agent, hsa_amd_memory_pool_t pool,
                                                hsa_amd_agent_memory_pool_info_t attribute, void* value);
}

namespace onebit::hrx::runtime::amdgpu {

#define ONEBIT_HRX_HSA_FUNCTIONS(X)              \
    X(hsa_init)                                  \
    X(hsa_shut_down)                             \
    X(hsa_status_string)                         \
    X(hsa_system_get_info)                       \
    X(hsa_iterate_agents)                        \
    X(hsa_agent_get_info)                        \
    X(hsa_signal_create)                         \
    X(hsa_signal_destroy)                        \
    X(hsa_signal_load_scacquire)                 \
    X(hsa_signal_store_relaxed)                  \
    X(hsa_signal_store_screlease)                \
    X(hsa_signal_wait_scacquire)                 \
    X(hsa_queue_create)                          \
    X(hsa_queue_destroy)                         \
    X(hsa_queue_load_read_index_scacquire)       \
    X(hsa_queue_add_write_index_relaxed)         \
    X(hsa_amd_agent_iterate_memory_pools)        \
    X(hsa_amd_memory_pool_get_info)              \
    X(hsa_amd_memory_pool_allocate)              \
    X(hsa_amd_memory_pool_free)                  \
    X(hsa_amd_agents_allow_access)               \
    X(hsa_amd_memory_lock)                       \
    X(hsa_amd_memory_unlock)                     \
    X(hsa_memory_copy)                           \
    X(hsa_amd_interop_map_buffer)                \
    X(hsa_amd_interop_unmap_buffer)              \
    X(hsa_code_object_reader_create_from_memory) \
    X(hsa_code_object_reader_destroy)            \
    X(hsa_executable_create_alt)                 \
    X(hsa_executable_destroy)                    \
    X(hsa_executable_load_agent_code_object)     \
    X(hsa_executable_freeze)                     \
    X(hsa_executable_get_symbol_by_name)         \
    X(hsa_executable_symbol_get_info)
// May be missing; nullptr then.
#define ONEBIT_HRX_HSA_OPTIONAL_FUNCTIONS(X) \
    X(hsa_amd_portable_export_dmabuf)        \
    X(hsa_amd_agent_memory_pool_get_info)    \
    X(hsa_amd_register_system_event_handler)

struct Functions {
#define ONEBIT_HRX_DECLARE(name) decltype(&::name) name = nullptr;
    ONEBIT_HRX_HSA_FUNCTIONS(ONEBIT_HRX_DECLARE)
    ONEBIT_HRX_HSA_OPTIONAL_FUNCTIONS(ONEBIT_HRX_DECLARE)
#undef ONEBIT_HRX_DECLARE
};

// Filled by load(), constant afterwards.
const Functions& api();

struct Candidate {
    std::string origin, library;
    std::string missing;  // why there is nothing to open; empty: library can be tried
};
// In the order in which they are tried. A variable that names a library ends the list when it is ONEBIT_HRX_LIBHSA.
// root: before /opt; environment: reads variables. Both are other than the machine's in tests only.
std::vector<Candidate> candidates(const std::string& root, const char* (*environment)(const char* name));

// Opens the first library that starts and shows a GPU.
Result<void> load(std::vector<ProbeEntry>& tried);
// GPU and CPU agents of the library that load() opened.
const std::vector<hsa_agent_t>& gpu_agents();
const std::vector<hsa_agent_t>& cpu_agents();

// "HSA_STATUS_ERROR_OUT_OF_RESOURCES (0x1008): text of the library".
std::string describe(hsa_status_t status);
Error error(const char* call, hsa_status_t status);

}  // namespace onebit::hrx::runtime::amdgpu

// Calls a function of libhsa; returns its failure from the enclosing function.
#define ONEBIT_HRX_HSA(function, ...)                                                            \
    do {                                                                                         \
        if (const auto hsa_result = ::onebit::hrx::runtime::amdgpu::api().function(__VA_ARGS__); \
            hsa_result != HSA_STATUS_SUCCESS)                                                    \
            return ::onebit::hrx::runtime::amdgpu::error(#function, hsa_result);                 \
    } while (false)
