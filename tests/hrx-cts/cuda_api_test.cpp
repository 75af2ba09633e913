// If this fails, the driver hands libcuda structures or numbers that mean something else there.
#include <cuda.h>
#include <gtest/gtest.h>

#include <bit>
#include <type_traits>

// the toolkit's header makes macros of these names
#undef cuDeviceGetUuid
#undef cuDeviceTotalMem
#undef cuDevicePrimaryCtxRelease
#undef cuCtxPushCurrent
#undef cuCtxPopCurrent
#undef cuMemGetInfo
#undef cuMemAlloc
#undef cuMemFree
#undef cuMemHostRegister
#undef cuMemHostGetDevicePointer
#undef cuMemcpyHtoDAsync
#undef cuMemcpyDtoHAsync
#undef cuStreamDestroy
#undef cuEventDestroy
#undef cuGraphAddKernelNode
#undef cuGraphInstantiate
#undef CUDA_EXTERNAL_MEMORY_DEDICATED
#undef CU_MEMHOSTALLOC_PORTABLE
#undef CU_MEMHOSTALLOC_DEVICEMAP
#undef CU_MEMHOSTREGISTER_PORTABLE
#undef CU_MEMHOSTREGISTER_DEVICEMAP
#include "hrx/runtime/drivers/cuda/cuda_api.h"

namespace ours = onebit::hrx::runtime::cuda;

