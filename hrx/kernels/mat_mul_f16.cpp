// The product of f16 weights and f16 vectors.
#include "hrx/kernels/mat_mul_tile.h"

using namespace onebit::hrx::kernels;

#if defined(__NVPTX__)

namespace {

constexpr uint32_t tile_vectors = mat_mul_f16_f16_tile.vectors, tile_rows = mat_mul_f16_f16_tile.rows;
constexpr uint32_t threads = mat_mul_f16_f16_tile.threads;
constexpr uint32_t stages = 3, stage_columns = 64, line_bytes = 2 * stage_columns;
constexpr uint32_t stage_bytes = (tile_vectors + tile_rows) * line_bytes;
static_assert(stages * stage_bytes == mat_mul_f16_f16_lds(true));

// 16 bytes to LDS in the background, zeros when they are not there. Part p of line r lies at part p ^ r % 8 of the
// line, so that the eight lines that ldmatrix reads at once are in different banks.
INLINE void copy_ahead(uint32_t to, GLOBAL const float16* from, bool there) {
    const uint32_t bytes = there ? 16 : 0;
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(bytes) : "memory");
}
INLINE void end_group() { asm volatile("cp.async.commit_group;" ::: "memory"); }
template <uint32_t Groups>
INLINE void wait_for_groups() {
    asm volatile("cp.async.wait_group %0;" ::"n"(Groups) : "memory");
}

// Lines of one operand; count: how many there are.
struct Lines {
    GLOBAL const float16* first;
    uint32_t stride, count;
};

template <uint32_t count>
INLINE void copy_lines_ahead(const Lines& lines, uint32_t to, uint32_t column, uint32_t columns) {
#pragma unroll
    for (uint32_t i = 0; i < count * 8 / threads; ++i) {
        const uint32_t line = local_id_x() / 8 + i * (threads / 8), part = local_id_x() % 8;
        const bool there = line < lines.count && column + 8 * part < columns;
        GLOBAL const float16* from =
            there ? lines.first + uint64_t{line} * lines.stride + column + 8 * part : lines.first;
        copy_ahead(to + line * line_bytes + (part ^ line % 8) * 16, from, there);
    }
}

// 16 lines x 16 columns, from part 2 k on.
INLINE Fragment load_swizzled(uint32_t lines, uint32_t k) {
    const uint32_t part = 2 * k + lane_id() / 16;
    const uint32_t address = lines + lane_id() % 16 * line_bytes + (part ^ lane_id() % 8) * 16;
    Fragment f;
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(f.values[0]), "=r"(f.values[1]), "=r"(f.values[2]), "=r"(f.values[3])
                 : "r"(address)
                 : "memory");
    return f;
}

struct Fragments {
    Fragment vectors[4], rows[4];
};

// A wave computes 64 vectors x 64 rows: fragments 0 to 3 are of rows, 4 to 7 of vectors.
INLINE void load_fragment_of(uint32_t stage, uint32_t k, uint32_t i, Fragments& f) {
    const uint32_t vectors = stage + wave_id() % 2 * 64 * line_bytes;
    const uint32_t rows = stage + (tile_vectors + wave_id() / 2 * 64) * line_bytes;
    if (i < 4) {
        f.rows[i] = load_swizzled(rows + 16 * i * line_bytes, k);
    } else {
        f.vectors[i - 4] = load_swizzled(vectors + 16 * (i - 4) * line_bytes, k);
    }
}

INLINE void store_sums(const MatMul& a, GLOBAL float* out, const float8 (&sums)[4][4]) {
    const uint32_t first_vector = workgroup_id_y() * tile_vectors + wave_id() % 2 * 64 + lane_id() / 4;
    const uint32_t first_row = workgroup_id_x() * tile_rows + wave_id() / 2 * 64 + lane_id() % 4 * 2;
    const bool pairs = (a.out_stride[0] | a.out_stride[1] | a.out_stride[2]) % 2 == 0;
#pragma unroll
    for (uint32_t i = 0; i < 4 * 2 * 4 * 2; ++i) {
        const uint32_t m = i / 16, lower = i / 8 % 2, n = i / 2 % 4, right = i % 2;
        const uint32_t vector = first_vector + 16 * m + 8 * lower, row = first_row + 16 * n + 8 * right;
        if (vector >= a.vectors || row >= a.rows) continue;
        GLOBAL float* to = out + uint64_t{vector} * a.out_stride[0] + row;
        const float2 pair = {sums[m][n][4 * right + 2 * lower], sums[m][n][4 * right + 2 * lower + 1]};
        if (pairs && row + 1 < a.rows) {
            *reinterpret_cast<GLOBAL float2*>(to) = pair;
        } else {
            to[0] = pair.x;
            if (row + 1 < a.rows) to[1] = pair.y;
        }
    }
}

