// What a GPU kernel needs, for amdgcn and nvptx: freestanding C++20 compiled by clang, without any SDK's headers.
//
// The kernel interface of libhrx (hrx/runtime/hrx.h): a kernel has one argument block, a struct of its bindings, which
// are pointers to GLOBAL memory, followed by its constants. On AMD the block is the kernarg segment, on NVIDIA the
// kernel gets its address. HRX_KERNEL hides the difference:
//
//     struct Scale { GLOBAL float* data; uint32_t count; float factor; };
//     HRX_KERNEL(scale, Scale) {
//         const uint32_t i = workgroup_id_x() * 64 + local_id_x();
//         if (i < arguments.count) arguments.data[i] *= arguments.factor;
//     }
//
// Workgroup sizes are not read on the device: pass them as constants or fix them.
#pragma once

using int8_t = signed char;
using uint8_t = unsigned char;
using int16_t = short;
using uint16_t = unsigned short;
using int32_t = int;
using uint32_t = unsigned;
using int64_t = long long;
using uint64_t = unsigned long long;
static_assert(sizeof(uint64_t) == 8 && sizeof(void*) == 8);

#define GLOBAL __attribute__((address_space(1)))
#define LDS __attribute__((address_space(3)))
#define INLINE static inline __attribute__((always_inline))
// Shared by a workgroup; its contents are undefined at the start.
#define LDS_ARRAY(Type, name, count) static LDS Type name[count] __attribute__((loader_uninitialized))

#if defined(__AMDGCN__)

#define HRX_KERNEL(name, Arguments)                                                                           \
    INLINE void name##_body(const Arguments& arguments);                                                      \
    extern "C" __attribute__((amdgpu_kernel, visibility("protected"))) void name(const Arguments arguments) { \
        name##_body(arguments);                                                                               \
    }                                                                                                         \
    INLINE void name##_body(const Arguments& arguments)

INLINE uint32_t local_id_x() { return __builtin_amdgcn_workitem_id_x(); }
INLINE uint32_t local_id_y() { return __builtin_amdgcn_workitem_id_y(); }
INLINE uint32_t local_id_z() { return __builtin_amdgcn_workitem_id_z(); }
INLINE uint32_t workgroup_id_x() { return __builtin_amdgcn_workgroup_id_x(); }
INLINE uint32_t workgroup_id_y() { return __builtin_amdgcn_workgroup_id_y(); }
INLINE uint32_t workgroup_id_z() { return __builtin_amdgcn_workgroup_id_z(); }

// All work-items of the workgroup arrive, and see each other's writes to LDS and global memory.
INLINE void barrier() {
    __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup");
    __builtin_amdgcn_s_barrier();
    __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup");
}

// Ticks of a clock that counts evenly: the reference clock.
INLINE uint64_t clock_ticks() { return __builtin_readsteadycounter(); }

#elif defined(__NVPTX__)

#define HRX_KERNEL(name, Arguments)                                              \
    INLINE void name##_body(const Arguments& arguments);                         \
    extern "C" __attribute__((nvptx_kernel)) void name(const Arguments* block) { \
        const Arguments arguments = *block;                                      \
        name##_body(arguments);                                                  \
    }                                                                            \
    INLINE void name##_body(const Arguments& arguments)

INLINE uint32_t local_id_x() { return __nvvm_read_ptx_sreg_tid_x(); }
INLINE uint32_t local_id_y() { return __nvvm_read_ptx_sreg_tid_y(); }
INLINE uint32_t local_id_z() { return __nvvm_read_ptx_sreg_tid_z(); }
INLINE uint32_t workgroup_id_x() { return __nvvm_read_ptx_sreg_ctaid_x(); }
INLINE uint32_t workgroup_id_y() { return __nvvm_read_ptx_sreg_ctaid_y(); }
INLINE uint32_t workgroup_id_z() { return __nvvm_read_ptx_sreg_ctaid_z(); }

INLINE void barrier() { __nvvm_bar_sync(0); }

// Nanoseconds.
INLINE uint64_t clock_ticks() {
    uint64_t time;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(time));
    return time;
}

#else
#error "hrx/kernels is compiled for amdgcn or nvptx only"
#endif

// Relaxed, for all work-items of the device; returns the value before.
INLINE uint32_t atomic_add(GLOBAL uint32_t* address, uint32_t value) {
#if defined(__AMDGCN__)
    return __opencl_atomic_fetch_add(reinterpret_cast<GLOBAL _Atomic(uint32_t)*>(address), value, __ATOMIC_RELAXED,
                                     __OPENCL_MEMORY_SCOPE_DEVICE);
#else
    return __atomic_fetch_add(reinterpret_cast<uint32_t*>(reinterpret_cast<uint64_t>(address)), value,
                              __ATOMIC_RELAXED);
#endif
}
