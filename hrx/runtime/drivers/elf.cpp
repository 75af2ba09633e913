#include "hrx/runtime/drivers/elf.h"

#include <cstdint>
#include <cstring>

namespace onebit::hrx::runtime {
namespace {

template <typename T>
T field(std::span<const std::byte> image, uint64_t offset) {
    T value{};
    std::memcpy(&value, image.data() + offset, sizeof value);
    return value;
}

bool within(std::span<const std::byte> image, uint64_t offset, uint64_t size) {
    return offset <= image.size() && size <= image.size() - offset;
}

}  // namespace

bool elf_is_complete(std::span<const std::byte> image) {
    constexpr uint64_t header_bytes = 64, segment_bytes = 56, section_bytes = 64;
    constexpr uint32_t nobits = 8;
    if (image.size() < header_bytes || std::memcmp(image.data(), "\177ELF\2\1", 6) != 0) return false;
    const auto segments = field<uint64_t>(image, 32), sections = field<uint64_t>(image, 40);
    const auto segment_size = field<uint16_t>(image, 54), segment_count = field<uint16_t>(image, 56);
    const auto section_size = field<uint16_t>(image, 58), section_count = field<uint16_t>(image, 60);
    if (segment_count != 0 && segment_size < segment_bytes) return false;
    if (section_count != 0 && section_size < section_bytes) return false;
    if (!within(image, segments, uint64_t{segment_size} * segment_count)) return false;
    if (!within(image, sections, uint64_t{section_size} * section_count)) return false;
    for (uint16_t i = 0; i < segment_count; ++i) {
        const uint64_t entry = segments + uint64_t{segment_size} * i;
        if (!within(image, field<uint64_t>(image, entry + 8), field<uint64_t>(image, entry + 32))) return false;
    }
    for (uint16_t i = 0; i < section_count; ++i) {
        const uint64_t entry = sections + uint64_t{section_size} * i;
        if (field<uint32_t>(image, entry + 4) == nobits) continue;
        if (!within(image, field<uint64_t>(image, entry + 24), field<uint64_t>(image, entry + 32))) return false;
    }
    return true;
}

}  // namespace onebit::hrx::runtime
