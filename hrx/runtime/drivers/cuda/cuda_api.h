// The part of NVIDIA's CUDA driver API that this driver calls, written from its public reference (CUDA Driver API,
// version 12 and 13; names with _v2 are the 64-bit forms that the reference's macros stand for). libcuda is opened at
// run time, so that neither a toolkit nor the library is needed to build. tests/hrx-cts/cuda_api_test.cpp compares the
// layouts with a toolkit's header where one is installed.
#pragma once

#include <cstddef>
#include <cstdint>

namespace onebit::hrx::runtime::cuda {

using CUresult = int;
using CUdevice = int;
using CUdeviceptr = unsigned long long;
using CUmemGenericAllocationHandle = unsigned long long;
using CUcontext = struct CUctx_st*;
using CUmodule = struct CUmod_st*;
using CUfunction = struct CUfunc_st*;
using CUstream = struct CUstream_st*;
using CUevent = struct CUevent_st*;
using CUgraph = struct CUgraph_st*;
using CUgraphNode = struct CUgraphNode_st*;
using CUgraphExec = struct CUgraphExec_st*;
using CUexternalMemory = struct CUextMemory_st*;

struct CUuuid {
    char bytes[16];
};

enum : CUresult {
    CUDA_SUCCESS = 0,
    CUDA_ERROR_OUT_OF_MEMORY = 2,
    CUDA_ERROR_INVALID_IMAGE = 200,
    CUDA_ERROR_NO_BINARY_FOR_GPU = 209,
    CUDA_ERROR_INVALID_PTX = 218,
    CUDA_ERROR_UNSUPPORTED_PTX_VERSION = 222,
    CUDA_ERROR_NOT_FOUND = 500,
    CUDA_ERROR_NOT_READY = 600,
    CUDA_ERROR_ILLEGAL_ADDRESS = 700,
    CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES = 701,
    CUDA_ERROR_LAUNCH_TIMEOUT = 702,
    CUDA_ERROR_ASSERT = 710,
    CUDA_ERROR_HARDWARE_STACK_ERROR = 714,
    CUDA_ERROR_LAUNCH_FAILED = 719,
    CUDA_ERROR_NOT_SUPPORTED = 801,
};

enum CUdevice_attribute : int {
    CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK = 1,
    CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X = 2,  // Y and Z follow
    CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X = 5,   // Y and Z follow
    CU_DEVICE_ATTRIBUTE_WARP_SIZE = 10,
    CU_DEVICE_ATTRIBUTE_CLOCK_RATE = 13,  // kHz
    CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT = 16,
    CU_DEVICE_ATTRIBUTE_INTEGRATED = 18,
    CU_DEVICE_ATTRIBUTE_PCI_BUS_ID = 33,
    CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID = 34,
    CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID = 50,
    CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR = 75,
    CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR = 76,
    CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN = 97,
    CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED = 103,
    CU_DEVICE_ATTRIBUTE_DMA_BUF_SUPPORTED = 124,
};

enum CUfunction_attribute : int {
    CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK = 0,
    CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES = 1,
    CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES = 3,
    CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES = 8,
};

enum CUjit_option : int {
    CU_JIT_ERROR_LOG_BUFFER = 5,
    CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES = 6,
};

enum : unsigned {
    CU_STREAM_NON_BLOCKING = 1,
    CU_EVENT_DISABLE_TIMING = 2,
    CU_MEMHOSTALLOC_PORTABLE = 1,
    CU_MEMHOSTALLOC_DEVICEMAP = 2,
    CU_MEMHOSTREGISTER_PORTABLE = 1,
    CU_MEMHOSTREGISTER_DEVICEMAP = 2,
    CUDA_EXTERNAL_MEMORY_DEDICATED = 1,
};
enum : int {
    CU_MEM_ALLOCATION_TYPE_PINNED = 1,
    CU_MEM_LOCATION_TYPE_DEVICE = 1,
    CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR = 1,
    CU_MEM_ACCESS_FLAGS_PROT_READWRITE = 3,
    CU_MEM_ALLOC_GRANULARITY_MINIMUM = 0,
    CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD = 1,
    CU_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD = 1,
};

struct CUmemLocation {
    int type;
    int id;
};
struct CUmemAllocationProp {
    int type;
    int requestedHandleTypes;
    CUmemLocation location;
    void* win32HandleMetaData;
    struct {
        unsigned char compressionType;
        unsigned char gpuDirectRDMACapable;
        unsigned short usage;
        unsigned char reserved[4];
    } allocFlags;
};
struct CUmemAccessDesc {
    CUmemLocation location;
    int flags;
};
struct CUDA_EXTERNAL_MEMORY_HANDLE_DESC {
    int type;
    union {
        int fd;
        struct {
            void* handle;
            const void* name;
        } win32;
        const void* nvSciBufObject;
    } handle;
    unsigned long long size;
    unsigned flags;
    unsigned reserved[16];
};
struct CUDA_EXTERNAL_MEMORY_BUFFER_DESC {
    unsigned long long offset;
    unsigned long long size;
    unsigned flags;
    unsigned reserved[16];
};
struct CUDA_KERNEL_NODE_PARAMS {
    CUfunction func;
    unsigned gridDimX, gridDimY, gridDimZ;
    unsigned blockDimX, blockDimY, blockDimZ;
    unsigned sharedMemBytes;
    void** kernelParams;
    void** extra;
    // of the _v2 form, from CUDA 12 on; an older driver reads the fields above only
    struct CUkern_st* kern;
    CUcontext ctx;
};

// X(name here, symbol, parameters). The first list is what every driver since CUDA 11.4 has.
#define ONEBIT_HRX_CUDA_FUNCTIONS(X)                                                                               \
    X(cuInit, "cuInit", (unsigned flags))                                                                          \
    X(cuDriverGetVersion, "cuDriverGetVersion", (int* version))                                                    \
    X(cuGetErrorName, "cuGetErrorName", (CUresult result, const char** name))                                      \
    X(cuGetErrorString, "cuGetErrorString", (CUresult result, const char** text))                                  \
    X(cuDeviceGetCount, "cuDeviceGetCount", (int* count))                                                          \
    X(cuDeviceGet, "cuDeviceGet", (CUdevice * device, int ordinal))                                                \
    X(cuDeviceGetName, "cuDeviceGetName", (char* name, int length, CUdevice device))                               \
    X(cuDeviceGetUuid, "cuDeviceGetUuid_v2", (CUuuid * uuid, CUdevice device))                                     \
    X(cuDeviceTotalMem, "cuDeviceTotalMem_v2", (size_t * bytes, CUdevice device))                                  \
    X(cuDeviceGetAttribute, "cuDeviceGetAttribute", (int* value, CUdevice_attribute attribute, CUdevice device))   \
    X(cuDevicePrimaryCtxRetain, "cuDevicePrimaryCtxRetain", (CUcontext * context, CUdevice device))                \
    X(cuDevicePrimaryCtxRelease, "cuDevicePrimaryCtxRelease_v2", (CUdevice device))                                \
    X(cuCtxPushCurrent, "cuCtxPushCurrent_v2", (CUcontext context))                                                \
    X(cuCtxPopCurrent, "cuCtxPopCurrent_v2", (CUcontext * context))                                                \
    X(cuMemGetInfo, "cuMemGetInfo_v2", (size_t * free, size_t * total))                                            \
    X(cuMemAlloc, "cuMemAlloc_v2", (CUdeviceptr * pointer, size_t bytes))                                          \
    X(cuMemFree, "cuMemFree_v2", (CUdeviceptr pointer))                                                            \
    X(cuMemHostAlloc, "cuMemHostAlloc", (void** pointer, size_t bytes, unsigned flags))                            \
    X(cuMemFreeHost, "cuMemFreeHost", (void* pointer))                                                             \
    X(cuMemHostRegister, "cuMemHostRegister_v2", (void* pointer, size_t bytes, unsigned flags))                    \
    X(cuMemHostUnregister, "cuMemHostUnregister", (void* pointer))                                                 \
    X(cuMemHostGetDevicePointer, "cuMemHostGetDevicePointer_v2",                                                   \
      (CUdeviceptr * device_pointer, void* pointer, unsigned flags))                                               \
    X(cuMemcpyHtoDAsync, "cuMemcpyHtoDAsync_v2",                                                                   \
      (CUdeviceptr destination, const void* source, size_t bytes, CUstream stream))                                \
    X(cuMemcpyDtoHAsync, "cuMemcpyDtoHAsync_v2",                                                                   \
      (void* destination, CUdeviceptr source, size_t bytes, CUstream stream))                                      \
    X(cuMemGetAllocationGranularity, "cuMemGetAllocationGranularity",                                              \
      (size_t * granularity, const CUmemAllocationProp* properties, int option))                                   \
    X(cuMemCreate, "cuMemCreate",                                                                                  \
      (CUmemGenericAllocationHandle * handle, size_t bytes, const CUmemAllocationProp* properties,                 \
       unsigned long long flags))                                                                                  \
    X(cuMemRelease, "cuMemRelease", (CUmemGenericAllocationHandle handle))                                         \
    X(cuMemAddressReserve, "cuMemAddressReserve",                                                                  \
      (CUdeviceptr * pointer, size_t bytes, size_t alignment, CUdeviceptr wanted, unsigned long long flags))       \
    X(cuMemAddressFree, "cuMemAddressFree", (CUdeviceptr pointer, size_t bytes))                                   \
    X(cuMemMap, "cuMemMap",                                                                                        \
      (CUdeviceptr pointer, size_t bytes, size_t offset, CUmemGenericAllocationHandle handle,                      \
       unsigned long long flags))                                                                                  \
    X(cuMemUnmap, "cuMemUnmap", (CUdeviceptr pointer, size_t bytes))                                               \
    X(cuMemSetAccess, "cuMemSetAccess",                                                                            \
      (CUdeviceptr pointer, size_t bytes, const CUmemAccessDesc* access, size_t count))                            \
    X(cuMemExportToShareableHandle, "cuMemExportToShareableHandle",                                                \
      (void* shareable, CUmemGenericAllocationHandle handle, int type, unsigned long long flags))                  \
    X(cuMemImportFromShareableHandle, "cuMemImportFromShareableHandle",                                            \
      (CUmemGenericAllocationHandle * handle, void* shareable, int type))                                          \
    X(cuImportExternalMemory, "cuImportExternalMemory",                                                            \
      (CUexternalMemory * memory, const CUDA_EXTERNAL_MEMORY_HANDLE_DESC* description))                            \
    X(cuExternalMemoryGetMappedBuffer, "cuExternalMemoryGetMappedBuffer",                                          \
      (CUdeviceptr * pointer, CUexternalMemory memory, const CUDA_EXTERNAL_MEMORY_BUFFER_DESC* description))       \
    X(cuDestroyExternalMemory, "cuDestroyExternalMemory", (CUexternalMemory memory))                               \
    X(cuModuleLoadDataEx, "cuModuleLoadDataEx",                                                                    \
      (CUmodule * module, const void* image, unsigned count, CUjit_option* options, void** values))                \
    X(cuModuleUnload, "cuModuleUnload", (CUmodule module))                                                         \
    X(cuModuleGetFunction, "cuModuleGetFunction", (CUfunction * function, CUmodule module, const char* name))      \
    X(cuFuncGetAttribute, "cuFuncGetAttribute", (int* value, CUfunction_attribute attribute, CUfunction function)) \
    X(cuFuncSetAttribute, "cuFuncSetAttribute", (CUfunction function, CUfunction_attribute attribute, int value))  \
    X(cuStreamCreate, "cuStreamCreate", (CUstream * stream, unsigned flags))                                       \
    X(cuStreamDestroy, "cuStreamDestroy_v2", (CUstream stream))                                                    \
    X(cuStreamSynchronize, "cuStreamSynchronize", (CUstream stream))                                               \
    X(cuStreamWaitEvent, "cuStreamWaitEvent", (CUstream stream, CUevent event, unsigned flags))                    \
    X(cuEventCreate, "cuEventCreate", (CUevent * event, unsigned flags))                                           \
    X(cuEventDestroy, "cuEventDestroy_v2", (CUevent event))                                                        \
    X(cuEventRecord, "cuEventRecord", (CUevent event, CUstream stream))                                            \
    X(cuEventQuery, "cuEventQuery", (CUevent event))                                                               \
    X(cuLaunchKernel, "cuLaunchKernel",                                                                            \
      (CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x, unsigned block_y, \
       unsigned block_z, unsigned shared_bytes, CUstream stream, void** parameters, void** extra))                 \
    X(cuGraphCreate, "cuGraphCreate", (CUgraph * graph, unsigned flags))                                           \
    X(cuGraphDestroy, "cuGraphDestroy", (CUgraph graph))                                                           \
    X(cuGraphAddKernelNode, "cuGraphAddKernelNode_v2",                                                             \
      (CUgraphNode * node, CUgraph graph, const CUgraphNode* dependencies, size_t count,                           \
       const CUDA_KERNEL_NODE_PARAMS* parameters))                                                                 \
    X(cuGraphAddEmptyNode, "cuGraphAddEmptyNode",                                                                  \
      (CUgraphNode * node, CUgraph graph, const CUgraphNode* dependencies, size_t count))                          \
    X(cuGraphInstantiate, "cuGraphInstantiateWithFlags",                                                           \
      (CUgraphExec * executable, CUgraph graph, unsigned long long flags))                                         \
    X(cuGraphExecDestroy, "cuGraphExecDestroy", (CUgraphExec executable))                                          \
    X(cuGraphUpload, "cuGraphUpload", (CUgraphExec executable, CUstream stream))                                   \
    X(cuGraphLaunch, "cuGraphLaunch", (CUgraphExec executable, CUstream stream))

// May be missing in a driver; nullptr then.
#define ONEBIT_HRX_CUDA_OPTIONAL_FUNCTIONS(X)                         \
    X(cuMemGetHandleForAddressRange, "cuMemGetHandleForAddressRange", \
      (void* handle, CUdeviceptr pointer, size_t bytes, int type, unsigned long long flags))

struct Functions {
#define ONEBIT_HRX_DECLARE(name, symbol, parameters) CUresult(*name) parameters = nullptr;
    ONEBIT_HRX_CUDA_FUNCTIONS(ONEBIT_HRX_DECLARE)
    ONEBIT_HRX_CUDA_OPTIONAL_FUNCTIONS(ONEBIT_HRX_DECLARE)
#undef ONEBIT_HRX_DECLARE
};

}  // namespace onebit::hrx::runtime::cuda
