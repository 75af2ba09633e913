#include "hrx/runtime/drivers/cuda/cuda_device.h"

#include <cstring>

#include "hrx/runtime/drivers.h"

namespace onebit::hrx::runtime::cuda {

Result<std::unique_ptr<DriverDevice>> CudaDevice::open(uint32_t index) {
    CUdevice handle = 0;
    ONEBIT_HRX_CUDA(cuDeviceGet, &handle, static_cast<int>(index));
    auto device = std::make_unique<CudaDevice>(handle);
    ONEBIT_RETURN_IF_ERROR(device->start());
    return std::unique_ptr<DriverDevice>(std::move(device));
}

Result<void> CudaDevice::start() {
    ONEBIT_HRX_CUDA(cuDevicePrimaryCtxRetain, &context_, device_);
    events_ = std::make_shared<EventPool>(context_);
    const ContextScope scope(context_);
    ONEBIT_HRX_CUDA(cuStreamCreate, &copy_stream_, CU_STREAM_NON_BLOCKING);
    return read_info();
}

CudaDevice::~CudaDevice() {
    if (context_ == nullptr) return;
    {
        const ContextScope scope(context_);
        events_->clear();
        if (copy_stream_ != nullptr) api().cuStreamDestroy(copy_stream_);
    }
    api().cuDevicePrimaryCtxRelease(device_);
}

Result<void> CudaDevice::read_info() {
    Result<void> failed;
    const auto attribute = [&](int name) {
        int value = 0;
        const CUresult result = api().cuDeviceGetAttribute(&value, static_cast<CUdevice_attribute>(name), device_);
        if (result != CUDA_SUCCESS && failed.ok()) failed = error("cuDeviceGetAttribute", result);
        return static_cast<uint32_t>(value);
    };
    set_text(info_.driver, "cuda");
    ONEBIT_HRX_CUDA(cuDeviceGetName, info_.name, sizeof info_.name, device_);
    const std::string architecture = "sm_" + std::to_string(attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)) +
                                     std::to_string(attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR));
    set_text(info_.architecture, architecture);
    info_.compute_units = attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
    info_.wave_size = attribute(CU_DEVICE_ATTRIBUTE_WARP_SIZE);
    info_.max_workgroup_size = attribute(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK);
    for (int i = 0; i < 3; ++i) {
        info_.max_workgroup_dimension[i] = attribute(CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X + i);
        info_.max_workgroup_count[i] = attribute(CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X + i);
    }
    info_.lds_bytes = attribute(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN);
    info_.clock_mhz = attribute(CU_DEVICE_ATTRIBUTE_CLOCK_RATE) / 1000;
    info_.integrated = attribute(CU_DEVICE_ATTRIBUTE_INTEGRATED) != 0;
    size_t total = 0;
    ONEBIT_HRX_CUDA(cuDeviceTotalMem, &total, device_);
    info_.memory_bytes = info_.max_buffer_bytes = total;
    info_.features = HRX_FEATURE_IMPORT_OPAQUE | HRX_FEATURE_IMPORT_HOST;
    if (attribute(CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED) != 0) {
        info_.features |= HRX_FEATURE_EXPORT_OPAQUE;
    }
    if (api().cuMemGetHandleForAddressRange != nullptr && attribute(CU_DEVICE_ATTRIBUTE_DMA_BUF_SUPPORTED) != 0) {
        info_.features |= HRX_FEATURE_EXPORT_DMA_BUF;
    }
    info_.has_pci_address = true;
    info_.pci_domain = attribute(CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID);
    info_.pci_bus = static_cast<uint8_t>(attribute(CU_DEVICE_ATTRIBUTE_PCI_BUS_ID));
    info_.pci_device = static_cast<uint8_t>(attribute(CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID));
    CUuuid uuid{};
    ONEBIT_HRX_CUDA(cuDeviceGetUuid, &uuid, device_);
    static_assert(sizeof uuid == sizeof info_.uuid);
    std::memcpy(info_.uuid, &uuid, sizeof uuid);
    info_.has_uuid = true;
    return failed;
}

Result<uint64_t> CudaDevice::free_memory() {
    const ContextScope scope(context_);
    size_t free = 0, total = 0;
    ONEBIT_HRX_CUDA(cuMemGetInfo, &free, &total);
    return static_cast<uint64_t>(free);
}

// ---- the driver ----

namespace {

class CudaDriver final : public Driver {
public:
    const char* name() const override { return "cuda"; }
    Result<void> start(std::vector<ProbeEntry>& tried) override { return load(tried); }
    Result<uint32_t> device_count() override {
        int count = 0;
        ONEBIT_HRX_CUDA(cuDeviceGetCount, &count);
        return static_cast<uint32_t>(count);
    }
    Result<std::unique_ptr<DriverDevice>> open(uint32_t index) override { return CudaDevice::open(index); }
};

}  // namespace
}  // namespace onebit::hrx::runtime::cuda

namespace onebit::hrx::runtime {
std::unique_ptr<Driver> make_cuda_driver() { return std::make_unique<cuda::CudaDriver>(); }
}  // namespace onebit::hrx::runtime
