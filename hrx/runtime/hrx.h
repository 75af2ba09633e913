/* libhrx: record a program of GPU kernels once, replay it often. C interface; hrx.hpp wraps it for C++.
 *
 * Results   Every function that can fail returns an hrx_result. After a failure hrx_error_message() says, for the
 *           calling thread, what was expected and found, and which call of the driver gave which result.
 * Ownership Objects are counted: hrx_X_retain adds an owner, hrx_X_release takes one away (NULL is allowed). An object
 *           keeps what it is made of, so owners may release in any order. Work in flight keeps what it uses; the last
 *           release of a queue waits for its work. Finished work is let go of at the next call that looks at it:
 *           submit, query, wait.
 * Threads   Every function may be called from any thread at any time, with two exceptions: recording a program
 *           (everything between create and finish) belongs to one thread at a time, and an object must not be used
 *           after its last release. Calls on one program, queue or semaphore are put in some order by a lock; patches
 *           of one hrx_program_patch call are seen all or none by a submit.
 * Units     Sizes and offsets are bytes, times nanoseconds. Names are UTF-8, ended by a zero.
 * Fork      A device must not be used in a child made by fork. */
#ifndef HRX_H
#define HRX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#if defined(HRX_STATIC)
#define HRX_API
#else
#define HRX_API __attribute__((visibility("default")))
#endif

