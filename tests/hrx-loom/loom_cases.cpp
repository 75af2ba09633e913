// Kernels whose generic and specialised images the tests compare, one for each part of hrx/kernels/specialise.h.
// Blocks: cases.h.
#include "hrx/kernels/specialise.h"

struct Polynomial {
    GLOBAL uint32_t* out;
    GLOBAL const uint32_t* in;
    uint32_t count, scale, offset;
};
// An argument that may be fixed or not, one that decides about a branch, one that stays.
LOOM_ARGUMENT(case_polynomial, Polynomial, count, 0, 0xffffffffu)
LOOM_ARGUMENT(case_polynomial, Polynomial, scale, 1, 1000)
LOOM_KERNEL(case_polynomial, Polynomial, 64) {
    const uint32_t i = workgroup_id_x() * 64 + local_id_x(), scale = ARGUMENT(case_polynomial, scale);
    if (i >= ARGUMENT(case_polynomial, count)) return;
    arguments.out[i] = scale == 1 ? arguments.in[i] + arguments.offset : arguments.in[i] * scale + arguments.offset;
}

struct Windows {
    GLOBAL uint32_t* out;
    GLOBAL const uint32_t* in;
};
constexpr uint32_t most_terms = 8;
// Options: a depth of unrolling with an array sized for the largest, and the size of a group. Memory of a group whose
// size comes with the launch: work-items * terms words.
LOOM_OPTION(case_windows, terms, 2, 1, most_terms)
LOOM_OPTION(case_windows, workgroup, 64, 32, 256)
LOOM_KERNEL(case_windows, Windows, 64) {
    const uint32_t size = OPTION(case_windows, workgroup), i = workgroup_id_x() * size + local_id_x();
    LDS uint32_t* shared = reinterpret_cast<LDS uint32_t*>(dynamic_lds());
    uint32_t terms[most_terms];
#pragma unroll
    for (uint32_t k = 0; k < OPTION(case_windows, terms); ++k) terms[k] = arguments.in[i] * (k + 1);
#pragma unroll
    for (uint32_t k = 0; k < OPTION(case_windows, terms); ++k) shared[k * size + local_id_x()] = terms[k];
    barrier();
    uint32_t sum = 0;
#pragma unroll
    for (uint32_t k = 0; k < OPTION(case_windows, terms); ++k) sum += shared[k * size + size - 1 - local_id_x()];
    arguments.out[i] = sum;
}

struct Generation {
    GLOBAL uint32_t* out;
};
LOOM_KERNEL(case_generation, Generation, 32) {
    if (local_id_x() == 0) arguments.out[0] = target_generation();
}

struct Greedy {
    GLOBAL uint32_t* out;
};
// With the second value it wants 256 KiB of memory of a group, which no chip has.
LOOM_OPTION(case_greedy, words, 1, 1, 2)
LDS_ARRAY(uint32_t, greedy_words, 1 << 16);
LOOM_KERNEL(case_greedy, Greedy, 64) {
    if (OPTION(case_greedy, words) == 1) {
        arguments.out[local_id_x()] = 1;
        return;
    }
    greedy_words[arguments.out[local_id_x()] & 0xffffu] = local_id_x();
    barrier();
    arguments.out[local_id_x()] = greedy_words[local_id_x() * 1024];
}

struct WaveSum {
    GLOBAL float* out;
    GLOBAL const float* in;
};
#if defined(__AMDGCN__)
int32_t trap_update_dpp(int32_t old, int32_t source, int32_t control, int32_t row_mask, int32_t bank_mask,
                        bool bound) __asm("llvm.amdgcn.update.dpp.i32");
int32_t trap_permlanex16(int32_t old, int32_t source, int32_t low, int32_t high, bool fetch,
                         bool bound) __asm("llvm.amdgcn.permlanex16.i32");
template <int mask>
INLINE float trap_row(float value) {
    const int32_t bits = __builtin_bit_cast(int32_t, value);
    return value + __builtin_bit_cast(float, trap_update_dpp(bits, bits, 0x160 + mask, 0xf, 0xf, true));
}
INLINE float trap_rows(float value) { return trap_row<8>(trap_row<4>(trap_row<2>(trap_row<1>(value)))); }
// LLVM 19 does not know that all lanes must take part in permlanex16, and moves it to where the sum is used: into the
// branch of lane 0.
LOOM_KERNEL(case_moved_sum, WaveSum, 32) {
    const float sum = trap_rows(arguments.in[local_id_x()]);
    const int32_t bits = __builtin_bit_cast(int32_t, sum);
    const int32_t other = trap_permlanex16(bits, bits, 0x76543210, static_cast<int32_t>(0xfedcba98), false, false);
    if (local_id_x() == 0) arguments.out[0] = sum + __builtin_bit_cast(float, other);
}
LOOM_KERNEL(case_right_sum, WaveSum, 32) {
    const int32_t bits = __builtin_bit_cast(int32_t, trap_rows(arguments.in[local_id_x()]));
    const float low = __builtin_bit_cast(float, __builtin_amdgcn_readlane(bits, 0));
    const float high = __builtin_bit_cast(float, __builtin_amdgcn_readlane(bits, 16));
    if (local_id_x() == 0) arguments.out[0] = low + high;
}
#endif

// With use=1 it asks for a sine, for which LLVM has no instruction on NVIDIA and would end the process.
struct Foreign {
    GLOBAL uint32_t* out;
};
#if defined(__NVPTX__)
float foreign_sin(float) __asm("llvm.sin.f32");
LOOM_OPTION(case_foreign, use, 0, 0, 1)
LOOM_KERNEL(case_foreign, Foreign, 32) {
    float value = static_cast<float>(arguments.out[0]);
    if (OPTION(case_foreign, use) == 1) value = foreign_sin(value);
    arguments.out[0] = static_cast<uint32_t>(value);
}
#endif