INLINE void mat_mul_ahead(const MatMul& a, uint32_t columns) {
    const Operands<float16> operands = find_operands<float16>(a, 2);
    const uint32_t first_vector = workgroup_id_y() * tile_vectors, first_row = workgroup_id_x() * tile_rows;
    const Lines vectors = {operands.in + uint64_t{first_vector} * a.in_stride[0], a.in_stride[0],
                           a.vectors - first_vector};
    const Lines rows = {
        reinterpret_cast<GLOBAL const float16*>(operands.weights) + uint64_t{first_row} * a.weight_stride[0],
        a.weight_stride[0], a.rows - first_row};
    const uint32_t lds = lds_address(dynamic_lds()), steps = divide_up(columns, stage_columns);
    const auto stage_of = [&](uint32_t step) __attribute__((always_inline)) {
        return lds + step % stages * stage_bytes;
    };
    const auto copy_vectors = [&](uint32_t step) __attribute__((always_inline)) {
        if (step < steps) copy_lines_ahead<tile_vectors>(vectors, stage_of(step), step * stage_columns, columns);
    };
    const auto copy_rows = [&](uint32_t step) __attribute__((always_inline)) {
        const uint32_t to = stage_of(step) + tile_vectors * line_bytes;
        if (step < steps) copy_lines_ahead<tile_rows>(rows, to, step * stage_columns, columns);
        end_group();
    };
    float8 sums[4][4] = {};
#pragma unroll
    for (uint32_t step = 0; step < stages - 1; ++step) {
        copy_vectors(step);
        copy_rows(step);
    }
    wait_for_groups<stages - 2>();
    barrier();
    constexpr uint32_t parts = stage_columns / 16;
    Fragments f[2];
#pragma unroll
    for (uint32_t i = 0; i < 8; ++i) load_fragment_of(stage_of(0), 0, i, f[0]);
    for (uint32_t step = 0; step < steps; ++step) {
#pragma unroll
        for (uint32_t k = 0; k < parts; ++k) {
            // the first part of the next step is read while the last of this one is multiplied
            if (k + 1 == parts) {
                wait_for_groups<stages - 2>();
                barrier();
            }
            const uint32_t next = stage_of(step + (k + 1) / parts);
            // into the stage before this one, which every wave has left
            if (k == 0) copy_vectors(step + stages - 1);
            if (k == 1) copy_rows(step + stages - 1);
                // one read for two products: reads in a row would fill the queue to LDS, and the products wait behind
                // them
#pragma unroll
            for (uint32_t i = 0; i < 16; ++i) {
                if (i < 8) load_fragment_of(next, (k + 1) % parts, i, f[(k + 1) % 2]);
                const uint32_t m = i / 4, n = m % 2 ? 3 - i % 4 : i % 4;
                sums[m][n] = multiply(f[k % 2].vectors[m], f[k % 2].rows[n], sums[m][n]);
            }
        }
    }
    store_sums(a, operands.out, sums);
}

}  // namespace

#endif

LOOM_ARGUMENT(mat_mul_f16_f16, MatMul, columns, 1, 1u << 24)
LOOM_KERNEL(mat_mul_f16_f16, MatMul, mat_mul_f16_f16_tile.threads) {
    const uint32_t columns = ARGUMENT(mat_mul_f16_f16, columns);
#if defined(__NVPTX__)
    const uint32_t uneven = (columns | arguments.in_stride[0] | arguments.in_stride[1] | arguments.in_stride[2] |
                             arguments.weight_stride[0] | arguments.weight_stride[1] | arguments.weight_stride[2]) %
                            8;
    if (uneven == 0) return mat_mul_ahead(arguments, columns);
#endif
    mat_mul<Half, float16, 128, 256, 256>(arguments, columns, reinterpret_cast<LDS float16*>(dynamic_lds()));
}