namespace {

#define SAME_SIZE(name) static_assert(sizeof(ours::name) == sizeof(::name))
#define SAME_OFFSET(name, field) static_assert(offsetof(ours::name, field) == offsetof(::name, field))
#define SAME_VALUE(name) static_assert(static_cast<long>(ours::name) == static_cast<long>(::name))

SAME_SIZE(CUuuid);
SAME_SIZE(CUdeviceptr);
SAME_SIZE(CUdevice);
SAME_SIZE(CUresult);
SAME_SIZE(CUmemGenericAllocationHandle);
SAME_SIZE(CUmemLocation);
SAME_SIZE(CUmemAllocationProp);
SAME_OFFSET(CUmemAllocationProp, requestedHandleTypes);
SAME_OFFSET(CUmemAllocationProp, location);
SAME_OFFSET(CUmemAllocationProp, win32HandleMetaData);
SAME_OFFSET(CUmemAllocationProp, allocFlags);
SAME_SIZE(CUmemAccessDesc);
SAME_OFFSET(CUmemAccessDesc, flags);
SAME_SIZE(CUDA_EXTERNAL_MEMORY_HANDLE_DESC);
SAME_OFFSET(CUDA_EXTERNAL_MEMORY_HANDLE_DESC, handle);
SAME_OFFSET(CUDA_EXTERNAL_MEMORY_HANDLE_DESC, size);
SAME_OFFSET(CUDA_EXTERNAL_MEMORY_HANDLE_DESC, flags);
SAME_SIZE(CUDA_EXTERNAL_MEMORY_BUFFER_DESC);
SAME_OFFSET(CUDA_EXTERNAL_MEMORY_BUFFER_DESC, flags);
static_assert(sizeof(ours::CUDA_KERNEL_NODE_PARAMS) == sizeof(::CUDA_KERNEL_NODE_PARAMS_v2));
static_assert(offsetof(ours::CUDA_KERNEL_NODE_PARAMS, kernelParams) ==
              offsetof(::CUDA_KERNEL_NODE_PARAMS_v2, kernelParams));
static_assert(offsetof(ours::CUDA_KERNEL_NODE_PARAMS, ctx) == offsetof(::CUDA_KERNEL_NODE_PARAMS_v2, ctx));
static_assert(offsetof(ours::CUDA_KERNEL_NODE_PARAMS, extra) == offsetof(::CUDA_KERNEL_NODE_PARAMS_v1, extra));
static_assert(offsetof(ours::CUDA_KERNEL_NODE_PARAMS, sharedMemBytes) ==
              offsetof(::CUDA_KERNEL_NODE_PARAMS_v2, sharedMemBytes));

SAME_VALUE(CUDA_ERROR_OUT_OF_MEMORY);
SAME_VALUE(CUDA_ERROR_INVALID_IMAGE);
SAME_VALUE(CUDA_ERROR_NO_BINARY_FOR_GPU);
SAME_VALUE(CUDA_ERROR_INVALID_PTX);
SAME_VALUE(CUDA_ERROR_UNSUPPORTED_PTX_VERSION);
SAME_VALUE(CUDA_ERROR_NOT_FOUND);
SAME_VALUE(CUDA_ERROR_NOT_READY);
SAME_VALUE(CUDA_ERROR_ILLEGAL_ADDRESS);
SAME_VALUE(CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES);
SAME_VALUE(CUDA_ERROR_LAUNCH_TIMEOUT);
SAME_VALUE(CUDA_ERROR_ASSERT);
SAME_VALUE(CUDA_ERROR_HARDWARE_STACK_ERROR);
SAME_VALUE(CUDA_ERROR_LAUNCH_FAILED);
SAME_VALUE(CUDA_ERROR_NOT_SUPPORTED);
SAME_VALUE(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK);
SAME_VALUE(CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X);
SAME_VALUE(CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X);
static_assert(CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z == CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X + 2);
static_assert(CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z == CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X + 2);
SAME_VALUE(CU_DEVICE_ATTRIBUTE_WARP_SIZE);
SAME_VALUE(CU_DEVICE_ATTRIBUTE_CLOCK_RATE);
SAME_VALUE(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
SAME_VALUE(CU_DEVICE_ATTRIBUTE_INTEGRATED);
SAME_VALUE(CU_DEVICE_ATTRIBUTE_PCI_BUS_ID);
SAME_VALUE(CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID);
SAME_VALUE(CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID);
SAME_VALUE(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
SAME_VALUE(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
SAME_VALUE(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN);
SAME_VALUE(CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED);
SAME_VALUE(CU_DEVICE_ATTRIBUTE_DMA_BUF_SUPPORTED);
SAME_VALUE(CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK);
SAME_VALUE(CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES);
SAME_VALUE(CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES);
SAME_VALUE(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES);
SAME_VALUE(CU_JIT_ERROR_LOG_BUFFER);
SAME_VALUE(CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES);
SAME_VALUE(CU_STREAM_NON_BLOCKING);
SAME_VALUE(CU_EVENT_DISABLE_TIMING);
SAME_VALUE(CU_MEM_ALLOCATION_TYPE_PINNED);
SAME_VALUE(CU_MEM_LOCATION_TYPE_DEVICE);
SAME_VALUE(CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
SAME_VALUE(CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
SAME_VALUE(CU_MEM_ALLOC_GRANULARITY_MINIMUM);
SAME_VALUE(CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD);
SAME_VALUE(CU_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD);

// The same number of parameters, each of the same size.
template <typename Ours, typename Theirs>
struct SameShape : std::false_type {};
template <typename... Ours, typename... Theirs>
struct SameShape<ours::CUresult (*)(Ours...), ::CUresult (*)(Theirs...)> {
    static constexpr bool compare() {
        if constexpr (sizeof...(Ours) == sizeof...(Theirs)) {
            return ((sizeof(Ours) == sizeof(Theirs) && std::is_pointer_v<Ours> == std::is_pointer_v<Theirs>)&&...);
        } else {
            return false;
        }
    }
    static constexpr bool value = compare();
};
#define SAME_SHAPE(name, symbol) \
    static_assert(SameShape<decltype(ours::Functions::name), decltype(&::symbol)>::value, #symbol)
SAME_SHAPE(cuInit, cuInit);
SAME_SHAPE(cuDriverGetVersion, cuDriverGetVersion);
SAME_SHAPE(cuGetErrorName, cuGetErrorName);
SAME_SHAPE(cuGetErrorString, cuGetErrorString);
SAME_SHAPE(cuDeviceGetCount, cuDeviceGetCount);
SAME_SHAPE(cuDeviceGet, cuDeviceGet);
SAME_SHAPE(cuDeviceGetName, cuDeviceGetName);
SAME_SHAPE(cuDeviceGetUuid, cuDeviceGetUuid_v2);
SAME_SHAPE(cuDeviceTotalMem, cuDeviceTotalMem_v2);
SAME_SHAPE(cuDeviceGetAttribute, cuDeviceGetAttribute);
SAME_SHAPE(cuDevicePrimaryCtxRetain, cuDevicePrimaryCtxRetain);
SAME_SHAPE(cuDevicePrimaryCtxRelease, cuDevicePrimaryCtxRelease_v2);
SAME_SHAPE(cuCtxPushCurrent, cuCtxPushCurrent_v2);
SAME_SHAPE(cuCtxPopCurrent, cuCtxPopCurrent_v2);
SAME_SHAPE(cuMemGetInfo, cuMemGetInfo_v2);
SAME_SHAPE(cuMemAlloc, cuMemAlloc_v2);
SAME_SHAPE(cuMemFree, cuMemFree_v2);
SAME_SHAPE(cuMemHostAlloc, cuMemHostAlloc);
SAME_SHAPE(cuMemFreeHost, cuMemFreeHost);
SAME_SHAPE(cuMemHostRegister, cuMemHostRegister_v2);
SAME_SHAPE(cuMemHostUnregister, cuMemHostUnregister);
SAME_SHAPE(cuMemHostGetDevicePointer, cuMemHostGetDevicePointer_v2);
SAME_SHAPE(cuMemcpyHtoDAsync, cuMemcpyHtoDAsync_v2);
SAME_SHAPE(cuMemcpyDtoHAsync, cuMemcpyDtoHAsync_v2);
SAME_SHAPE(cuMemGetAllocationGranularity, cuMemGetAllocationGranularity);
SAME_SHAPE(cuMemCreate, cuMemCreate);
SAME_SHAPE(cuMemRelease, cuMemRelease);
SAME_SHAPE(cuMemAddressReserve, cuMemAddressReserve);
SAME_SHAPE(cuMemAddressFree, cuMemAddressFree);
SAME_SHAPE(cuMemMap, cuMemMap);
SAME_SHAPE(cuMemUnmap, cuMemUnmap);
SAME_SHAPE(cuMemSetAccess, cuMemSetAccess);
SAME_SHAPE(cuMemExportToShareableHandle, cuMemExportToShareableHandle);
SAME_SHAPE(cuMemImportFromShareableHandle, cuMemImportFromShareableHandle);
SAME_SHAPE(cuImportExternalMemory, cuImportExternalMemory);
SAME_SHAPE(cuExternalMemoryGetMappedBuffer, cuExternalMemoryGetMappedBuffer);
SAME_SHAPE(cuDestroyExternalMemory, cuDestroyExternalMemory);
SAME_SHAPE(cuModuleLoadDataEx, cuModuleLoadDataEx);
SAME_SHAPE(cuModuleUnload, cuModuleUnload);
SAME_SHAPE(cuModuleGetFunction, cuModuleGetFunction);
SAME_SHAPE(cuFuncGetAttribute, cuFuncGetAttribute);
SAME_SHAPE(cuFuncSetAttribute, cuFuncSetAttribute);
SAME_SHAPE(cuStreamCreate, cuStreamCreate);
SAME_SHAPE(cuStreamDestroy, cuStreamDestroy_v2);
SAME_SHAPE(cuStreamSynchronize, cuStreamSynchronize);
SAME_SHAPE(cuStreamWaitEvent, cuStreamWaitEvent);
SAME_SHAPE(cuEventCreate, cuEventCreate);
SAME_SHAPE(cuEventDestroy, cuEventDestroy_v2);
SAME_SHAPE(cuEventRecord, cuEventRecord);
SAME_SHAPE(cuEventQuery, cuEventQuery);
SAME_SHAPE(cuLaunchKernel, cuLaunchKernel);
SAME_SHAPE(cuGraphCreate, cuGraphCreate);
SAME_SHAPE(cuGraphDestroy, cuGraphDestroy);
SAME_SHAPE(cuGraphAddKernelNode, cuGraphAddKernelNode_v2);
SAME_SHAPE(cuGraphAddEmptyNode, cuGraphAddEmptyNode);
SAME_SHAPE(cuGraphInstantiate, cuGraphInstantiateWithFlags);
SAME_SHAPE(cuGraphExecDestroy, cuGraphExecDestroy);
SAME_SHAPE(cuGraphUpload, cuGraphUpload);
SAME_SHAPE(cuGraphLaunch, cuGraphLaunch);
SAME_SHAPE(cuMemGetHandleForAddressRange, cuMemGetHandleForAddressRange);

TEST(CudaApiTest, StructuresHoldTheirFieldsWhereTheToolkitLooks) {
    // the rest is compared above, when this file is compiled
    ours::CUDA_EXTERNAL_MEMORY_HANDLE_DESC description{};
    description.type = ours::CU_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD;
    description.handle.fd = 77;
    description.size = 1234567890123;
    description.flags = ours::CUDA_EXTERNAL_MEMORY_DEDICATED;
    const auto theirs = std::bit_cast<::CUDA_EXTERNAL_MEMORY_HANDLE_DESC>(description);
    EXPECT_EQ(theirs.type, ::CU_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD);
    EXPECT_EQ(theirs.handle.fd, 77);
    EXPECT_EQ(theirs.size, 1234567890123u);
    EXPECT_EQ(theirs.flags, 1u);
}

}  // namespace
