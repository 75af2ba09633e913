// Kernels that the tests and the benchmark run in the emulator: freestanding C++ for gfx1151, group sizes as launched there.
typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef _Float16 f16;
typedef f16 half16 __attribute__((ext_vector_type(16)));
typedef float float4 __attribute__((ext_vector_type(4)));
typedef float float8 __attribute__((ext_vector_type(8)));
#define GLOBAL __attribute__((address_space(1)))
#define SHARED __attribute__((address_space(3)))
#define KERNEL extern "C" __attribute__((amdgpu_kernel, visibility("protected")))
#define INLINE static inline __attribute__((always_inline))

INLINE int local_id() { return static_cast<int>(__builtin_amdgcn_workitem_id_x()); }
INLINE int group_id() { return static_cast<int>(__builtin_amdgcn_workgroup_id_x()); }
INLINE void barrier() {
    __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup");
    __builtin_amdgcn_s_barrier();
    __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup");
}

// Sum over a wave: rows by DPP, then both rows by lane reads.
template <int Mask>
INLINE float add_xor(float v) {
    const int bits = __builtin_bit_cast(int, v);
    return v + __builtin_bit_cast(float, __builtin_amdgcn_update_dpp(bits, bits, 0x160 + Mask, 0xf, 0xf, true));
}
INLINE float wave_sum(float v) {
    v = add_xor<8>(add_xor<4>(add_xor<2>(add_xor<1>(v))));
    const int bits = __builtin_bit_cast(int, v);
    return __builtin_bit_cast(float, __builtin_amdgcn_readlane(bits, 0)) +
           __builtin_bit_cast(float, __builtin_amdgcn_readlane(bits, 16));
}

KERNEL void vec_add(GLOBAL float* c, GLOBAL const float* a, GLOBAL const float* b, int n) {
    const int i = group_id() * 256 + local_id();
    if (i < n) c[i] = a[i] + b[i];
}

// One group a row; the sum of squares crosses waves through LDS.
static SHARED float partial[8] __attribute__((loader_uninitialized));
KERNEL void rms_norm(GLOBAL float* y, GLOBAL const float* x, GLOBAL const float* w, int n, float epsilon) {
    const int t = local_id();
    x += static_cast<u64>(group_id()) * n;
    y += static_cast<u64>(group_id()) * n;
    float sum = 0;
    for (int i = t; i < n; i += 256) sum += x[i] * x[i];
    sum = wave_sum(sum);
    if ((t & 31) == 0) partial[t >> 5] = sum;
    barrier();
    sum = 0;
    for (int i = 0; i < 8; ++i) sum += partial[i];
    const float scale = __builtin_amdgcn_rsqf(sum / static_cast<float>(n) + epsilon);
    for (int i = t; i < n; i += 256) y[i] = x[i] * scale * w[i];
}

// y = W x with W in blocks of 32 four-bit values and a scale (Q4_0); a wave a row.
struct Block {
    f16 scale;
    u8 values[16];
};
KERNEL void matvec_q4(GLOBAL float* y, GLOBAL const Block* weights, GLOBAL const float* x, int columns, int rows) {
    const int lane = local_id() & 31;
    const int row = group_id() * 4 + (local_id() >> 5);
    if (row >= rows) return;
    const int blocks = columns / 32;
    GLOBAL const Block* b = weights + static_cast<u64>(row) * blocks;
    float sum = 0;
    for (int i = lane; i < blocks; i += 32) {
        GLOBAL const u16* q = reinterpret_cast<GLOBAL const u16*>(b[i].values);
        GLOBAL const float4* v = reinterpret_cast<GLOBAL const float4*>(x + i * 32);
        float part = 0;
#pragma unroll
        for (int j = 0; j < 4; ++j) {
            const u32 word = q[2 * j] | static_cast<u32>(q[2 * j + 1]) << 16;
            const float4 low = v[j];
            const float4 high = v[j + 4];
#pragma unroll
            for (int k = 0; k < 4; ++k) {
                part += static_cast<float>(static_cast<int>(word >> 8 * k & 15) - 8) * low[k];
                part += static_cast<float>(static_cast<int>(word >> (8 * k + 4) & 15) - 8) * high[k];
            }
        }
        sum += part * static_cast<float>(b[i].scale);
    }
    sum = wave_sum(sum);
    if (lane == 0) y[row] = sum;
}

// C[16, 16] = A[16, K] B[16, K]^T, one wave.
KERNEL void matmul_f16(GLOBAL float* c, GLOBAL const f16* a, GLOBAL const f16* b, int k) {
    const int lane = local_id();
    float8 sum = 0.0f;
    for (int at = 0; at < k; at += 16) {
        const half16 x = *reinterpret_cast<GLOBAL const half16*>(a + (lane & 15) * k + at);
        const half16 y = *reinterpret_cast<GLOBAL const half16*>(b + (lane & 15) * k + at);
        sum = __builtin_amdgcn_wmma_f32_16x16x16_f16_w32(x, y, sum);
    }
    for (int r = 0; r < 8; ++r) c[(2 * r + (lane >> 4)) * 16 + (lane & 15)] = sum[r];
}

// A private array with indices that are known only here lives in scratch.
KERNEL void histogram(GLOBAL u32* counts, GLOBAL const u8* values, int n) {
    u32 mine[64];
    for (int i = 0; i < 64; ++i) mine[i] = 0;
    for (int i = local_id(); i < n; i += 64) mine[values[i] & 63] += 1;
    for (int i = 0; i < 64; ++i)
        if (mine[i] != 0) __atomic_fetch_add(counts + i, mine[i], __ATOMIC_RELAXED);
}

// Division, 64-bit integers, 16-bit loads and a three-dimensional grid.
KERNEL
void three_dimensions(GLOBAL float* out, GLOBAL const short* in, int width, int height) {
    const int x = static_cast<int>(__builtin_amdgcn_workgroup_id_x()) * 8 + static_cast<int>(__builtin_amdgcn_workitem_id_x());
    const int y = static_cast<int>(__builtin_amdgcn_workgroup_id_y()) * 4 + static_cast<int>(__builtin_amdgcn_workitem_id_y());
    const int z = static_cast<int>(__builtin_amdgcn_workgroup_id_z()) * 2 + static_cast<int>(__builtin_amdgcn_workitem_id_z());
    const u64 index = (static_cast<u64>(z) * height + y) * width + x;
    out[index] = static_cast<float>(in[index]) / static_cast<float>(x + 2 * y + 3 * z + 1);
}

// Reads one element behind the end.
KERNEL void reads_behind(GLOBAL float* out, GLOBAL const float* in, int n) {
    out[local_id()] = in[n + local_id()];
}

// Never ends.
KERNEL void endless(GLOBAL volatile u32* flag) {
    while (*flag == 0) {
    }
}
