// Kernels of the conformance suite (tests/hrx-cts). Workgroups are of 64 where not said otherwise.
#include "hrx/kernels/device.h"

namespace {
constexpr uint32_t workgroup = 64;
INLINE uint32_t global_id() { return workgroup_id_x() * workgroup + local_id_x(); }
}  // namespace

struct Empty {
    uint32_t unused;
};
HRX_KERNEL(cts_empty, Empty) { (void)arguments; }

struct Index {
    GLOBAL uint32_t* out;
    uint32_t count, scale, offset;
};
HRX_KERNEL(cts_index, Index) {
    const uint32_t i = global_id();
    if (i < arguments.count) arguments.out[i] = i * arguments.scale + arguments.offset;
}

struct Add {
    GLOBAL uint32_t* out;
    GLOBAL const uint32_t* left;
    GLOBAL const uint32_t* right;
    uint32_t count;
};
HRX_KERNEL(cts_add, Add) {
    const uint32_t i = global_id();
    if (i < arguments.count) arguments.out[i] = arguments.left[i] + arguments.right[i];
}

// x = 3 x + constant: the order of two of them shows in the result.
struct Step {
    GLOBAL uint32_t* data;
    uint32_t count, constant;
};
HRX_KERNEL(cts_step, Step) {
    const uint32_t i = global_id();
    if (i < arguments.count) arguments.data[i] = arguments.data[i] * 3 + arguments.constant;
}

// Each workgroup turns its 64 words round through LDS.
struct Reverse {
    GLOBAL uint32_t* out;
    GLOBAL const uint32_t* in;
};
LDS_ARRAY(uint32_t, reverse_words, workgroup);
HRX_KERNEL(cts_reverse, Reverse) {
    reverse_words[local_id_x()] = arguments.in[global_id()];
    barrier();
    arguments.out[global_id()] = reverse_words[workgroup - 1 - local_id_x()];
}

// The place of a work-item in a grid of three dimensions; the constants say how large all is.
struct Grid {
    GLOBAL uint32_t* out;
    uint32_t threads_x, threads_y, threads_z, groups_x, groups_y;
};
HRX_KERNEL(cts_grid, Grid) {
    const uint32_t x = workgroup_id_x() * arguments.threads_x + local_id_x();
    const uint32_t y = workgroup_id_y() * arguments.threads_y + local_id_y();
    const uint32_t z = workgroup_id_z() * arguments.threads_z + local_id_z();
    const uint32_t width = arguments.threads_x * arguments.groups_x;
    const uint32_t height = arguments.threads_y * arguments.groups_y;
    arguments.out[(z * height + y) * width + x] = x + y * 1000 + z * 1000000;
}

struct Count {
    GLOBAL uint32_t* counter;
    uint32_t amount;
};
HRX_KERNEL(cts_count, Count) { atomic_add(arguments.counter, arguments.amount); }

// Keeps one workgroup busy: rounds dependent steps, the result depends on all of them.
struct Busy {
    GLOBAL uint32_t* out;
    uint32_t rounds, seed;
};
HRX_KERNEL(cts_busy, Busy) {
    uint32_t value = arguments.seed + local_id_x();
    for (uint32_t i = 0; i < arguments.rounds; ++i) value = value * 1664525u + 1013904223u;
    arguments.out[global_id()] = value;
}

// Words of constants, to see that none is lost: out[i] = words[i].
struct Constants {
    GLOBAL uint32_t* out;
    uint32_t words[61];
};
HRX_KERNEL(cts_constants, Constants) {
    if (local_id_x() != 0) return;
#pragma unroll
    for (uint32_t i = 0; i < 61; ++i) arguments.out[i] = arguments.words[i];
}

// Eight bindings: out[i] = sum over k of (k + 1) * in_k[i].
struct Gather {
    GLOBAL uint32_t* out;
    GLOBAL const uint32_t* in[7];
    uint32_t count;
};
HRX_KERNEL(cts_gather, Gather) {
    const uint32_t i = global_id();
    if (i >= arguments.count) return;
    uint32_t sum = 0;
#pragma unroll
    for (uint32_t k = 0; k < 7; ++k) sum += (k + 1) * arguments.in[k][i];
    arguments.out[i] = sum;
}

// Writes at a distance of bytes, which may lie outside of all memory.
struct Poke {
    GLOBAL uint8_t* base;
    uint32_t low, high;
};
HRX_KERNEL(cts_poke, Poke) {
    if (local_id_x() != 0) return;
    const uint64_t distance = uint64_t{arguments.high} << 32 | arguments.low;
    *reinterpret_cast<GLOBAL uint32_t*>(arguments.base + distance) = 1;
}
