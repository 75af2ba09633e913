#include "hrx/loom/elf_view.h"

#include <elf.h>

#include <algorithm>

namespace onebit::loom {
namespace {

constexpr uint16_t machine_amdgpu = 224;
constexpr uint32_t note_metadata = 32;  // NT_AMDGPU_METADATA

}  // namespace

std::optional<std::span<const std::byte>> ElfView::part(uint64_t offset, uint64_t size) const {
    if (offset > bytes_.size() || size > bytes_.size() - offset) return std::nullopt;
    return bytes_.subspan(offset, size);
}

std::optional<ElfView> ElfView::open(std::span<const std::byte> bytes) {
    if (bytes.size() < sizeof(Elf64_Ehdr)) return std::nullopt;
    const auto header = read<Elf64_Ehdr>(bytes, 0);
    if (std::memcmp(header.e_ident, "\177ELF\2\1", 6) != 0 || header.e_machine != machine_amdgpu) return std::nullopt;
    if (header.e_phentsize != sizeof(Elf64_Phdr) || header.e_shentsize != sizeof(Elf64_Shdr)) return std::nullopt;
    ElfView view(bytes);
    const auto segments = view.part(header.e_phoff, uint64_t{header.e_phnum} * sizeof(Elf64_Phdr));
    const auto sections = view.part(header.e_shoff, uint64_t{header.e_shnum} * sizeof(Elf64_Shdr));
    if (!segments || !sections) return std::nullopt;
    view.segments_ = *segments;
    view.sections_ = *sections;
    view.flags_ = header.e_flags;
    for (uint64_t at = 0; at < segments->size(); at += sizeof(Elf64_Phdr)) {
        const auto segment = read<Elf64_Phdr>(*segments, at);
        if (!view.part(segment.p_offset, segment.p_filesz)) return std::nullopt;
    }
    return view;
}

std::optional<ElfView::Symbol> ElfView::find_symbol(std::string_view name) const {
    for (uint64_t at = 0; at < sections_.size(); at += sizeof(Elf64_Shdr)) {
        const auto table = read<Elf64_Shdr>(sections_, at);
        if (table.sh_type != SHT_DYNSYM || table.sh_link >= sections_.size() / sizeof(Elf64_Shdr)) continue;
        const auto names_section = read<Elf64_Shdr>(sections_, table.sh_link * sizeof(Elf64_Shdr));
        const auto symbols = part(table.sh_offset, table.sh_size);
        const auto names = part(names_section.sh_offset, names_section.sh_size);
        if (!symbols || !names) return std::nullopt;
        const std::string_view texts(reinterpret_cast<const char*>(names->data()), names->size());
        for (uint64_t i = 0; i + sizeof(Elf64_Sym) <= symbols->size(); i += sizeof(Elf64_Sym)) {
            const auto symbol = read<Elf64_Sym>(*symbols, i);
            if (symbol.st_name >= texts.size()) continue;
            const std::string_view rest = texts.substr(symbol.st_name);
            const size_t end = rest.find('\0');
            if (end != std::string_view::npos && rest.substr(0, end) == name) {
                return Symbol{symbol.st_value, symbol.st_size};
            }
        }
    }
    return std::nullopt;
}

std::optional<std::span<const std::byte>> ElfView::at(uint64_t address, uint64_t size) const {
    for (uint64_t i = 0; i < segments_.size(); i += sizeof(Elf64_Phdr)) {
        const auto segment = read<Elf64_Phdr>(segments_, i);
        if (segment.p_type != PT_LOAD || address < segment.p_vaddr) continue;
        const uint64_t within = address - segment.p_vaddr;
        if (within > segment.p_filesz || size > segment.p_filesz - within) continue;
        return part(segment.p_offset + within, size);
    }
    return std::nullopt;
}

std::optional<std::span<const std::byte>> ElfView::metadata() const {
    const auto up = [](uint64_t size) { return (size + 3) / 4 * 4; };
    for (uint64_t i = 0; i < segments_.size(); i += sizeof(Elf64_Phdr)) {
        const auto segment = read<Elf64_Phdr>(segments_, i);
        if (segment.p_type != PT_NOTE) continue;
        auto notes = part(segment.p_offset, segment.p_filesz);
        while (notes && notes->size() >= sizeof(Elf64_Nhdr)) {
            const auto header = read<Elf64_Nhdr>(*notes, 0);
            const uint64_t begin = sizeof header + up(header.n_namesz), end = begin + header.n_descsz;
            if (end > notes->size()) break;
            if (header.n_type == note_metadata) return notes->subspan(begin, header.n_descsz);
            notes = notes->subspan(std::min<uint64_t>(up(end), notes->size()));
        }
    }
    return std::nullopt;
}

}  // namespace onebit::loom
