#include "hrx/loom/image_info.h"

#include <algorithm>
#include <string>

#include "hrx/loom/elf_view.h"

namespace onebit::loom {
namespace {

constexpr uint32_t simd_units = 4, most_waves = 16, wave = 32;
constexpr uint64_t processor_lds = 128 * 1024, lds_granule = 1024;

// The unsigned number after a key in a MessagePack map. Keys of the note are never a part of another text.
std::optional<uint32_t> find_number(std::span<const std::byte> note, std::string_view key) {
    const std::string_view text(reinterpret_cast<const char*>(note.data()), note.size());
    const size_t found = text.find(key);
    if (found == std::string_view::npos || found + key.size() >= text.size()) return std::nullopt;
    const auto rest = note.subspan(found + key.size());
    const auto byte = [&](size_t i) { return static_cast<uint32_t>(rest[i]); };
    if (byte(0) < 0x80) return byte(0);
    const size_t width = byte(0) == 0xcc ? 1 : byte(0) == 0xcd ? 2 : byte(0) == 0xce ? 4 : 0;
    if (width == 0 || rest.size() <= width) return std::nullopt;
    uint32_t value = 0;
    for (size_t i = 1; i <= width; i++) value = value << 8 | byte(i);
    return value;
}

}  // namespace

Result<ImageInfo> read_image_info(std::string_view kernel, std::span<const std::byte> image) {
    const auto refuse = [&](const char* expected) {
        return Error{ErrorCode::invalid, "image of " + std::string(kernel), expected, "none", ""};
    };
    const auto elf = ElfView::open(image);
    if (!elf) return refuse("an HSACO");
    const auto code = elf->find_symbol(kernel);
    const auto note = elf->metadata();
    if (!code || !note) return refuse("the kernel and its metadata");
    ImageInfo info;
    info.code_bytes = static_cast<uint32_t>(code->size);
    const std::pair<const char*, uint32_t*> fields[] = {
        {".vgpr_count", &info.vector_registers},
        {".sgpr_count", &info.scalar_registers},
        {".vgpr_spill_count", &info.spilled_vector_registers},
        {".sgpr_spill_count", &info.spilled_scalar_registers},
        {".group_segment_fixed_size", &info.lds_bytes},
        {".private_segment_fixed_size", &info.scratch_bytes},
        {".kernarg_segment_size", &info.argument_bytes},
    };
    for (const auto& [key, field] : fields) {
        const auto value = find_number(*note, key);
        if (!value) return refuse(key);
        *field = *value;
    }
    return info;
}

Occupancy estimate_occupancy(const Target& target, uint32_t vector_registers, uint32_t lds_bytes, uint32_t workgroup) {
    // chips with the large register file allocate in larger steps
    static constexpr std::string_view large_files[] = {"gfx1100", "gfx1101", "gfx1151", "gfx1200", "gfx1201"};
    const bool large = std::find(std::begin(large_files), std::end(large_files), target.name) != std::end(large_files);
    // 64 bits: images may claim any number
    const uint64_t file = large ? 1536 : 1024, granule = large ? 24 : 16;
    const uint64_t allocated = std::max<uint64_t>((vector_registers + granule - 1) / granule, 1) * granule;
    const auto waves_of = [](uint64_t count) {
        return static_cast<uint32_t>(std::clamp<uint64_t>(count, 1, most_waves));
    };
    Occupancy occupancy;
    occupancy.by_registers = waves_of(file / allocated);
    occupancy.by_lds = most_waves;
    if (lds_bytes != 0) {
        const uint64_t groups = processor_lds / ((lds_bytes + lds_granule - 1) / lds_granule * lds_granule);
        const uint64_t waves = groups * ((uint64_t{workgroup} + wave - 1) / wave);
        occupancy.by_lds = waves_of((waves + simd_units - 1) / simd_units);
    }
    return occupancy;
}

}  // namespace onebit::loom
