// Reads an HSACO without trusting it. Every access is checked; the bytes must outlive the view.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string_view>

namespace onebit::loom {

class ElfView {
public:
    // Nothing when it is not a 64-bit ELF file for AMDGPU with tables inside the bytes.
    static std::optional<ElfView> open(std::span<const std::byte> bytes);

    uint32_t flags() const { return flags_; }
    struct Symbol {
        uint64_t address = 0, size = 0;
    };
    std::optional<Symbol> find_symbol(std::string_view name) const;  // of the dynamic table
    // size bytes at an address of a loaded segment.
    std::optional<std::span<const std::byte>> at(uint64_t address, uint64_t size) const;
    // The description of the AMDGPU metadata note.
    std::optional<std::span<const std::byte>> metadata() const;

    // bytes must hold it.
    template <typename T>
    static T read(std::span<const std::byte> bytes, uint64_t offset) {
        T value{};
        std::memcpy(&value, bytes.data() + offset, sizeof value);
        return value;
    }

private:
    explicit ElfView(std::span<const std::byte> bytes) : bytes_(bytes) {}
    std::optional<std::span<const std::byte>> part(uint64_t offset, uint64_t size) const;

    std::span<const std::byte> bytes_, segments_, sections_;
    uint32_t flags_ = 0;
};

}  // namespace onebit::loom
