// Shares Vulkan memory with other GPU APIs while ggml-vulkan's sources stay untouched. This is a part of the
// ggml-vulkan library, reached through one C function so that a program which loads that library at run time can look
// it up, and so that a ggml-vulkan without it is recognised. Needs no Vulkan header.
//
// Every allocation is a dedicated one: memory without VkMemoryDedicatedAllocateInfo is mapped by small pages on some
// drivers, which costs a factor of twenty on random reads.
//
// Threads: enable() once, from one thread, before the first Vulkan device is used; the other functions from any thread.
// Errors: a function that fails returns null, -1 or false, and writes one line into error (cut at error_size).
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "ggml-backend.h"

#ifdef __cplusplus
extern "C" {
#endif

#define ONEBIT_VKSHARE_VERSION 1

// Kinds of handles; a set of them is their sum.
enum onebit_vkshare_kind {
    ONEBIT_VKSHARE_HOST = 1,       // a pointer into the mapped memory
    ONEBIT_VKSHARE_OPAQUE_FD = 2,  // VK_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD_BIT
    ONEBIT_VKSHARE_DMA_BUF = 4,    // VK_EXTERNAL_MEMORY_HANDLE_TYPE_DMA_BUF_BIT_EXT
};

struct onebit_vkshare_device {
    uint8_t uuid[16];     // deviceUUID: the same value as CUDA's and HIP's
    uint8_t has_pci;      // the address below is known
    uint32_t pci[4];      // domain, bus, device, function
    uint32_t exportable;  // kinds for which memory can be allocated here and mapped elsewhere
    uint32_t importable;  // kinds of foreign memory that can be used here
    uint64_t max_buffer;  // bytes of one buffer
    uint64_t host_align;  // alignment of a host pointer and its size for an import
};

struct onebit_vkshare_memory {
    void* host;             // the mapping of byte 0, valid as long as the buffer; null where memory is not host visible
    uint64_t size;          // bytes of the ggml buffer
    uint64_t allocation;    // bytes of the Vulkan allocation, which an importer must name: never less than size
    uint32_t memory_type;   // index into the device's memory types
    uint32_t memory_flags;  // VkMemoryPropertyFlags
    uint32_t kinds;         // kinds that export_fd() and host give of this buffer
};

struct onebit_vkshare_api {
    uint32_t version;

    // Makes devices created from now on able to share memory. Calling it again does nothing. Fails when there is no
    // Vulkan driver, or a device is already in use without the extensions.
    bool (*enable)(char* error, size_t error_size);

    // type: the default buffer type of a Vulkan device, as in all functions below. Creates that device.
    bool (*describe)(ggml_backend_buffer_type_t type, struct onebit_vkshare_device* device, char* error,
                     size_t error_size);

    // An ordinary ggml-vulkan buffer of size bytes (not 0) whose memory can be shared as each of kinds. The caller
    // frees it as any ggml buffer; memory imported elsewhere lives on until its importers let go of it.
    ggml_backend_buffer_t (*allocate)(ggml_backend_buffer_type_t type, uint64_t size, uint32_t kinds, char* error,
                                      size_t error_size);

    // A new handle of a buffer that allocate() made with that kind; the caller owns the descriptor. -1 on failure.
    int (*export_fd)(ggml_backend_buffer_t buffer, uint32_t kind, char* error, size_t error_size);

    // Foreign memory as an ordinary ggml-vulkan buffer. Takes the descriptor on success, leaves it to the caller on
    // failure. size: bytes used; allocation: bytes that the exporter allocated, at least size.
    ggml_backend_buffer_t (*import_fd)(ggml_backend_buffer_type_t type, uint32_t kind, int fd, uint64_t size,
                                       uint64_t allocation, char* error, size_t error_size);

    // Host memory as an ordinary ggml-vulkan buffer; pointer and size are multiples of host_align and stay valid
    // until the buffer is freed.
    ggml_backend_buffer_t (*import_host)(ggml_backend_buffer_type_t type, void* pointer, uint64_t size, char* error,
                                         size_t error_size);

    // What is known of any ggml-vulkan buffer that is not empty. False for a buffer of another backend.
    bool (*memory)(ggml_backend_buffer_t buffer, struct onebit_vkshare_memory* memory);
};

// The functions above, or null when this library's version differs from the one asked for. Never fails otherwise.
GGML_BACKEND_API const struct onebit_vkshare_api* onebit_vkshare(uint32_t version);

#ifdef __cplusplus
}
#endif
