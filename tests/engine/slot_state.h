// The keys and values of one slot, read and written back through llama.cpp's sequence state, for seeding defects.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "llama.h"

namespace onebit::test {

// Layout as in llama_kv_cache::state_write() of the pinned llama.cpp: magic, sequence, streams; for each stream the
// number of cells, position and sequences of each, whether values are transposed, layers; then for each layer type, row
// size and rows of keys, and the same for values. Only for caches with flash attention, whose values are rows too.
class SlotState {
public:
    SlotState(llama_context* context, uint32_t slot) : context_(context), slot_(static_cast<llama_seq_id>(slot)) {
        bytes_.resize(llama_state_seq_get_size(context, slot_));
        EXPECT_EQ(llama_state_seq_get_data(context, bytes_.data(), bytes_.size(), slot_), bytes_.size());
        take<uint32_t>();
        take<int32_t>();
        const auto streams = take<uint32_t>();
        for (uint32_t stream = 0; stream < streams; stream++) {
            const auto cells = take<uint32_t>();
            if (cells == 0) continue;
            cells_ = cells;
            for (uint32_t cell = 0; cell < cells; cell++) {
                take<int32_t>();
                at_ += take<uint32_t>() * sizeof(int32_t);
            }
            EXPECT_EQ(take<uint32_t>(), 0u) << "the values are transposed";
            const auto layers = take<uint32_t>();
            for (auto* rows : {&keys_, &values_}) {
                for (uint32_t layer = 0; layer < layers; layer++) {
                    take<int32_t>();
                    const auto row = static_cast<size_t>(take<uint64_t>());
                    rows->push_back({at_, row});
                    at_ += row * cells;
                }
            }
        }
        EXPECT_EQ(at_, bytes_.size()) << "the layout of the state has changed";
    }

    uint32_t cells() const { return cells_; }
    std::span<uint8_t> key(uint32_t layer, uint32_t cell) { return row(keys_, layer, cell); }
    std::span<uint8_t> value(uint32_t layer, uint32_t cell) { return row(values_, layer, cell); }
    void write_back() {
        EXPECT_EQ(llama_state_seq_set_data(context_, bytes_.data(), bytes_.size(), slot_), bytes_.size());
    }

private:
    struct Rows {
        size_t at, row_bytes;
    };
    template <typename T>
    T take() {
        T value{};
        if (at_ + sizeof value <= bytes_.size()) std::memcpy(&value, bytes_.data() + at_, sizeof value);
        at_ += sizeof value;
        return value;
    }
    std::span<uint8_t> row(const std::vector<Rows>& rows, uint32_t layer, uint32_t cell) {
        const Rows& of_layer = rows.at(layer);
        return std::span(bytes_).subspan(of_layer.at + cell * of_layer.row_bytes, of_layer.row_bytes);
    }

    llama_context* context_;
    llama_seq_id slot_;
    std::vector<uint8_t> bytes_;
    size_t at_ = 0;
    uint32_t cells_ = 0;
    std::vector<Rows> keys_, values_;
};

}  // namespace onebit::test
