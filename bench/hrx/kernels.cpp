// Times each kernel family on a device and checks a sample of its results: usage: hrx-kernel-bench DRIVER RESULT.json
// [small] A figure is the median of 9 submissions after 2 that do not count, by the device's clock, of a program that
// runs the kernel often with a barrier after each. "small" shrinks everything, to try the program on an emulated
// device.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "bench/hrx/kernel_bench.h"
#include "hrx/kernels/copy.h"
#include "hrx/kernels/elementwise.h"
#include "hrx/kernels/flash_attention.h"
#include "hrx/kernels/glu.h"
#include "hrx/kernels/mat_mul.h"
#include "hrx/kernels/mat_vec.h"
#include "hrx/kernels/mat_vec_int8.h"
#include "hrx/kernels/rms_norm.h"
#include "hrx/kernels/rope.h"
#include "hrx/kernels/rows.h"
#include "hrx/kernels/softmax.h"
#include "tests/hrx-kernels/reference_quants.h"
#include "tests/hrx-kernels/tolerances.h"

namespace {

using namespace onebit;
using namespace onebit::hrx;
using namespace onebit::hrx::kernels;
using namespace onebit::hrx::kernels::bench;
using onebit::hrx::kernels::test::from_half;
using onebit::hrx::kernels::test::Random;
using onebit::hrx::kernels::test::to_halves;
using onebit::hrx::kernels::test::tolerance;
using onebit::hrx::kernels::test::Weight;

std::vector<size_t> sample_places(size_t count, size_t wanted = 48) {
    Random random(99);
    std::vector<size_t> places = {0, count - 1};
    while (places.size() < wanted) places.push_back(random.below(static_cast<uint32_t>(count)));
    return places;
}

void elementwise(Bench& bench) {
    const uint32_t count = bench.scaled(64u << 20, 5000);
    const auto left = Random(1).values(count), right = Random(2).values(count);
    const Buffer a = bench.upload(left), b = bench.upload(right), out = bench.memory(uint64_t{count} * 4);
    const auto samples = [&](const std::function<double(size_t)>& want) {
        std::vector<Sample> list;
        for (const size_t at : sample_places(count)) list.push_back({at, want(at), 1e-30});
        return list;
    };
    const double bytes = 4.0 * count;
    bench.measure({"copy_flat_b32_b32",
                   {call("copy_flat_b32_b32", FlatCopy{{}, {}, count}, {bind(out), bind(a)})},
                   2 * bytes,
                   0,
                   out,
                   samples([&](size_t i) { return left[i]; })});
    const Call add = call("add_flat_f32", FlatBinary{{}, {}, {}, count}, {bind(out), bind(a), bind(b)});
    bench.measure({"add_flat_f32", {add}, 3 * bytes, 0, out, samples([&](size_t i) {
                       return static_cast<double>(left[i] + right[i]);
                   })});
    const uint32_t columns = bench.scaled(8192, 500), rows = count / columns;
    auto glu = samples([&](size_t i) { return left[i] / (1 + std::exp(-double{left[i]})) * right[i]; });
    for (Sample& sample : glu) sample.allowed = tolerance("swiglu f32").value * std::fabs(sample.want);
    bench.measure({"swiglu_f32",
                   {call("swiglu_f32", SwiGlu{{}, {}, {}, columns, rows, columns, columns, columns},
                         {bind(out), bind(a), bind(b)})},
                   3 * bytes,
                   0,
                   out,
                   glu});
}

void rows_of_floats(Bench& bench) {
    const uint32_t columns = bench.scaled(4096, 300), rows = bench.scaled(8192, 6);
    const auto in = Random(3).values(size_t{columns} * rows), weight = Random(4).values(columns, 0.5f, 2);
    const Buffer from = bench.upload(in), weights = bench.upload(weight), out = bench.memory(in.size() * 4);
    const double bytes = 8.0 * static_cast<double>(in.size());
    RmsNorm norm{};
    norm.columns = columns;
    norm.ne1 = norm.rows = rows;
    norm.ne2 = 1;
    norm.in_stride[0] = norm.out_stride[0] = columns;
    norm.epsilon = 1e-5f;
    Softmax softmax{};
    softmax.columns = columns;
    softmax.ne1 = softmax.rows = rows;
    softmax.ne2 = softmax.mask_ne2 = softmax.mask_ne3 = 1;
    softmax.scale = 1;
    std::vector<Sample> normed, weighted;
    for (const size_t at : sample_places(in.size(), 16)) {
        const float* row = in.data() + at / columns * columns;
        double squares = 0, sum = 0;
        for (uint32_t i = 0; i < columns; ++i) {
            squares += double{row[i]} * row[i];
            sum += std::exp(row[i]);
        }
        const double value = in[at] / std::sqrt(squares / columns + 1e-5f) * weight[at % columns];
        normed.push_back({at, value, tolerance("rms_norm").value * std::fabs(value)});
        weighted.push_back({at, std::exp(in[at]) / sum, tolerance("softmax").value * std::exp(in[at]) / sum});
    }
    const std::vector<hrx_binding> bindings = {bind(out), bind(from), bind(weights)};
    bench.measure({"rms_norm_mul_f32", {call("rms_norm_mul_f32", norm, bindings)}, bytes, 0, out, normed});
    bench.measure({"softmax_f32", {call("softmax_f32", softmax, bindings)}, bytes, 0, out, weighted});

    Rope rope{};
    rope.head_size = rope.rotated = bench.scaled(128, 60);
    rope.heads = columns / rope.head_size;
    rope.tokens = rows;
    rope.sequences = 1;
    rope.in_stride[0] = rope.out_stride[0] = rope.head_size;
    rope.in_stride[1] = rope.out_stride[1] = columns;
    rope.base_log2 = 13.28771238f;
    rope.frequency_scale = rope.magnitude = 1;
    std::vector<int32_t> positions(rows);
    for (uint32_t i = 0; i < rows; ++i) positions[i] = static_cast<int32_t>(i);
    std::vector<Sample> turned;
    for (const size_t at : sample_places(in.size())) {
        const uint32_t half = rope.head_size / 2, within = static_cast<uint32_t>(at % rope.head_size);
        const uint32_t pair = within % half;
        const double angle =
            static_cast<double>(at / columns) * std::exp2(-double{rope.base_log2} * 2 * pair / rope.rotated);
        const double x = in[at - within + pair], y = in[at - within + pair + half];
        const double want =
            within < half ? x * std::cos(angle) - y * std::sin(angle) : x * std::sin(angle) + y * std::cos(angle);
        turned.push_back({at, want, tolerance("rope f32").value * std::hypot(x, y) * (4 + angle)});
    }
    bench.measure({"rope_neox_f32",
                   {call("rope_neox_f32", rope, {bind(out), bind(from), bind(bench.upload(positions)), bind(from)})},
                   bytes,
                   0,
                   out,
                   turned});
}

// Weights of a matrix that a type's kernels read, and their values.
struct Matrix {
    std::string type;
    uint32_t columns, rows, units;
    std::vector<uint8_t> bytes;
    std::vector<Weight> row(uint32_t index) const {
        const size_t size = bytes.size() / rows;
        const std::vector<uint8_t> line(bytes.begin() + static_cast<std::ptrdiff_t>(index * size),
                                        bytes.begin() + static_cast<std::ptrdiff_t>((index + 1) * size));
        if (type != "f16") return test::decode(test::format(type), line);
        std::vector<Weight> weights;
        for (size_t i = 0; i < line.size(); i += 2) {
            const double value = from_half(static_cast<uint16_t>(line[i] | line[i + 1] << 8));
            weights.push_back({value, std::fabs(value)});
        }
        return weights;
    }
};

Matrix make_matrix(const std::string& type, uint32_t columns, uint32_t rows) {
    Matrix matrix{type, columns, rows, columns, {}};
    Random random(5);
    if (type == "f16") {
        const auto halves = to_halves(random.values(size_t{columns} * rows));
        const auto* from = reinterpret_cast<const uint8_t*>(halves.data());
        matrix.bytes.assign(from, from + halves.size() * 2);
    } else {
        const test::Format& format = test::format(type);
        matrix.units = columns / format.block;
        matrix.bytes = test::random_blocks(format, size_t{matrix.units} * rows, random);
    }
    return matrix;
}

std::vector<Sample> product_samples(const Matrix& matrix, const std::vector<float>& in, uint32_t vectors,
                                    double allowed) {
    std::vector<Sample> samples;
    for (const size_t at : sample_places(size_t{matrix.rows} * vectors)) {
        const auto weights = matrix.row(static_cast<uint32_t>(at % matrix.rows));
        double sum = 0, scale = 0;
        for (uint32_t k = 0; k < matrix.columns; ++k) {
            const double x = in[at / matrix.rows * matrix.columns + k];
            sum += weights[k].value * x;
            scale += weights[k].magnitude * std::fabs(x);
        }
        samples.push_back({at, sum, allowed * scale});
    }
    return samples;
}

template <typename Block>
Block product(const Matrix& matrix, uint32_t vectors) {
    Block block{};
    block.columns = matrix.columns;
    block.rows = matrix.rows;
    block.vectors = vectors;
    block.weight_ne2 = block.weight_ne3 = block.in_ne2 = block.in_ne3 = 1;
    block.weight_stride[0] = matrix.units;
    block.in_stride[0] = matrix.columns;
    block.out_stride[0] = matrix.rows;
    return block;
}

// 24 copies of the weights, read in turn, so that none is in a cache.
void mat_vec(Bench& bench, const std::string& type, uint32_t columns, uint32_t rows) {
    const Matrix matrix = make_matrix(type, columns, rows);
    const uint32_t copies = bench.small ? 2 : 24;
    const auto in = Random(6).values(columns);
    const Buffer weights = bench.upload(matrix.bytes, copies), from = bench.upload(in);
    const Buffer out = bench.memory(uint64_t{rows} * 4);
    const auto block = product<MatVec>(matrix, 1);
    std::vector<Call> calls;
    for (uint32_t i = 0; i < copies; ++i) {
        calls.push_back(
            call("mat_vec_" + type, block, {bind(out), bind(weights, uint64_t{i} * matrix.bytes.size()), bind(from)}));
    }
    const std::string name = "mat_vec_" + type + " " + std::to_string(rows) + " x " + std::to_string(columns);
    const auto samples = product_samples(matrix, in, 1, tolerance("mat_vec").value);
    bench.measure({name, calls, static_cast<double>(matrix.bytes.size()), 0, out, samples});
    bench.measure({name + ", no barriers", calls, static_cast<double>(matrix.bytes.size()), 0, out, samples, false});
}

// The same with an 8-bit vector, quantised on the device before.
void mat_vec_int8(Bench& bench, const std::string& type, uint32_t columns, uint32_t rows) {
    const Matrix matrix = make_matrix(type, columns, rows);
    const uint32_t copies = bench.small ? 2 : 24;
    auto in = Random(6).values(columns);
    const Buffer weights = bench.upload(matrix.bytes, copies), from = bench.upload(in);
    const Buffer quantised = bench.memory(int8_vector_bytes(columns)), out = bench.memory(uint64_t{rows} * 4);
    QuantiseInt8 quantise{};
    quantise.columns = columns;
    quantise.vectors = quantise.ne2 = quantise.ne3 = 1;
    quantise.in_stride[0] = columns;
    const std::string sizes = " " + std::to_string(rows) + " x " + std::to_string(columns);
    bench.measure({"quantise_int8_f32 " + std::to_string(columns),
                   {call("quantise_int8_f32", quantise, {bind(quantised), bind(from)})},
                   5.25 * columns,
                   0,
                   quantised,
                   {}});
    const auto bytes = must(quantised.read<uint8_t>(int8_vector_bytes(columns)));
    for (uint32_t i = 0; i < columns; ++i) {
        float scale = 0;
        std::memcpy(&scale, bytes.data() + columns + i / 32 * 8, 4);
        in[i] = scale * static_cast<int8_t>(bytes[i]);
    }
    MatVecInt8 block{};
    block.columns = columns;
    block.rows = rows;
    block.vectors = block.weight_ne2 = block.weight_ne3 = block.in_ne2 = block.in_ne3 = 1;
    block.weight_stride[0] = matrix.units;
    std::vector<Call> calls;
    for (uint32_t i = 0; i < copies; ++i) {
        calls.push_back(call("mat_vec_int8_" + type, block,
                             {bind(out), bind(weights, uint64_t{i} * matrix.bytes.size()), bind(quantised)}));
    }
    const auto samples = product_samples(matrix, in, 1, tolerance("mat_vec_int8").value);
    const auto weight_bytes = static_cast<double>(matrix.bytes.size());
    bench.measure({"mat_vec_int8_" + type + sizes, calls, weight_bytes, 0, out, samples});
    bench.measure({"mat_vec_int8_" + type + sizes + ", no barriers", calls, weight_bytes, 0, out, samples, false});
}

void mat_mul(Bench& bench, const std::string& type, uint32_t columns, uint32_t rows, uint32_t vectors) {
    const Matrix matrix = make_matrix(type, columns, rows);
    auto in = Random(7).values(size_t{columns} * vectors);
    const auto halves = to_halves(in);
    for (size_t i = 0; i < in.size(); ++i) in[i] = static_cast<float>(from_half(halves[i]));
    const Buffer weights = bench.upload(matrix.bytes), from = bench.upload(in), from_halves = bench.upload(halves);
    const Buffer out = bench.memory(uint64_t{rows} * vectors * 4);
    const auto block = product<MatMul>(matrix, vectors);
    const auto samples = product_samples(matrix, in, vectors, tolerance("mat_mul").value);
    const double flop = 2.0 * columns * rows * vectors;
    const std::string sizes =
        " " + std::to_string(vectors) + " x " + std::to_string(rows) + " x " + std::to_string(columns);
    if (type == "f16") {
        const uint32_t lds = mat_mul_f16_f16_lds(std::string(bench.info().architecture).starts_with("sm_"));
        bench.measure({"mat_mul_f16_f16" + sizes,
                       {call("mat_mul_f16_f16", block, launch(block, mat_mul_f16_f16_tile),
                             {bind(out), bind(weights), bind(from_halves)}, lds)},
                       0,
                       flop,
                       out,
                       samples});
    }
    for (const bool wide : {false, true}) {
        const std::string kernel = (wide ? "mat_mul_wide_" : "mat_mul_") + type;
        bench.measure({kernel + sizes,
                       {call(kernel, block, launch(block, wide ? mat_mul_wide_tile : mat_mul_tile),
                             {bind(out), bind(weights), bind(from)})},
                       0,
                       flop,
                       out,
                       samples});
    }
}

void attention(Bench& bench, uint32_t tokens, uint32_t keys, uint32_t splits) {
    const uint32_t size = 128, heads = bench.scaled(32, 4), kv_heads = bench.scaled(8, 2);
    const auto query = Random(8).values(size_t{size} * heads * tokens);
    const auto key = to_halves(Random(9).values(size_t{size} * kv_heads * keys));
    const auto value = to_halves(Random(10).values(size_t{size} * kv_heads * keys));
    FlashAttention block{};
    block.tokens = tokens;
    block.heads = heads;
    block.keys = keys;
    block.kv_heads = kv_heads;
    block.sequences = 1;
    block.splits = splits;
    block.query_stride[0] = block.out_stride[0] = size * heads;
    block.query_stride[1] = block.out_stride[1] = size;
    block.key_stride[0] = block.value_stride[0] = size * kv_heads;
    block.key_stride[1] = block.value_stride[1] = size;
    block.scale = 1 / std::sqrt(static_cast<float>(size));
    std::vector<Sample> samples;
    for (const size_t at : sample_places(query.size(), 12)) {
        const size_t row = at / size, head = row % heads, shared = head / (heads / kv_heads);
        double sum = 0, weighted = 0;
        for (uint32_t k = 0; k < keys; ++k) {
            double dot = 0;
            const size_t from = (size_t{k} * kv_heads + shared) * size;
            for (uint32_t d = 0; d < size; ++d) dot += query[row * size + d] * from_half(key[from + d]);
            const double weight = std::exp(dot * block.scale);
            sum += weight;
            weighted += weight * from_half(value[from + at % size]);
        }
        samples.push_back({at, weighted / sum, tolerance("flash_attention").value * 2});
    }
    const Buffer q = bench.upload(query), k = bench.upload(key), v = bench.upload(value);
    const Buffer out = bench.memory(query.size() * 4);
    const std::string sizes = " " + std::to_string(tokens) + " tokens, " + std::to_string(keys) + " keys";
    if (splits == 0) {
        bench.measure({"flash_attention_d128" + sizes,
                       {call("flash_attention_d128", block, launch_flash_attention(block, size),
                             {bind(out), bind(q), bind(k), bind(v), bind(q)})},
                       0,
                       4.0 * tokens * keys * size * heads,
                       out,
                       samples});
        return;
    }
    const Buffer partial = bench.memory(flash_decode_partial_floats(block, size) * 4);
    FlashCombine combine{};
    combine.head_size = size;
    combine.tokens = tokens;
    combine.heads = heads;
    combine.sequences = 1;
    combine.splits = splits;
    combine.out_stride[0] = size * heads;
    combine.out_stride[1] = size;
    // the check needs both steps: run the first once before
    bench.measure({"flash_decode_d128" + sizes + ", " + std::to_string(splits) + " splits",
                   {call("flash_decode_d128", block, launch_flash_decode(block),
                         {bind(partial), bind(q), bind(k), bind(v), bind(q)})},
                   4.0 * keys * size * kv_heads,
                   0,
                   partial,
                   {}});
    bench.measure({"flash_combine" + sizes,
                   {call("flash_combine", combine, {bind(out), bind(partial)})},
                   static_cast<double>(partial.size()),
                   0,
                   out,
                   samples});
}

int run(const std::string& driver, const std::string& output, bool small) {
    Bench bench(driver, small);
    elementwise(bench);
    rows_of_floats(bench);
    const uint32_t little = 256;
    mat_vec(bench, "q4_k", bench.scaled(4096, little), bench.scaled(12288, 20));
    mat_vec(bench, "q4_k", bench.scaled(12288, little), bench.scaled(4096, 20));
    for (const char* type : {"f16", "q8_0", "q4_0", "q6_k", "iq3_xxs"}) {
        mat_vec(bench, type, bench.scaled(4096, little), bench.scaled(12288, 20));
    }
    mat_vec_int8(bench, "q4_k", bench.scaled(12288, little), bench.scaled(4096, 20));
    for (const char* type : {"q4_k", "q8_0", "q4_0", "q6_k", "iq3_xxs"}) {
        mat_vec_int8(bench, type, bench.scaled(4096, little), bench.scaled(12288, 20));
    }
    const uint32_t side = bench.scaled(4096, 64);
    mat_mul(bench, "f16", side, side, side);
    for (const char* type : {"q8_0", "q4_0", "q4_k", "q6_k", "iq3_xxs"}) {
        mat_mul(bench, type, bench.scaled(4096, little), side, bench.scaled(2048, 33));
    }
    attention(bench, bench.scaled(4096, 20), bench.scaled(4096, 40), 0);
    attention(bench, 1, bench.scaled(32768, 40), bench.scaled(16, 3));
    bench.write(output);
    return bench.all_right() ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
    if (argc < 3 || argc > 4 || (argc == 4 && std::string(argv[3]) != "small")) {
        std::fprintf(stderr, "usage: hrx-kernel-bench DRIVER RESULT.json [small]\n");
        return 2;
    }
    try {
        return run(argv[1], argv[2], argc == 4);
    } catch (const std::exception& error) {
        std::fprintf(stderr, "%s\n", error.what());
        return 1;
    }
}
