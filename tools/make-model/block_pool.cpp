#include "tools/make-model/block_pool.h"

#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <utility>

#include "tools/make-model/parallel.h"
#include "tools/make-model/random.h"

namespace onebit {
namespace {

constexpr size_t probe_units = 256;
constexpr size_t units_of_a_task = 64;

}  // namespace

BlockPool::BlockPool(ggml_type type, double deviation, uint64_t row, uint64_t seed, unsigned threads)
    : type_(type),
      elements_(row % unit_elements == 0 ? unit_elements : static_cast<size_t>(ggml_blck_size(type))),
      unit_bytes_(ggml_row_size(type, static_cast<int64_t>(elements_))),
      units_(size * unit_bytes_) {
    // tables of some types are made at their first use; here, so that threads do not wait for each other
    ggml_quantize_init(type);
    const uint64_t key = combine(combine(seed, static_cast<uint64_t>(type)), std::bit_cast<uint64_t>(deviation));
    // few bits make weights larger or smaller as a whole: the scale is corrected by what is found
    std::vector<std::byte> probe(probe_units * unit_bytes_);
    quantise(0, probe_units, deviation, key, probe.data());
    const double found = measure(probe);
    const double scale = found > 0 && std::isfinite(found) ? deviation * deviation / found : deviation;
    in_parallel(threads, size / units_of_a_task, [&](unsigned, size_t task) {
        const size_t first = task * units_of_a_task;
        quantise(first, units_of_a_task, scale, key, units_.data() + first * unit_bytes_);
    });
}

void BlockPool::quantise(size_t first, size_t count, double scale, uint64_t key, std::byte* to) const {
    std::array<float, unit_elements> values{};
    std::array<float, unit_elements> importance{};
    importance.fill(1);
    for (size_t unit = 0; unit < count; unit++) {
        const uint64_t start = (first + unit) * elements_;
        for (size_t i = 0; i < elements_; i++) values[i] = normal_at(key, start + i) * static_cast<float>(scale);
        ggml_quantize_chunk(type_, values.data(), to + unit * unit_bytes_, 0, 1, static_cast<int64_t>(elements_),
                            ggml_quantize_requires_imatrix(type_) ? importance.data() : nullptr);
    }
}

double BlockPool::measure(const std::vector<std::byte>& units) const {
    std::array<float, unit_elements> values{};
    const ggml_to_float_t to_float = ggml_get_type_traits(type_)->to_float;
    double sum = 0;
    size_t count = 0;
    for (size_t at = 0; at < units.size(); at += unit_bytes_) {
        if (type_ == GGML_TYPE_F32) {
            std::memcpy(values.data(), units.data() + at, unit_bytes_);
        } else {
            to_float(units.data() + at, values.data(), static_cast<int64_t>(elements_));
        }
        for (size_t i = 0; i < elements_; i++) sum += static_cast<double>(values[i]) * values[i];
        count += elements_;
    }
    return std::sqrt(sum / static_cast<double>(count));
}

void BlockPool::write_rows(uint64_t tensor, uint64_t row, uint64_t first, uint64_t count, std::byte* to) const {
    static_assert((size & (size - 1)) == 0);
    const size_t units = row / elements_;
    std::vector<std::pair<uint64_t, uint64_t>> steps(units);
    for (uint64_t number = first, end = first + count; number < end;) {
        // within one turn of `size` rows, an odd step visits each unit once
        const uint64_t turn = number / size, turn_end = std::min(end, (turn + 1) * size);
        for (size_t place = 0; place < units; place++) {
            const uint64_t key = combine(combine(tensor, turn), place);
            steps[place] = {key & 0xffffffffu, (key >> 32) | 1};
        }
        for (; number < turn_end; number++) {
            for (const auto& [start, step] : steps) {
                const size_t unit = (start + step * (number & (size - 1))) & (size - 1);
                std::memcpy(to, units_.data() + unit * unit_bytes_, unit_bytes_);
                to += unit_bytes_;
            }
        }
    }
}

}  // namespace onebit
