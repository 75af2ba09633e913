#include "tandem/shared_buffer.h"

#include <mutex>

#include "base/log.h"
#include "ggml.h"
#include "tandem/tandem.h"

namespace onebit::tandem {
namespace {

SharedBuffer& shared_of(ggml_backend_buffer_t buffer) { return *SharedBuffers::instance().find(buffer); }

void free_buffer(ggml_backend_buffer_t buffer) {
    auto shared = SharedBuffers::instance().remove(buffer);
    shared->tandem->forget(*shared);
    shared->regions.clear();
    shared->original.free_buffer(buffer);
}

ggml_status init_tensor(ggml_backend_buffer_t buffer, ggml_tensor* tensor) {
    SharedBuffer& shared = shared_of(buffer);
    const ggml_status status =
        shared.original.init_tensor != nullptr ? shared.original.init_tensor(buffer, tensor) : GGML_STATUS_SUCCESS;
    if (status == GGML_STATUS_SUCCESS && tensor->view_src == nullptr &&
        buffer->usage != GGML_BACKEND_BUFFER_USAGE_COMPUTE) {
        const auto placed = shared.layout->add(tensor, shared.offset_of(tensor), shared.tandem->alloc_size(tensor));
        if (!placed) {
            log_error("tandem", placed.error().message());
            return GGML_STATUS_FAILED;
        }
    }
    // a guest that pads the rows of quantised tensors reads the padding and expects zeros
    if (status == GGML_STATUS_SUCCESS && tensor->view_src == nullptr && ggml_is_quantized(tensor->type) &&
        buffer->usage != GGML_BACKEND_BUFFER_USAGE_COMPUTE) {
        const size_t bytes = ggml_nbytes(tensor), padded = shared.tandem->alloc_size(tensor);
        const size_t begin = bytes & ~size_t{3};  // Vulkan fills whole words; the tail is written afterwards
        const size_t end = std::min((padded + 3) & ~size_t{3}, shared.size - shared.offset_of(tensor));
        if (padded > bytes && end > begin)
            shared.original.memset_tensor(buffer, tensor, 0, begin, (end - begin) & ~size_t{3});
    }
    return status;
}

void set_tensor(ggml_backend_buffer_t buffer, ggml_tensor* tensor, const void* data, size_t offset, size_t size) {
    SharedBuffer& shared = shared_of(buffer);
    shared.tandem->write(shared, tensor, data, offset, size);
}

void get_tensor(ggml_backend_buffer_t buffer, const ggml_tensor* tensor, void* data, size_t offset, size_t size) {
    SharedBuffer& shared = shared_of(buffer);
    shared.tandem->read(shared, tensor, data, offset, size);
}

void memset_tensor(ggml_backend_buffer_t buffer, ggml_tensor* tensor, uint8_t value, size_t offset, size_t size) {
    SharedBuffer& shared = shared_of(buffer);
    shared.tandem->flush();
    shared.original.memset_tensor(buffer, tensor, value, offset, size);
}

void set_tensor_2d(ggml_backend_buffer_t buffer, ggml_tensor* tensor, const void* data, size_t offset, size_t size,
                   size_t copies, size_t stride_tensor, size_t stride_data) {
    SharedBuffer& shared = shared_of(buffer);
    shared.tandem->flush();
    shared.original.set_tensor_2d(buffer, tensor, data, offset, size, copies, stride_tensor, stride_data);
}

void get_tensor_2d(ggml_backend_buffer_t buffer, const ggml_tensor* tensor, void* data, size_t offset, size_t size,
                   size_t copies, size_t stride_tensor, size_t stride_data) {
    SharedBuffer& shared = shared_of(buffer);
    shared.tandem->flush();
    shared.original.get_tensor_2d(buffer, tensor, data, offset, size, copies, stride_tensor, stride_data);
}

bool cpy_tensor(ggml_backend_buffer_t buffer, const ggml_tensor* source, ggml_tensor* target) {
    SharedBuffer& shared = shared_of(buffer);
    shared.tandem->flush();
    return shared.original.cpy_tensor(buffer, source, target);
}

void clear(ggml_backend_buffer_t buffer, uint8_t value) {
    SharedBuffer& shared = shared_of(buffer);
    shared.tandem->flush();
    shared.original.clear(buffer, value);
}

}  // namespace

ggml_tensor bytes_of(ggml_backend_buffer_t buffer, char* data, size_t bytes) {
    ggml_tensor tensor = {};
    tensor.type = GGML_TYPE_I8;
    tensor.buffer = buffer;
    tensor.data = data;
    tensor.ne[0] = static_cast<int64_t>(bytes);
    tensor.ne[1] = tensor.ne[2] = tensor.ne[3] = 1;
    tensor.nb[0] = 1;
    tensor.nb[1] = tensor.nb[2] = tensor.nb[3] = bytes;
    return tensor;
}

SharedBuffers& SharedBuffers::instance() {
    static SharedBuffers* buffers = new SharedBuffers;  // buffers may be freed by destructors of other statics
    return *buffers;
}

void SharedBuffers::add(std::unique_ptr<SharedBuffer> shared) {
    ggml_backend_buffer_t buffer = shared->buffer;
    shared->original = buffer->iface;
    buffer->iface.free_buffer = &free_buffer;
    buffer->iface.init_tensor = &init_tensor;
    buffer->iface.set_tensor = &set_tensor;
    buffer->iface.get_tensor = &get_tensor;
    if (buffer->iface.memset_tensor != nullptr) buffer->iface.memset_tensor = &memset_tensor;
    if (buffer->iface.set_tensor_2d != nullptr) buffer->iface.set_tensor_2d = &set_tensor_2d;
    if (buffer->iface.get_tensor_2d != nullptr) buffer->iface.get_tensor_2d = &get_tensor_2d;
    if (buffer->iface.cpy_tensor != nullptr) buffer->iface.cpy_tensor = &cpy_tensor;
    buffer->iface.clear = &clear;
    const std::unique_lock lock(mutex_);
    buffers_[buffer] = std::move(shared);
}

SharedBuffer* SharedBuffers::find(ggml_backend_buffer_t buffer) const {
    const std::shared_lock lock(mutex_);
    const auto found = buffers_.find(buffer);
    return found == buffers_.end() ? nullptr : found->second.get();
}

std::unique_ptr<SharedBuffer> SharedBuffers::remove(ggml_backend_buffer_t buffer) {
    const std::unique_lock lock(mutex_);
    const auto found = buffers_.find(buffer);
    if (found == buffers_.end()) return nullptr;
    auto shared = std::move(found->second);
    buffers_.erase(found);
    generation_.fetch_add(1, std::memory_order_release);
    return shared;
}

}  // namespace onebit::tandem
