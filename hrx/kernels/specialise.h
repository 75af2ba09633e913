// The contract between kernels and Loom, which compiles them for one chip and one set of constants.
//
// A kernel file (hrx/kernels/FAMILY.cpp) is compiled once for amdgcn and once for nvptx, without naming a chip. From
// that bitcode come, at build time, generic images for each chip, and at run time specialised ones. Both take the same
// argument block (device.h), so that one can replace the other between two replays of a program.
//
//     struct RmsNorm { GLOBAL float* out; GLOBAL const float* in; uint32_t rows, columns; float epsilon; };
//     LOOM_ARGUMENT(rms_norm, RmsNorm, columns, 1, 1u << 20)     // read at run time, or fixed by Loom
//     LOOM_OPTION(rms_norm, unroll, 1, 1, 8)                     // fixed always: 1 in generic images
//     LOOM_KERNEL(rms_norm, RmsNorm, 256) {                      // entry point, argument block, work-items of a group
//         const uint32_t columns = ARGUMENT(rms_norm, columns);
//         for (uint32_t i = local_id_x(); i < columns; i += 256) ...
//     }
//
// LOOM_ARGUMENT  a uint32_t field of the argument block that Loom may fix. The generic image reads it; in a specialised
//                image it is a constant where the request gave one, and the field is still passed but not looked at.
//                Read it by ARGUMENT inside the kernel, never as arguments.field, and hand the value to helpers.
// LOOM_OPTION    a choice that is no input: a tile, a depth of unrolling. Read it by OPTION, anywhere after the
//                declaration. It is a constant to the optimiser, but not to the language: no template argument, no
//                array length. Size arrays for the largest value, and index them in loops with #pragma unroll. An
//                option called workgroup also replaces the work-items of a group.
// LOOM_KERNEL    the last number is exactly how many work-items a group has, x * y * z; it bounds registers. 1 to 1024.
// minimum, maximum: Loom refuses values outside, and the kernel may rely on them for fixed values only: what a generic
//                image reads at run time is the caller's to check.
// Constants that change how many groups must be launched belong to the image: the host takes them from there
// (hrx/kernels/kernel_set.h, hrx/loom/specialiser.h), where kernels, constants and images are found by name.
//
// Memory of a group whose size depends on an option: dynamic_lds(), whose bytes are given at the launch
// (hrx_dispatch::dynamic_lds_bytes). It begins after the LDS_ARRAYs and is aligned to 16 bytes.
//
// One bitcode serves all chips of a vendor: what only some have is chosen by target_generation(), and an instruction is
// named by declaring the intrinsic, since builtins would ask for a chip:
//     float8 wmma(half16, half16, float8) __asm("llvm.amdgcn.wmma.f32.16x16x16.f16.v8f32.v16f16");
// Never use permlanex16 or permlane64: LLVM 19 moves them into divergent code. tests/hrx-loom keeps an eye on that.
//
// Macros are used at global scope, not in a namespace. Without Loom (hrx_kernels of cmake/HrxKernels.cmake, which gives
// images straight from clang) arguments are read, options have their defaults, and registers are not bounded by the
// work-items of a group: good for a first test, not for timing.
#pragma once

#include "hrx/kernels/device.h"

#define CONSTANT __attribute__((address_space(4)))

// One declaration as Loom finds it in the bitcode, a global named loom.KIND.KERNEL[.CONSTANT].
// kernel: {work-items, bytes of the argument block, 0, 0}; argument: {offset in the block, 0, minimum, maximum};
// option: {0, default, minimum, maximum}.
struct LoomRecord {
    uint64_t values[4];
};

#if defined(HRX_LOOM)

// 0 to 2^32 - 1 when fixed, else all bits set. Loom gives them their values.
#define LOOM_VALUE(kernel, name) \
    extern "C" CONSTANT const uint64_t loom_value_##kernel##_##name __asm("loom.value." #kernel "." #name);
#define LOOM_RECORD(symbol, label, a, b, c, d)                                     \
    static CONSTANT const LoomRecord symbol __asm(label) __attribute__((used)) = { \
        {static_cast<uint64_t>(a), static_cast<uint64_t>(b), static_cast<uint64_t>(c), static_cast<uint64_t>(d)}};

#define LOOM_ARGUMENT(kernel, Arguments, name, minimum, maximum)                                             \
    static_assert(__is_same(decltype(Arguments::name), uint32_t), #name " must be a uint32_t of the block"); \
    static_assert((minimum) <= (maximum) && (maximum) <= 0xffffffffu, "the range of " #name);                \
    LOOM_RECORD(loom_argument_##kernel##_##name, "loom.argument." #kernel "." #name,                         \
                __builtin_offsetof(Arguments, name), 0, minimum, maximum)                                    \
    LOOM_VALUE(kernel, name)
#define LOOM_OPTION(kernel, name, standard, minimum, maximum)                                                   \
    static_assert((minimum) <= (standard) && (standard) <= (maximum) && (maximum) <= 0xffffffffu,               \
                  "the default and range of " #name);                                                           \
    LOOM_RECORD(loom_option_##kernel##_##name, "loom.option." #kernel "." #name, 0, standard, minimum, maximum) \
    LOOM_VALUE(kernel, name)
#define LOOM_KERNEL(kernel, Arguments, workgroup)                                                 \
    static_assert((workgroup) >= 1 && (workgroup) <= 1024, "work-items of " #kernel);             \
    LOOM_RECORD(loom_kernel_##kernel, "loom.kernel." #kernel, workgroup, sizeof(Arguments), 0, 0) \
    HRX_KERNEL(kernel, Arguments)

#define ARGUMENT(kernel, name) \
    (loom_value_##kernel##_##name <= 0xffffffffu ? static_cast<uint32_t>(loom_value_##kernel##_##name) : arguments.name)
#define OPTION(kernel, name) (static_cast<uint32_t>(loom_value_##kernel##_##name))

extern "C" CONSTANT const uint64_t loom_target_generation __asm("loom.target.generation");
// 11 or 12 on AMD (gfx11xx, gfx12xx), 80 or 90 on NVIDIA (sm_80, sm_90). A constant to the optimiser.
INLINE uint32_t target_generation() { return static_cast<uint32_t>(loom_target_generation); }

#else

#define LOOM_ARGUMENT(kernel, Arguments, name, minimum, maximum)                                             \
    static_assert(__is_same(decltype(Arguments::name), uint32_t), #name " must be a uint32_t of the block"); \
    static_assert((minimum) <= (maximum) && (maximum) <= 0xffffffffu, "the range of " #name);
#define LOOM_OPTION(kernel, name, standard, minimum, maximum)                                     \
    static_assert((minimum) <= (standard) && (standard) <= (maximum) && (maximum) <= 0xffffffffu, \
                  "the default and range of " #name);                                             \
    static constexpr uint32_t loom_option_##kernel##_##name = standard;
#define LOOM_KERNEL(kernel, Arguments, workgroup)                                     \
    static_assert((workgroup) >= 1 && (workgroup) <= 1024, "work-items of " #kernel); \
    HRX_KERNEL(kernel, Arguments)

#define ARGUMENT(kernel, name) (arguments.name)
#define OPTION(kernel, name) (loom_option_##kernel##_##name)
INLINE uint32_t target_generation() { return HRX_TARGET_GENERATION; }

#endif

extern "C" LDS uint8_t loom_dynamic_lds[] __attribute__((aligned(16)));
INLINE LDS uint8_t* dynamic_lds() { return loom_dynamic_lds; }