#ifdef __cplusplus
extern "C" {
#endif

#define HRX_VERSION 1u
/* The version of the interface that the library was built with. It changes with every change of a structure, a number
 * or a function that programs built before it would not survive; so does the library's soname. */
HRX_API uint32_t hrx_version(void);

typedef enum hrx_result {
    HRX_OK = 0,
    HRX_INVALID_ARGUMENT = 1, /* the caller asked in a wrong way */
    HRX_NOT_FOUND = 2,        /* no such driver, device or kernel */
    HRX_UNSUPPORTED = 3,      /* right, but not with this device or driver */
    HRX_OUT_OF_MEMORY = 4,
    HRX_UNAVAILABLE = 5, /* the driver is not installed or does not start */
    HRX_TIMEOUT = 6,
    HRX_DEVICE_LOST = 7,   /* the device failed or the work was cancelled: nothing more will finish */
    HRX_DRIVER_ERROR = 8,  /* a call of the driver failed otherwise */
    HRX_WRONG_STATE = 9,   /* not now: recording has ended, or has not */
    HRX_INVALID_DATA = 10, /* an image or file descriptor that does not hold what it should */
    HRX_INTERNAL = 11,
} hrx_result;

/* "HRX_TIMEOUT"; "unknown" for other numbers. */
HRX_API const char* hrx_result_name(hrx_result result);
/* Of the last failure on this thread; valid until the thread's next call. Empty before any. */
HRX_API const char* hrx_error_message(void);

typedef struct hrx_device hrx_device;
typedef struct hrx_buffer hrx_buffer;
typedef struct hrx_executable hrx_executable;
typedef struct hrx_program hrx_program;
typedef struct hrx_queue hrx_queue;
typedef struct hrx_semaphore hrx_semaphore;

/* ---- drivers and devices ---- */

/* Drivers of this build, present or not: "amdgpu", "cuda". */
HRX_API uint32_t hrx_driver_count(void);
HRX_API const char* hrx_driver_name(uint32_t index); /* NULL past the end */

/* What was tried to start a driver, in order: one entry for each library, with the call that failed. */
typedef struct hrx_probe_entry {
    const char* driver;
    const char* origin;  /* why this library: a variable's name, "build", "ROCm", "Python package", "system" */
    const char* library; /* file, or name given to the loader */
    const char* call;    /* the call that failed, such as "hsa_init"; empty when the driver started */
    const char* detail;  /* its result, or the version of a driver that started */
    bool started;
} hrx_probe_entry;
typedef void (*hrx_probe_callback)(void* user, const hrx_probe_entry* entry);
/* Starts the driver if it has not been started. HRX_UNAVAILABLE if no library works. Entries live during the call. */
HRX_API hrx_result hrx_driver_probe(const char* driver, hrx_probe_callback callback, void* user);

/* HRX_UNAVAILABLE when the driver does not start. */
HRX_API hrx_result hrx_device_count(const char* driver, uint32_t* count);
/* Each call gives a device of its own, and objects of two devices are not used together. */
HRX_API hrx_result hrx_device_open(const char* driver, uint32_t index, hrx_device** device);
HRX_API void hrx_device_retain(hrx_device* device);
HRX_API void hrx_device_release(hrx_device* device);

typedef enum hrx_feature {
    HRX_FEATURE_EXPORT_DMA_BUF = 1 << 0,
    HRX_FEATURE_IMPORT_DMA_BUF = 1 << 1,
    HRX_FEATURE_EXPORT_OPAQUE = 1 << 2,
    HRX_FEATURE_IMPORT_OPAQUE = 1 << 3,
    HRX_FEATURE_IMPORT_HOST = 1 << 4,
    HRX_FEATURE_DEVICE_MEMORY_MAPPABLE = 1 << 5, /* HRX_MEMORY_DEVICE can be mapped */
} hrx_feature;

typedef struct hrx_device_info {
    char driver[16];
    char name[128];
    char architecture[64]; /* "gfx1151", "sm_90" */
    uint32_t compute_units;
    uint32_t wave_size;          /* work-items in a wave */
    uint32_t max_workgroup_size; /* work-items */
    uint32_t max_workgroup_dimension[3];
    uint32_t max_workgroup_count[3];
    uint32_t lds_bytes;        /* of one workgroup, at most */
    uint32_t clock_mhz;        /* highest of the compute units */
    uint64_t memory_bytes;     /* that the device can allocate at most */
    uint64_t max_buffer_bytes; /* of one buffer */
    uint32_t features;         /* bits of hrx_feature */
    bool integrated;           /* shares the host's memory */
    bool has_pci_address, has_uuid;
    uint32_t pci_domain;
    uint8_t pci_bus, pci_device, pci_function;
    uint8_t uuid[16];
} hrx_device_info;

HRX_API hrx_result hrx_device_get_info(const hrx_device* device, hrx_device_info* info);
/* Bytes free now, as the driver reports; other processes change it at any time. */
HRX_API hrx_result hrx_device_free_memory(const hrx_device* device, uint64_t* bytes);

/* ---- buffers ---- */

typedef enum hrx_memory {
    HRX_MEMORY_DEVICE = 0, /* the device's fastest */
    HRX_MEMORY_HOST = 1,   /* the host's, read and written by both without copies, always mappable */
} hrx_memory;

typedef enum hrx_buffer_flag {
    HRX_BUFFER_EXPORTABLE = 1 << 0, /* hrx_buffer_export_fd will work */
} hrx_buffer_flag;

typedef enum hrx_fd_kind {
    HRX_FD_DMA_BUF = 0,
    HRX_FD_OPAQUE = 1, /* what Vulkan calls OPAQUE_FD: only the driver that made it understands it */
} hrx_fd_kind;

/* Contents are undefined. size: at least 1. */
HRX_API hrx_result hrx_buffer_allocate(hrx_device* device, hrx_memory memory, uint32_t flags, uint64_t size,
                                       hrx_buffer** buffer);
/* Memory that another API or process exported. fd stays the caller's, who may close it at once. The buffer begins at
 * offset in that memory. size: of the buffer; allocation_size: of the exported memory, at least offset + size. */
HRX_API hrx_result hrx_buffer_import_fd(hrx_device* device, hrx_fd_kind kind, int fd, uint64_t allocation_size,
                                        uint64_t offset, uint64_t size, hrx_buffer** buffer);
/* Pages of this process. pointer: a multiple of 4096; they must stay mapped until the last release of the buffer, and
 * one page must not be in two buffers. */
HRX_API hrx_result hrx_buffer_import_host(hrx_device* device, void* pointer, uint64_t size, hrx_buffer** buffer);
/* fd becomes the caller's. The buffer begins at *offset in the exported memory, whose size is *allocation_size. */
HRX_API hrx_result hrx_buffer_export_fd(hrx_buffer* buffer, hrx_fd_kind kind, int* fd, uint64_t* allocation_size,
                                        uint64_t* offset);
HRX_API void hrx_buffer_retain(hrx_buffer* buffer);
HRX_API void hrx_buffer_release(hrx_buffer* buffer);
HRX_API uint64_t hrx_buffer_size(const hrx_buffer* buffer);
HRX_API uint64_t hrx_buffer_address(const hrx_buffer* buffer); /* on the device */
/* The host's address of the buffer, the same each time, valid until the last release. HRX_UNSUPPORTED where the memory
 * cannot be mapped. Work that was waited for is visible; what the host writes is visible to work submitted later. */
HRX_API hrx_result hrx_buffer_map(hrx_buffer* buffer, void** pointer);
/* Copy between the host and any buffer and return when done. Not ordered with queues: wait for their work first. */
HRX_API hrx_result hrx_buffer_write(hrx_buffer* buffer, uint64_t offset, const void* data, uint64_t size);
HRX_API hrx_result hrx_buffer_read(hrx_buffer* buffer, uint64_t offset, void* data, uint64_t size);

/* ---- executables ---- */

typedef struct hrx_kernel_info {
    uint32_t max_workgroup_size;
    uint32_t static_lds_bytes;
    uint32_t private_bytes;  /* scratch of one work-item */
    uint32_t argument_bytes; /* bindings and constants; 0 when the driver does not tell */
} hrx_kernel_info;

/* image: HSACO of the device's architecture, or PTX or cubin. It may be freed after the call. HRX_INVALID_DATA with the
 * driver's log when it is refused. */
HRX_API hrx_result hrx_executable_load(hrx_device* device, const void* image, uint64_t size,
                                       hrx_executable** executable);
HRX_API void hrx_executable_retain(hrx_executable* executable);
HRX_API void hrx_executable_release(hrx_executable* executable);
/* The index of a kernel, the same each time. HRX_NOT_FOUND for an unknown name. */
HRX_API hrx_result hrx_executable_find(hrx_executable* executable, const char* kernel, uint32_t* index);
HRX_API hrx_result hrx_executable_kernel_info(hrx_executable* executable, uint32_t index, hrx_kernel_info* info);

/* ---- programs ----
 * A kernel reads its arguments from one block in device memory: the addresses of its bindings, 8 bytes each, and then
 * its constants (hrx/kernels/device.h). A patch changes that block only, so that patches of any number of dispatches
 * cost one small copy at the next submit.
 *
 * Commands may run at the same time and in any order, except across a barrier: what was recorded before it has
 * finished, and its writes are visible, before anything after it starts. A program never runs twice at the same time:
 * its submissions follow each other, on whatever queues. */

typedef struct hrx_binding {
    hrx_buffer* buffer;
    uint64_t offset;
    uint64_t length; /* from offset; 0: to the end of the buffer. Only checked, kernels see the address alone */
} hrx_binding;

typedef struct hrx_dispatch {
    hrx_executable* executable;
    uint32_t kernel;
    uint32_t workgroup_count[3]; /* a 0 dispatches nothing, but counts as a command */
    uint32_t workgroup_size[3];
    uint32_t dynamic_lds_bytes;
    const hrx_binding* bindings;
    uint32_t binding_count;
    const void* constants;
    uint32_t constant_bytes;
} hrx_dispatch;

typedef enum hrx_program_flag {
    HRX_PROGRAM_PROFILE = 1 << 0, /* times of each command; puts a barrier after each */
} hrx_program_flag;

HRX_API hrx_result hrx_program_create(hrx_device* device, uint32_t flags, hrx_program** program);
HRX_API void hrx_program_retain(hrx_program* program);
HRX_API void hrx_program_release(hrx_program* program);

/* Each command has an index, counted from 0 in the order of recording; barriers are not commands. index may be NULL.
 * A command that was refused leaves the program as it was. */
HRX_API hrx_result hrx_program_dispatch(hrx_program* program, const hrx_dispatch* dispatch, uint32_t* index);
/* Ranges of one buffer must not overlap; any size and alignment. Binding 0 is the destination, 1 the source. */
HRX_API hrx_result hrx_program_copy(hrx_program* program, hrx_buffer* destination, uint64_t destination_offset,
                                    hrx_buffer* source, uint64_t source_offset, uint64_t size, uint32_t* index);
/* pattern: 1, 2 or 4 bytes; offset and size are multiples of pattern_size. Binding 0 is the destination. */
HRX_API hrx_result hrx_program_fill(hrx_program* program, hrx_buffer* destination, uint64_t offset, uint64_t size,
                                    uint32_t pattern, uint32_t pattern_size, uint32_t* index);
HRX_API hrx_result hrx_program_barrier(hrx_program* program);
/* Takes the time when all before it has finished, and holds back all after it. *slot counts from 0. */
HRX_API hrx_result hrx_program_timestamp(hrx_program* program, uint32_t* slot);
/* Ends recording; after it the program can be submitted. */
HRX_API hrx_result hrx_program_finish(hrx_program* program);

typedef struct hrx_patch {
    uint32_t command;
    uint32_t binding;
    hrx_binding value; /* for a copy or fill, at least the recorded size is needed from offset */
} hrx_patch;
/* For submissions after this call; earlier ones keep what they had. All are applied, or on an error none. */
HRX_API hrx_result hrx_program_patch(hrx_program* program, const hrx_patch* patches, uint32_t count);
/* offset and size within the constants of a dispatch. */
HRX_API hrx_result hrx_program_patch_constants(hrx_program* program, uint32_t command, uint32_t offset,
                                               const void* data, uint32_t size);

/* Times of the last finished submission, on the device's clock; wait for it first. count: slots to read from 0. */
HRX_API hrx_result hrx_program_timestamps(hrx_program* program, uint64_t* times, uint32_t count);
typedef struct hrx_profile_entry {
    const char* name; /* of the kernel; "copy" or "fill" */
    uint64_t begin, end;
} hrx_profile_entry;
/* With HRX_PROGRAM_PROFILE, one entry a command. count: of entries, at most the number of commands. Names live as long
 * as the program. Intervals hold the barrier and the taking of time. */
HRX_API hrx_result hrx_program_profile(hrx_program* program, hrx_profile_entry* entries, uint32_t count);
HRX_API uint32_t hrx_program_command_count(const hrx_program* program);

/* ---- queues and timeline semaphores ----
 * A semaphore is a number that only grows. Submissions and the host wait until it has reached a value, and raise it to
 * a value. A wait may be submitted before anything that will raise the semaphore; then that submission, and those after
 * it on its queue, are sent to the device by the call that makes the wait possible. */

typedef struct hrx_semaphore_value {
    hrx_semaphore* semaphore;
    uint64_t value;
} hrx_semaphore_value;

HRX_API hrx_result hrx_semaphore_create(hrx_device* device, uint64_t initial_value, hrx_semaphore** semaphore);
HRX_API void hrx_semaphore_retain(hrx_semaphore* semaphore);
HRX_API void hrx_semaphore_release(hrx_semaphore* semaphore);
/* The value reached. After work was lost or cancelled: the error of that work. */
HRX_API hrx_result hrx_semaphore_query(hrx_semaphore* semaphore, uint64_t* value);
/* From the host. value: above the reached one, below every value that submitted work will signal. */
HRX_API hrx_result hrx_semaphore_signal(hrx_semaphore* semaphore, uint64_t value);
/* timeout: 0 only looks, UINT64_MAX waits for ever. HRX_TIMEOUT when it passes. */
HRX_API hrx_result hrx_semaphore_wait(hrx_semaphore* semaphore, uint64_t value, uint64_t timeout);

HRX_API hrx_result hrx_queue_create(hrx_device* device, hrx_queue** queue);
HRX_API void hrx_queue_retain(hrx_queue* queue);
/* The last release waits for work on the device, and cancels what still waits for a semaphore that nothing raises. */
HRX_API void hrx_queue_release(hrx_queue* queue);
/* Submissions of one queue run one after another. program may be NULL: only waits and signals. Semaphores must be of
 * the queue's device; a signalled value must be above the reached one and promised by no other submission. */
HRX_API hrx_result hrx_queue_submit(hrx_queue* queue, hrx_program* program, const hrx_semaphore_value* waits,
                                    uint32_t wait_count, const hrx_semaphore_value* signals, uint32_t signal_count);
/* Until all submitted before this call has finished. HRX_TIMEOUT as with semaphores. */
HRX_API hrx_result hrx_queue_wait_idle(hrx_queue* queue, uint64_t timeout);

#ifdef __cplusplus
}
#endif
#endif /* HRX_H */
