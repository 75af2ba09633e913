#include "tandem/device.h"

#include <cstring>
#include <deque>

#include "base/log.h"
#include "ggml-backend-impl.h"
#include "tandem/stream.h"
#include "tandem/tandem.h"

namespace onebit::tandem {
namespace {

struct Entry {
    std::unique_ptr<Tandem> tandem;
    ggml_backend_device device = {};
};
std::deque<Entry>& entries() {
    static auto* all = new std::deque<Entry>;  // ggml uses devices until the very end
    return *all;
}

Tandem& of(ggml_backend_dev_t device) { return *static_cast<Tandem*>(device->context); }
Tandem& of(ggml_backend_buffer_type_t type) { return *static_cast<Tandem*>(type->context); }
Stream& of(ggml_backend_t backend) { return *static_cast<Stream*>(backend->context); }

// Streams

const char* stream_name(ggml_backend_t backend) { return of(backend).tandem().name().c_str(); }

void stream_free(ggml_backend_t backend) {
    delete &of(backend);
    delete backend;
}

bool is_stream(ggml_backend_t backend) { return backend->iface.get_name == &stream_name; }

// What the CPU computed for a graph here, such as the rows of an embedding, is an input like any other: it goes through
// the member that runs the graph, and is kept for a repeat.
bool copy_from_host(ggml_backend_t from, ggml_backend_t to, const ggml_tensor* source, ggml_tensor* target) {
    if (!is_stream(to) || is_stream(from) || !ggml_backend_buffer_is_host(source->buffer)) return false;
    if (SharedBuffers::instance().find(target->buffer) == nullptr) return false;
    ggml_backend_synchronize(from);
    of(to).synchronize();
    ggml_backend_tensor_set(target, source->data, 0, ggml_nbytes(source));
    return true;
}

// Called on the destination; otherwise both sides are replaced by their owners, which alone know the buffers.
bool stream_copy(ggml_backend_t from, ggml_backend_t to, const ggml_tensor* source, ggml_tensor* target) {
    if (copy_from_host(from, to, source, target)) return true;
    for (ggml_backend_t backend : {from, to})
        if (is_stream(backend)) of(backend).prepare_copy();
    if (is_stream(from)) from = of(from).backend(0);
    if (is_stream(to)) to = of(to).backend(0);
    return to->iface.cpy_tensor_async != nullptr && to->iface.cpy_tensor_async(from, to, source, target);
}

ggml_guid_t stream_guid() {
    static ggml_guid guid = {0x31, 0x62, 0x69, 0x74, 0x74, 0x61, 0x6e, 0x64,
                             0x65, 0x6d, 0x00, 0x01, 0x8a, 0x3c, 0x5e, 0x77};
    return &guid;
}

ggml_backend_i stream_functions() {
    ggml_backend_i functions = {};
    functions.get_name = &stream_name;
    functions.free = &stream_free;
    functions.set_tensor_async = [](ggml_backend_t backend, ggml_tensor* tensor, const void* data, size_t offset,
                                    size_t size) { of(backend).set(tensor, data, offset, size); };
    functions.get_tensor_async = [](ggml_backend_t backend, const ggml_tensor* tensor, void* data, size_t offset,
                                    size_t size) { of(backend).get(tensor, data, offset, size); };
    functions.cpy_tensor_async = &stream_copy;
    functions.synchronize = [](ggml_backend_t backend) { of(backend).synchronize(); };
    functions.graph_compute = [](ggml_backend_t backend, ggml_cgraph* graph) { return of(backend).compute(graph); };
    functions.graph_optimize = [](ggml_backend_t backend, ggml_cgraph* graph,
                                  ggml_backend_graph_optimize_params* parameters) {
        of(backend).optimize(graph, parameters);
    };
    return functions;
}

// Buffer type: only allocates; the buffer's own type stays the owner's, whose code insists on it.

ggml_backend_buffer_t allocate(ggml_backend_buffer_type_t type, size_t size) {
    auto buffer = of(type).allocate(size);
    if (buffer) return *buffer;
    log_error("tandem", buffer.error().message());
    return nullptr;
}

ggml_backend_buffer_type make_buffer_type(Tandem& tandem, ggml_backend_dev_t device) {
    ggml_backend_buffer_type type = {};
    type.iface.get_name = [](ggml_backend_buffer_type_t self) { return of(self).name().c_str(); };
    type.iface.alloc_buffer = &allocate;
    type.iface.get_alignment = [](ggml_backend_buffer_type_t self) { return of(self).alignment(); };
    type.iface.get_max_size = [](ggml_backend_buffer_type_t self) { return of(self).max_size(); };
    type.iface.get_alloc_size = [](ggml_backend_buffer_type_t self, const ggml_tensor* tensor) {
        return of(self).alloc_size(tensor);
    };
    type.device = device;
    type.context = &tandem;
    return type;
}

// Device

void device_properties(ggml_backend_dev_t device, ggml_backend_dev_props* properties) {
    Tandem& tandem = of(device);
    ggml_backend_dev_get_props(tandem.device(0), properties);
    properties->name = tandem.name().c_str();
    properties->description = tandem.description().c_str();
    properties->type = ggml_backend_dev_type(device);
    properties->caps.events = false;
    properties->caps.buffer_from_host_ptr = false;
}

ggml_backend_t open_stream(ggml_backend_dev_t device, const char* parameters) {
    auto stream = Stream::open(of(device), parameters);
    if (stream == nullptr) return nullptr;
    return new ggml_backend{stream_guid(), stream_functions(), device, stream.release()};
}

bool supports_op(ggml_backend_dev_t device, const ggml_tensor* node) {
    for (size_t i = 0; i < of(device).members(); ++i)
        if (of(device).supports(i, node)) return true;
    return false;
}

bool supports_buffer_type(ggml_backend_dev_t device, ggml_backend_buffer_type_t type) {
    return type == &of(device).buffer_type() || ggml_backend_dev_supports_buft(of(device).device(0), type);
}

// Weights that stay with the CPU are not copied over for a guest which is that CPU.
bool offload_op(ggml_backend_dev_t device, const ggml_tensor* node) {
    Tandem& tandem = of(device);
    for (size_t i = 1; i < tandem.members(); ++i)
        if (ggml_backend_dev_type(tandem.device(i)) == GGML_BACKEND_DEVICE_TYPE_CPU) return false;
    return ggml_backend_dev_offload_op(tandem.device(0), node);
}

ggml_backend_device_i device_functions() {
    ggml_backend_device_i functions = {};
    functions.get_name = [](ggml_backend_dev_t device) { return of(device).name().c_str(); };
    functions.get_description = [](ggml_backend_dev_t device) { return of(device).description().c_str(); };
    functions.get_memory = [](ggml_backend_dev_t device, size_t* free, size_t* total) {
        ggml_backend_dev_memory(of(device).device(0), free, total);
    };
    functions.get_type = [](ggml_backend_dev_t device) {
        // a tandem on the CPU is a device that llama.cpp moves layers to, which the plain CPU is not
        const auto type = ggml_backend_dev_type(of(device).device(0));
        return type == GGML_BACKEND_DEVICE_TYPE_CPU ? GGML_BACKEND_DEVICE_TYPE_GPU : type;
    };
    functions.get_props = &device_properties;
    functions.init_backend = &open_stream;
    functions.get_buffer_type = [](ggml_backend_dev_t device) -> ggml_backend_buffer_type_t {
        return &of(device).buffer_type();
    };
    functions.get_host_buffer_type = [](ggml_backend_dev_t device) { return of(device).host_buffer_type(); };
    functions.supports_op = &supports_op;
    functions.supports_buft = &supports_buffer_type;
    functions.offload_op = &offload_op;
    return functions;
}

// Settings that llama.cpp gives to a backend by name are passed on to the members that know them.

template <typename Function>
Function member_function(Stream& stream, size_t member, const char* name) {
    ggml_backend_reg_t reg = ggml_backend_dev_backend_reg(stream.tandem().device(member));
    return reinterpret_cast<Function>(ggml_backend_reg_get_proc_address(reg, name));
}

void set_n_threads(ggml_backend_t backend, int threads) {
    Stream& stream = of(backend);
    for (size_t i = 0; i < stream.tandem().members(); ++i)
        if (auto set = member_function<ggml_backend_set_n_threads_t>(stream, i, "ggml_backend_set_n_threads"))
            set(stream.backend(i), threads);
}

void set_abort_callback(ggml_backend_t backend, ggml_abort_callback callback, void* data) {
    Stream& stream = of(backend);
    for (size_t i = 0; i < stream.tandem().members(); ++i)
        if (auto set = member_function<ggml_backend_set_abort_callback_t>(stream, i, "ggml_backend_set_abort_callback"))
            set(stream.backend(i), callback, data);
}

void* proc_address(ggml_backend_reg_t, const char* name) {
    if (std::strcmp(name, "ggml_backend_set_n_threads") == 0) return reinterpret_cast<void*>(&set_n_threads);
    if (std::strcmp(name, "ggml_backend_set_abort_callback") == 0) return reinterpret_cast<void*>(&set_abort_callback);
    return nullptr;
}

}  // namespace

Result<ggml_backend_dev_t> register_tandem(const Settings& settings, bool announce) {
    static ggml_backend_reg registry = {};
    auto tandem = Tandem::make(settings, "Tandem" + std::to_string(entries().size()));
    if (!tandem) return std::move(tandem).error();
    if (registry.api_version == 0) {
        registry.api_version = GGML_BACKEND_API_VERSION;
        registry.iface.get_name = [](ggml_backend_reg_t) { return "Tandem"; };
        registry.iface.get_device_count = [](ggml_backend_reg_t) { return entries().size(); };
        registry.iface.get_device = [](ggml_backend_reg_t, size_t index) -> ggml_backend_dev_t {
            return &entries()[index].device;
        };
        registry.iface.get_proc_address = &proc_address;
    }
    Entry& entry = entries().emplace_back();
    entry.tandem = std::move(*tandem);
    entry.device = {device_functions(), &registry, entry.tandem.get()};
    entry.tandem->buffer_type() = make_buffer_type(*entry.tandem, &entry.device);
    if (announce && entries().size() == 1)
        ggml_backend_register(&registry);
    else if (announce)
        ggml_backend_device_register(&entry.device);
    log_verbose("tandem", entry.tandem->name() + ": " + to_string(entry.tandem->settings()));
    return &entry.device;
}

}  // namespace onebit::tandem
