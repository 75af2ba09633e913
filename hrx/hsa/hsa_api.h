// The part of the HSA ABI that the amdgpu driver calls and that the emulator answers. Declarations only: nothing links
// against libhsa-runtime64, the driver resolves these names with dlsym (decltype(&hsa_init) is the pointer type).
// Values and layouts: HSA Runtime Programmer's Reference Manual 1.2, HSA Platform System Architecture 1.2 (packets),
// and AMD's vendor extension (interface version 1.6) for names with _amd_. All structures are little endian, 64-bit.
// Threads: every function may be called from any thread, except where HSA says otherwise for one object's destruction.
#pragma once

#include <cstddef>
#include <cstdint>

extern "C" {

// ---- status, system ----

enum hsa_status_t : uint32_t {
    HSA_STATUS_SUCCESS = 0x0,
    HSA_STATUS_INFO_BREAK = 0x1,
    HSA_STATUS_ERROR_INVALID_MEMORY_POOL = 40,
    HSA_STATUS_ERROR_MEMORY_APERTURE_VIOLATION = 41,
    HSA_STATUS_ERROR_ILLEGAL_INSTRUCTION = 42,
    HSA_STATUS_ERROR_MEMORY_FAULT = 43,
    HSA_STATUS_CU_MASK_REDUCED = 44,
    HSA_STATUS_ERROR_OUT_OF_REGISTERS = 45,
    HSA_STATUS_ERROR_RESOURCE_BUSY = 46,
    HSA_STATUS_ERROR = 0x1000,
    HSA_STATUS_ERROR_INVALID_ARGUMENT = 0x1001,
    HSA_STATUS_ERROR_INVALID_QUEUE_CREATION = 0x1002,
    HSA_STATUS_ERROR_INVALID_ALLOCATION = 0x1003,
    HSA_STATUS_ERROR_INVALID_AGENT = 0x1004,
    HSA_STATUS_ERROR_INVALID_REGION = 0x1005,
    HSA_STATUS_ERROR_INVALID_SIGNAL = 0x1006,
    HSA_STATUS_ERROR_INVALID_QUEUE = 0x1007,
    HSA_STATUS_ERROR_OUT_OF_RESOURCES = 0x1008,
    HSA_STATUS_ERROR_INVALID_PACKET_FORMAT = 0x1009,
    HSA_STATUS_ERROR_RESOURCE_FREE = 0x100A,
    HSA_STATUS_ERROR_NOT_INITIALIZED = 0x100B,
    HSA_STATUS_ERROR_REFCOUNT_OVERFLOW = 0x100C,
    HSA_STATUS_ERROR_INCOMPATIBLE_ARGUMENTS = 0x100D,
    HSA_STATUS_ERROR_INVALID_INDEX = 0x100E,
    HSA_STATUS_ERROR_INVALID_ISA = 0x100F,
    HSA_STATUS_ERROR_INVALID_CODE_OBJECT = 0x1010,
    HSA_STATUS_ERROR_INVALID_EXECUTABLE = 0x1011,
    HSA_STATUS_ERROR_FROZEN_EXECUTABLE = 0x1012,
    HSA_STATUS_ERROR_INVALID_SYMBOL_NAME = 0x1013,
    HSA_STATUS_ERROR_VARIABLE_ALREADY_DEFINED = 0x1014,
    HSA_STATUS_ERROR_VARIABLE_UNDEFINED = 0x1015,
    HSA_STATUS_ERROR_EXCEPTION = 0x1016,
    HSA_STATUS_ERROR_INVALID_ISA_NAME = 0x1017,
    HSA_STATUS_ERROR_INVALID_CODE_SYMBOL = 0x1018,
    HSA_STATUS_ERROR_INVALID_EXECUTABLE_SYMBOL = 0x1019,
    HSA_STATUS_ERROR_INVALID_FILE = 0x1020,
    HSA_STATUS_ERROR_INVALID_CODE_OBJECT_READER = 0x1021,
    HSA_STATUS_ERROR_INVALID_CACHE = 0x1022,
    HSA_STATUS_ERROR_INVALID_WAVEFRONT = 0x1023,
    HSA_STATUS_ERROR_INVALID_SIGNAL_GROUP = 0x1024,
    HSA_STATUS_ERROR_INVALID_RUNTIME_STATE = 0x1025,
    HSA_STATUS_ERROR_FATAL = 0x1026,
};

enum hsa_system_info_t : uint32_t {
    HSA_SYSTEM_INFO_VERSION_MAJOR = 0,        // uint16_t
    HSA_SYSTEM_INFO_VERSION_MINOR = 1,        // uint16_t
    HSA_SYSTEM_INFO_TIMESTAMP = 2,            // uint64_t ticks
    HSA_SYSTEM_INFO_TIMESTAMP_FREQUENCY = 3,  // uint64_t Hz
    HSA_SYSTEM_INFO_SIGNAL_MAX_WAIT = 4,      // uint64_t ticks
    HSA_SYSTEM_INFO_ENDIANNESS = 5,
    HSA_SYSTEM_INFO_MACHINE_MODEL = 6,
    HSA_SYSTEM_INFO_EXTENSIONS = 7,
    HSA_AMD_SYSTEM_INFO_BUILD_VERSION = 0x200,     // const char*
    HSA_AMD_SYSTEM_INFO_DMABUF_SUPPORTED = 0x204,  // bool
    HSA_AMD_SYSTEM_INFO_VIRTUAL_MEM_API_SUPPORTED = 0x205,
    HSA_AMD_SYSTEM_INFO_XNACK_ENABLED = 0x206,
    HSA_AMD_SYSTEM_INFO_EXT_VERSION_MAJOR = 0x207,  // uint16_t
    HSA_AMD_SYSTEM_INFO_EXT_VERSION_MINOR = 0x208,  // uint16_t
};

hsa_status_t hsa_init();
hsa_status_t hsa_shut_down();
hsa_status_t hsa_status_string(hsa_status_t status, const char** status_string);
hsa_status_t hsa_system_get_info(hsa_system_info_t attribute, void* value);

// ---- agents, instruction sets ----

struct hsa_agent_t {
    uint64_t handle;
};
struct hsa_isa_t {
    uint64_t handle;
};
struct hsa_dim3_t {
    uint32_t x, y, z;
};

enum hsa_device_type_t : uint32_t {
    HSA_DEVICE_TYPE_CPU = 0,
    HSA_DEVICE_TYPE_GPU = 1,
    HSA_DEVICE_TYPE_DSP = 2,
    HSA_DEVICE_TYPE_AIE = 3,
};
enum hsa_agent_feature_t : uint32_t {
    HSA_AGENT_FEATURE_KERNEL_DISPATCH = 1,
    HSA_AGENT_FEATURE_AGENT_DISPATCH = 2,
};
enum hsa_endianness_t : uint32_t { HSA_ENDIANNESS_LITTLE = 0, HSA_ENDIANNESS_BIG = 1 };
enum hsa_machine_model_t : uint32_t { HSA_MACHINE_MODEL_SMALL = 0, HSA_MACHINE_MODEL_LARGE = 1 };
enum hsa_profile_t : uint32_t { HSA_PROFILE_BASE = 0, HSA_PROFILE_FULL = 1 };
enum hsa_default_float_rounding_mode_t : uint32_t {
    HSA_DEFAULT_FLOAT_ROUNDING_MODE_DEFAULT = 0,
    HSA_DEFAULT_FLOAT_ROUNDING_MODE_ZERO = 1,
    HSA_DEFAULT_FLOAT_ROUNDING_MODE_NEAR = 2,
};

// One enum for the standard and for AMD's attributes (0xA000 and up), since both go to hsa_agent_get_info.
enum hsa_agent_info_t : uint32_t {
    HSA_AGENT_INFO_NAME = 0,         // char[64], "gfx1151"
    HSA_AGENT_INFO_VENDOR_NAME = 1,  // char[64]
    HSA_AGENT_INFO_FEATURE = 2,      // uint32_t of hsa_agent_feature_t bits
    HSA_AGENT_INFO_MACHINE_MODEL = 3,
    HSA_AGENT_INFO_PROFILE = 4,
    HSA_AGENT_INFO_DEFAULT_FLOAT_ROUNDING_MODE = 5,
    HSA_AGENT_INFO_WAVEFRONT_SIZE = 6,      // uint32_t
    HSA_AGENT_INFO_WORKGROUP_MAX_DIM = 7,   // uint16_t[3]
    HSA_AGENT_INFO_WORKGROUP_MAX_SIZE = 8,  // uint32_t
    HSA_AGENT_INFO_GRID_MAX_DIM = 9,        // hsa_dim3_t
    HSA_AGENT_INFO_GRID_MAX_SIZE = 10,      // uint32_t
    HSA_AGENT_INFO_FBARRIER_MAX_SIZE = 11,
    HSA_AGENT_INFO_QUEUES_MAX = 12,      // uint32_t
    HSA_AGENT_INFO_QUEUE_MIN_SIZE = 13,  // uint32_t packets
    HSA_AGENT_INFO_QUEUE_MAX_SIZE = 14,  // uint32_t packets
    HSA_AGENT_INFO_QUEUE_TYPE = 15,
    HSA_AGENT_INFO_NODE = 16,
    HSA_AGENT_INFO_DEVICE = 17,      // hsa_device_type_t
    HSA_AGENT_INFO_CACHE_SIZE = 18,  // uint32_t[4] bytes
    HSA_AGENT_INFO_ISA = 19,
    HSA_AGENT_INFO_EXTENSIONS = 20,
    HSA_AGENT_INFO_VERSION_MAJOR = 21,
    HSA_AGENT_INFO_VERSION_MINOR = 22,
    HSA_AGENT_INFO_FAST_F16_OPERATION = 24,

    HSA_AMD_AGENT_INFO_CHIP_ID = 0xA000,              // uint32_t
    HSA_AMD_AGENT_INFO_CACHELINE_SIZE = 0xA001,       // uint32_t bytes
    HSA_AMD_AGENT_INFO_COMPUTE_UNIT_COUNT = 0xA002,   // uint32_t
    HSA_AMD_AGENT_INFO_MAX_CLOCK_FREQUENCY = 0xA003,  // uint32_t MHz
    HSA_AMD_AGENT_INFO_DRIVER_NODE_ID = 0xA004,       // uint32_t
    HSA_AMD_AGENT_INFO_BDFID = 0xA006,                // uint32_t: bus << 8 | device << 3 | function
    HSA_AMD_AGENT_INFO_MEMORY_WIDTH = 0xA007,         // uint32_t bits
    HSA_AMD_AGENT_INFO_MEMORY_MAX_FREQUENCY = 0xA008,
    HSA_AMD_AGENT_INFO_PRODUCT_NAME = 0xA009,      // char[64]
    HSA_AMD_AGENT_INFO_MAX_WAVES_PER_CU = 0xA00A,  // uint32_t
    HSA_AMD_AGENT_INFO_NUM_SIMDS_PER_CU = 0xA00B,
    HSA_AMD_AGENT_INFO_NUM_SHADER_ENGINES = 0xA00C,
    HSA_AMD_AGENT_INFO_NUM_SHADER_ARRAYS_PER_SE = 0xA00D,
    HSA_AMD_AGENT_INFO_DOMAIN = 0xA00F,  // uint32_t PCI domain
    HSA_AMD_AGENT_INFO_COOPERATIVE_QUEUES = 0xA010,
    HSA_AMD_AGENT_INFO_UUID = 0xA011,  // char[21], "GPU-" and 16 hexadecimal digits, or "GPU-XX"
    HSA_AMD_AGENT_INFO_ASIC_REVISION = 0xA012,
    HSA_AMD_AGENT_INFO_SVM_DIRECT_HOST_ACCESS = 0xA013,
    HSA_AMD_AGENT_INFO_MEMORY_AVAIL = 0xA015,         // uint64_t bytes
    HSA_AMD_AGENT_INFO_TIMESTAMP_FREQUENCY = 0xA016,  // uint64_t Hz
    HSA_AMD_AGENT_INFO_ASIC_FAMILY_ID = 0xA107,
    HSA_AMD_AGENT_INFO_DRIVER_UID = 0xA112,         // uint32_t
    HSA_AMD_AGENT_INFO_NEAREST_CPU = 0xA113,        // hsa_agent_t
    HSA_AMD_AGENT_INFO_MEMORY_PROPERTIES = 0xA114,  // uint8_t[8], bit 0: the agent shares the host's memory (APU)
};

enum hsa_isa_info_t : uint32_t {
    HSA_ISA_INFO_NAME_LENGTH = 0,  // uint32_t, with the final zero
    HSA_ISA_INFO_NAME = 1,         // char[], "amdgcn-amd-amdhsa--gfx1151"
    HSA_ISA_INFO_MACHINE_MODELS = 5,
    HSA_ISA_INFO_PROFILES = 6,
    HSA_ISA_INFO_DEFAULT_FLOAT_ROUNDING_MODES = 7,
    HSA_ISA_INFO_FAST_F16_OPERATION = 9,
    HSA_ISA_INFO_WORKGROUP_MAX_DIM = 12,   // uint16_t[3]
    HSA_ISA_INFO_WORKGROUP_MAX_SIZE = 13,  // uint32_t
    HSA_ISA_INFO_GRID_MAX_DIM = 14,        // hsa_dim3_t
    HSA_ISA_INFO_GRID_MAX_SIZE = 16,       // uint64_t
};

hsa_status_t hsa_iterate_agents(hsa_status_t (*callback)(hsa_agent_t agent, void* data), void* data);
hsa_status_t hsa_agent_get_info(hsa_agent_t agent, hsa_agent_info_t attribute, void* value);
hsa_status_t hsa_agent_iterate_isas(hsa_agent_t agent, hsa_status_t (*callback)(hsa_isa_t isa, void* data), void* data);
hsa_status_t hsa_isa_get_info_alt(hsa_isa_t isa, hsa_isa_info_t attribute, void* value);

// ---- signals ----

struct hsa_signal_t {
    uint64_t handle;
};
using hsa_signal_value_t = int64_t;

enum hsa_signal_condition_t : uint32_t {
    HSA_SIGNAL_CONDITION_EQ = 0,
    HSA_SIGNAL_CONDITION_NE = 1,
    HSA_SIGNAL_CONDITION_LT = 2,
    HSA_SIGNAL_CONDITION_GTE = 3,
};
enum hsa_wait_state_t : uint32_t { HSA_WAIT_STATE_BLOCKED = 0, HSA_WAIT_STATE_ACTIVE = 1 };
enum hsa_amd_signal_attribute_t : uint32_t { HSA_AMD_SIGNAL_AMD_GPU_ONLY = 1, HSA_AMD_SIGNAL_IPC = 2 };

// Return false to be called no more, true to stay registered.
using hsa_amd_signal_handler = bool (*)(hsa_signal_value_t value, void* arg);

hsa_status_t hsa_signal_create(hsa_signal_value_t initial_value, uint32_t num_consumers, const hsa_agent_t* consumers,
                               hsa_signal_t* signal);
hsa_status_t hsa_signal_destroy(hsa_signal_t signal);
hsa_signal_value_t hsa_signal_load_relaxed(hsa_signal_t signal);
hsa_signal_value_t hsa_signal_load_scacquire(hsa_signal_t signal);
void hsa_signal_store_relaxed(hsa_signal_t signal, hsa_signal_value_t value);
void hsa_signal_store_screlease(hsa_signal_t signal, hsa_signal_value_t value);
void hsa_signal_add_relaxed(hsa_signal_t signal, hsa_signal_value_t value);
void hsa_signal_add_scacquire(hsa_signal_t signal, hsa_signal_value_t value);
void hsa_signal_add_screlease(hsa_signal_t signal, hsa_signal_value_t value);
void hsa_signal_add_scacq_screl(hsa_signal_t signal, hsa_signal_value_t value);
void hsa_signal_subtract_relaxed(hsa_signal_t signal, hsa_signal_value_t value);
void hsa_signal_subtract_scacquire(hsa_signal_t signal, hsa_signal_value_t value);
void hsa_signal_subtract_screlease(hsa_signal_t signal, hsa_signal_value_t value);
void hsa_signal_subtract_scacq_screl(hsa_signal_t signal, hsa_signal_value_t value);
// timeout_hint: ticks of the system timestamp; returns the value seen last, which may not satisfy after a time-out.
hsa_signal_value_t hsa_signal_wait_relaxed(hsa_signal_t signal, hsa_signal_condition_t condition,
                                           hsa_signal_value_t compare_value, uint64_t timeout_hint,
                                           hsa_wait_state_t wait_state_hint);
hsa_signal_value_t hsa_signal_wait_scacquire(hsa_signal_t signal, hsa_signal_condition_t condition,
                                             hsa_signal_value_t compare_value, uint64_t timeout_hint,
                                             hsa_wait_state_t wait_state_hint);
hsa_status_t hsa_amd_signal_create(hsa_signal_value_t initial_value, uint32_t num_consumers,
                                   const hsa_agent_t* consumers, uint64_t attributes, hsa_signal_t* signal);
// The handler runs on a thread of the runtime.
hsa_status_t hsa_amd_signal_async_handler(hsa_signal_t signal, hsa_signal_condition_t condition,
                                          hsa_signal_value_t value, hsa_amd_signal_handler handler, void* arg);
// Index of a signal that satisfies its condition; UINT32_MAX after a time-out.
uint32_t hsa_amd_signal_wait_any(uint32_t signal_count, hsa_signal_t* signals, hsa_signal_condition_t* conditions,
                                 hsa_signal_value_t* values, uint64_t timeout_hint, hsa_wait_state_t wait_hint,
                                 hsa_signal_value_t* satisfying_value);

// ---- queues and packets (HSA Platform System Architecture, architected queueing language) ----

enum hsa_queue_type_t : uint32_t {
    HSA_QUEUE_TYPE_MULTI = 0,
    HSA_QUEUE_TYPE_SINGLE = 1,
    HSA_QUEUE_TYPE_COOPERATIVE = 2
};
enum hsa_queue_feature_t : uint32_t {
    HSA_QUEUE_FEATURE_KERNEL_DISPATCH = 1,
    HSA_QUEUE_FEATURE_AGENT_DISPATCH = 2,
};

struct hsa_queue_t {
    uint32_t type;
    uint32_t features;
    void* base_address;  // ring of `size` packets of 64 bytes
    hsa_signal_t doorbell_signal;
    uint32_t size;  // packets, a power of two
    uint32_t reserved1;
    uint64_t id;
};

enum hsa_packet_type_t : uint32_t {
    HSA_PACKET_TYPE_VENDOR_SPECIFIC = 0,
    HSA_PACKET_TYPE_INVALID = 1,
    HSA_PACKET_TYPE_KERNEL_DISPATCH = 2,
    HSA_PACKET_TYPE_BARRIER_AND = 3,
    HSA_PACKET_TYPE_AGENT_DISPATCH = 4,
    HSA_PACKET_TYPE_BARRIER_OR = 5,
};
enum hsa_fence_scope_t : uint32_t {
    HSA_FENCE_SCOPE_NONE = 0,
    HSA_FENCE_SCOPE_AGENT = 1,
    HSA_FENCE_SCOPE_SYSTEM = 2,
};
// First bit of each field of the 16-bit header.
enum hsa_packet_header_t : uint32_t {
    HSA_PACKET_HEADER_TYPE = 0,                    // 8 bits
    HSA_PACKET_HEADER_BARRIER = 8,                 // 1 bit
    HSA_PACKET_HEADER_SCACQUIRE_FENCE_SCOPE = 9,   // 2 bits
    HSA_PACKET_HEADER_SCRELEASE_FENCE_SCOPE = 11,  // 2 bits
};
enum hsa_kernel_dispatch_packet_setup_t : uint32_t { HSA_KERNEL_DISPATCH_PACKET_SETUP_DIMENSIONS = 0 };  // 2 bits

struct hsa_kernel_dispatch_packet_t {
    uint16_t header;
    uint16_t setup;
    uint16_t workgroup_size_x, workgroup_size_y, workgroup_size_z;
    uint16_t reserved0;
    uint32_t grid_size_x, grid_size_y, grid_size_z;  // work-items, not groups
    uint32_t private_segment_size;                   // bytes a work-item
    uint32_t group_segment_size;                     // bytes a group, static and dynamic
    uint64_t kernel_object;
    void* kernarg_address;
    uint64_t reserved2;
    hsa_signal_t completion_signal;
};
struct hsa_barrier_and_packet_t {
    uint16_t header;
    uint16_t reserved0;
    uint32_t reserved1;
    hsa_signal_t dep_signal[5];
    uint64_t reserved2;
    hsa_signal_t completion_signal;
};
using hsa_barrier_or_packet_t = hsa_barrier_and_packet_t;
static_assert(sizeof(hsa_kernel_dispatch_packet_t) == 64 && sizeof(hsa_barrier_and_packet_t) == 64);

// AMD's vendor packet that waits until (signal & mask) satisfies cond against value.
enum hsa_amd_packet_type_t : uint8_t { HSA_AMD_PACKET_TYPE_BARRIER_VALUE = 2 };
struct hsa_amd_barrier_value_packet_t {
    uint16_t header;
    uint8_t amd_format;
    uint8_t reserved;
    uint32_t reserved0;
    hsa_signal_t signal;
    hsa_signal_value_t value;
    hsa_signal_value_t mask;
    uint32_t cond;
    uint32_t reserved1;
    uint64_t reserved2;
    uint64_t reserved3;
    hsa_signal_t completion_signal;
};
static_assert(sizeof(hsa_amd_barrier_value_packet_t) == 64);

// callback: called on a thread of the runtime when the queue meets an error; the queue then executes no more packets
// and completion signals of unfinished packets keep their values.
hsa_status_t hsa_queue_create(hsa_agent_t agent, uint32_t size, uint32_t type,
                              void (*callback)(hsa_status_t status, hsa_queue_t* source, void* data), void* data,
                              uint32_t private_segment_size, uint32_t group_segment_size, hsa_queue_t** queue);
hsa_status_t hsa_queue_destroy(hsa_queue_t* queue);
uint64_t hsa_queue_load_read_index_relaxed(const hsa_queue_t* queue);
uint64_t hsa_queue_load_read_index_scacquire(const hsa_queue_t* queue);
void hsa_queue_store_read_index_relaxed(const hsa_queue_t* queue, uint64_t value);
void hsa_queue_store_read_index_screlease(const hsa_queue_t* queue, uint64_t value);
uint64_t hsa_queue_load_write_index_relaxed(const hsa_queue_t* queue);
uint64_t hsa_queue_load_write_index_scacquire(const hsa_queue_t* queue);
void hsa_queue_store_write_index_relaxed(const hsa_queue_t* queue, uint64_t value);
void hsa_queue_store_write_index_screlease(const hsa_queue_t* queue, uint64_t value);
uint64_t hsa_queue_add_write_index_relaxed(const hsa_queue_t* queue, uint64_t value);
uint64_t hsa_queue_add_write_index_scacquire(const hsa_queue_t* queue, uint64_t value);
uint64_t hsa_queue_add_write_index_screlease(const hsa_queue_t* queue, uint64_t value);
uint64_t hsa_queue_add_write_index_scacq_screl(const hsa_queue_t* queue, uint64_t value);

// ---- memory ----

struct hsa_amd_memory_pool_t {
    uint64_t handle;
};
enum hsa_amd_segment_t : uint32_t {
    HSA_AMD_SEGMENT_GLOBAL = 0,
    HSA_AMD_SEGMENT_READONLY = 1,
    HSA_AMD_SEGMENT_PRIVATE = 2,
    HSA_AMD_SEGMENT_GROUP = 3,
};
enum hsa_amd_memory_pool_global_flag_t : uint32_t {
    HSA_AMD_MEMORY_POOL_GLOBAL_FLAG_KERNARG_INIT = 1,
    HSA_AMD_MEMORY_POOL_GLOBAL_FLAG_FINE_GRAINED = 2,
    HSA_AMD_MEMORY_POOL_GLOBAL_FLAG_COARSE_GRAINED = 4,
    HSA_AMD_MEMORY_POOL_GLOBAL_FLAG_EXTENDED_SCOPE_FINE_GRAINED = 8,
};
enum hsa_amd_memory_pool_location_t : uint32_t {
    HSA_AMD_MEMORY_POOL_LOCATION_CPU = 0,
    HSA_AMD_MEMORY_POOL_LOCATION_GPU = 1,
};
enum hsa_amd_memory_pool_info_t : uint32_t {
    HSA_AMD_MEMORY_POOL_INFO_SEGMENT = 0,                  // hsa_amd_segment_t
    HSA_AMD_MEMORY_POOL_INFO_GLOBAL_FLAGS = 1,             // uint32_t
    HSA_AMD_MEMORY_POOL_INFO_SIZE = 2,                     // size_t
    HSA_AMD_MEMORY_POOL_INFO_RUNTIME_ALLOC_ALLOWED = 5,    // bool
    HSA_AMD_MEMORY_POOL_INFO_RUNTIME_ALLOC_GRANULE = 6,    // size_t
    HSA_AMD_MEMORY_POOL_INFO_RUNTIME_ALLOC_ALIGNMENT = 7,  // size_t
    HSA_AMD_MEMORY_POOL_INFO_ACCESSIBLE_BY_ALL = 15,       // bool
    HSA_AMD_MEMORY_POOL_INFO_ALLOC_MAX_SIZE = 16,          // size_t
    HSA_AMD_MEMORY_POOL_INFO_LOCATION = 17,
    HSA_AMD_MEMORY_POOL_INFO_RUNTIME_ALLOC_REC_GRANULE = 18,
};

enum hsa_amd_pointer_type_t : uint32_t {
    HSA_EXT_POINTER_TYPE_UNKNOWN = 0,
    HSA_EXT_POINTER_TYPE_HSA = 1,
    HSA_EXT_POINTER_TYPE_LOCKED = 2,
    HSA_EXT_POINTER_TYPE_GRAPHICS = 3,  // from hsa_amd_interop_map_buffer
    HSA_EXT_POINTER_TYPE_IPC = 4,
};
struct hsa_amd_pointer_info_t {
    uint32_t size;  // in: sizeof of the caller's structure
    hsa_amd_pointer_type_t type;
    void* agentBaseAddress;
    void* hostBaseAddress;
    size_t sizeInBytes;
    void* userData;
    hsa_agent_t agentOwner;
    uint32_t global_flags;
};

hsa_status_t hsa_amd_agent_iterate_memory_pools(hsa_agent_t agent,
                                                hsa_status_t (*callback)(hsa_amd_memory_pool_t pool, void* data),
                                                void* data);
hsa_status_t hsa_amd_memory_pool_get_info(hsa_amd_memory_pool_t pool, hsa_amd_memory_pool_info_t attribute,
                                          void* value);
hsa_status_t hsa_amd_memory_pool_allocate(hsa_amd_memory_pool_t pool, size_t size, uint32_t flags, void** ptr);
hsa_status_t hsa_amd_memory_pool_free(void* ptr);
hsa_status_t hsa_amd_agents_allow_access(uint32_t num_agents, const hsa_agent_t* agents, const uint32_t* flags,
                                         const void* ptr);
hsa_status_t hsa_amd_memory_lock(void* host_ptr, size_t size, hsa_agent_t* agents, int num_agent, void** agent_ptr);
hsa_status_t hsa_amd_memory_unlock(void* host_ptr);
hsa_status_t hsa_amd_pointer_info(const void* ptr, hsa_amd_pointer_info_t* info, void* (*alloc)(size_t),
                                  uint32_t* num_agents_accessible, hsa_agent_t** accessible);
hsa_status_t hsa_memory_copy(void* dst, const void* src, size_t size);
hsa_status_t hsa_amd_memory_async_copy(void* dst, hsa_agent_t dst_agent, const void* src, hsa_agent_t src_agent,
                                       size_t size, uint32_t num_dep_signals, const hsa_signal_t* dep_signals,
                                       hsa_signal_t completion_signal);
// count: 32-bit words, ptr aligned to 4.
hsa_status_t hsa_amd_memory_fill(void* ptr, uint32_t value, size_t count);
// interop_handle: a dma-buf file descriptor, which stays the caller's.
hsa_status_t hsa_amd_interop_map_buffer(uint32_t num_agents, hsa_agent_t* agents, int interop_handle, uint32_t flags,
                                        size_t* size, void** ptr, size_t* metadata_size, const void** metadata);
hsa_status_t hsa_amd_interop_unmap_buffer(void* ptr);
hsa_status_t hsa_amd_portable_export_dmabuf(const void* ptr, size_t size, int* dmabuf, uint64_t* offset);
hsa_status_t hsa_amd_portable_close_dmabuf(int dmabuf);

// ---- code objects ----

struct hsa_code_object_reader_t {
    uint64_t handle;
};
struct hsa_executable_t {
    uint64_t handle;
};
struct hsa_loaded_code_object_t {
    uint64_t handle;
};
struct hsa_executable_symbol_t {
    uint64_t handle;
};
enum hsa_symbol_kind_t : uint32_t {
    HSA_SYMBOL_KIND_VARIABLE = 0,
    HSA_SYMBOL_KIND_KERNEL = 1,
    HSA_SYMBOL_KIND_INDIRECT_FUNCTION = 2,
};
enum hsa_executable_symbol_info_t : uint32_t {
    HSA_EXECUTABLE_SYMBOL_INFO_TYPE = 0,         // hsa_symbol_kind_t
    HSA_EXECUTABLE_SYMBOL_INFO_NAME_LENGTH = 1,  // uint32_t, without a final zero
    HSA_EXECUTABLE_SYMBOL_INFO_NAME = 2,         // char[], without a final zero
    HSA_EXECUTABLE_SYMBOL_INFO_LINKAGE = 5,
    HSA_EXECUTABLE_SYMBOL_INFO_VARIABLE_SIZE = 9,                      // uint32_t
    HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_KERNARG_SEGMENT_SIZE = 11,       // uint32_t
    HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_KERNARG_SEGMENT_ALIGNMENT = 12,  // uint32_t
    HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_GROUP_SEGMENT_SIZE = 13,         // uint32_t
    HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_PRIVATE_SEGMENT_SIZE = 14,       // uint32_t
    HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_DYNAMIC_CALLSTACK = 15,          // bool
    HSA_EXECUTABLE_SYMBOL_INFO_IS_DEFINITION = 17,
    HSA_EXECUTABLE_SYMBOL_INFO_AGENT = 20,             // hsa_agent_t
    HSA_EXECUTABLE_SYMBOL_INFO_VARIABLE_ADDRESS = 21,  // uint64_t
    HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_OBJECT = 22,     // uint64_t: address of the kernel descriptor
};

hsa_status_t hsa_code_object_reader_create_from_memory(const void* code_object, size_t size,
                                                       hsa_code_object_reader_t* reader);
hsa_status_t hsa_code_object_reader_destroy(hsa_code_object_reader_t reader);
hsa_status_t hsa_executable_create_alt(hsa_profile_t profile, hsa_default_float_rounding_mode_t rounding_mode,
                                       const char* options, hsa_executable_t* executable);
hsa_status_t hsa_executable_destroy(hsa_executable_t executable);
hsa_status_t hsa_executable_load_agent_code_object(hsa_executable_t executable, hsa_agent_t agent,
                                                   hsa_code_object_reader_t reader, const char* options,
                                                   hsa_loaded_code_object_t* loaded_code_object);
hsa_status_t hsa_executable_freeze(hsa_executable_t executable, const char* options);
// A kernel K is found under the name "K.kd".
hsa_status_t hsa_executable_get_symbol_by_name(hsa_executable_t executable, const char* symbol_name,
                                               const hsa_agent_t* agent, hsa_executable_symbol_t* symbol);
hsa_status_t hsa_executable_symbol_get_info(hsa_executable_symbol_t symbol, hsa_executable_symbol_info_t attribute,
                                            void* value);

// ---- profiling and events ----

struct hsa_amd_profiling_dispatch_time_t {
    uint64_t start, end;  // ticks of the system timestamp
};
enum hsa_amd_event_type_t : uint32_t {
    HSA_AMD_GPU_MEMORY_FAULT_EVENT = 0,
    HSA_AMD_GPU_HW_EXCEPTION_EVENT = 1,
    HSA_AMD_GPU_MEMORY_ERROR_EVENT = 2,
};
enum hsa_amd_memory_fault_reason_t : uint32_t {
    HSA_AMD_MEMORY_FAULT_PAGE_NOT_PRESENT = 1u << 0,
    HSA_AMD_MEMORY_FAULT_READ_ONLY = 1u << 1,
    HSA_AMD_MEMORY_FAULT_NX = 1u << 2,
};
struct hsa_amd_gpu_memory_fault_info_t {
    hsa_agent_t agent;
    uint64_t virtual_address;
    uint32_t fault_reason_mask;
};
struct hsa_amd_gpu_hw_exception_info_t {
    hsa_agent_t agent;
    uint32_t reset_type;
    uint32_t reset_cause;
};
struct hsa_amd_event_t {
    hsa_amd_event_type_t event_type;
    union {
        hsa_amd_gpu_memory_fault_info_t memory_fault;
        hsa_amd_gpu_hw_exception_info_t hw_exception;
    };
};
using hsa_amd_system_event_callback_t = hsa_status_t (*)(const hsa_amd_event_t* event, void* data);

hsa_status_t hsa_amd_profiling_set_profiler_enabled(hsa_queue_t* queue, int enable);
hsa_status_t hsa_amd_profiling_get_dispatch_time(hsa_agent_t agent, hsa_signal_t signal,
                                                 hsa_amd_profiling_dispatch_time_t* time);
hsa_status_t hsa_amd_profiling_convert_tick_to_system_domain(hsa_agent_t agent, uint64_t agent_tick,
                                                             uint64_t* system_tick);
hsa_status_t hsa_amd_register_system_event_handler(hsa_amd_system_event_callback_t callback, void* data);

}  // extern "C"
