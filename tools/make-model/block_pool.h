// Random weights of one type and scale, quantised once and used many times over.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "ggml.h"

namespace onebit {

// `size` units of normally distributed weights, each quantised by ggml. A unit is 256 weights, or one block of the type
// where rows are not multiples of 256. Quantising is what takes time: a large matrix is put together from the units,
// each row from others. After making, safe for any number of threads.
class BlockPool {
public:
    static constexpr size_t size = 4096;
    static constexpr size_t unit_elements = 256;

    // deviation: standard deviation of the weights as the type can hold them, which is measured. row: of the matrices
    // that it is for, all multiples of 256 or none.
    BlockPool(ggml_type type, double deviation, uint64_t row, uint64_t seed, unsigned threads);

    // Writes rows first..first+count-1 of a matrix of `row` elements in a row; tensor: its key. Rows whose numbers are
    // less than `size` apart share no unit at the same place, so that no two rows of a matrix are alike.
    void write_rows(uint64_t tensor, uint64_t row, uint64_t first, uint64_t count, std::byte* to) const;

private:
    void quantise(size_t first, size_t count, double scale, uint64_t key, std::byte* to) const;
    double measure(const std::vector<std::byte>& units) const;

    ggml_type type_;
    size_t elements_, unit_bytes_;
    std::vector<std::byte> units_;
};

}  // namespace onebit
