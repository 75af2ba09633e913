#include "hrx/loom/compiler/link.h"

#include <elf.h>

#include <cstring>
#include <optional>

namespace onebit::loom {
namespace {

// "Relocation Records" of LLVM's guide
constexpr uint32_t rel32 = 4, rel64 = 5, rel32_lo = 10, rel32_hi = 11;
constexpr uint64_t page = 0x1000;

uint32_t sysv_hash(std::string_view name) {  // gABI, "Hash Table"
    uint32_t hash = 0;
    for (const char c : name) {
        hash = (hash << 4) + static_cast<unsigned char>(c);
        const uint32_t high = hash & 0xf0000000u;
        hash ^= high >> 24;
        hash &= ~high;
    }
    return hash;
}

struct Placed {
    uint64_t address = 0, offset = 0;
    bool placed = false;
};

class Linker {
public:
    Linker(std::string_view object, std::vector<char>* image) : object_(object), out_(*image) {}

    std::string link() {
        if (!read()) return problem_;
        out_.assign(sizeof(Elf64_Ehdr) + program_headers * sizeof(Elf64_Phdr), 0);
        place_read_only();
        place_code();
        place_dynamic();
        if (!relocate()) return problem_;
        write_symbols();
        write_headers();
        return {};
    }

private:
    static constexpr size_t program_headers = 5;
    enum Section : uint16_t { none, note, dynsym, hash, dynstr, rodata, text, dynamic, shstrtab, section_count };

    bool fail(std::string problem) {
        problem_ = std::move(problem);
        return false;
    }
    // The bytes of a part of the object; empty when it does not lie within.
    std::optional<std::string_view> part(uint64_t offset, uint64_t size) const {
        if (offset > object_.size() || size > object_.size() - offset) return std::nullopt;
        return object_.substr(offset, size);
    }
    template <typename T>
    static std::vector<T> records(std::string_view bytes) {
        std::vector<T> result(bytes.size() / sizeof(T));
        if (!result.empty()) std::memcpy(result.data(), bytes.data(), result.size() * sizeof(T));
        return result;
    }

    bool read() {
        const auto head = part(0, sizeof header_);
        if (!head) return fail("an object without an ELF header");
        std::memcpy(&header_, head->data(), sizeof header_);
        if (std::memcmp(header_.e_ident, ELFMAG, SELFMAG) != 0 || header_.e_ident[EI_CLASS] != ELFCLASS64 ||
            header_.e_machine != 224 /* EM_AMDGPU */ || header_.e_shentsize != sizeof(Elf64_Shdr)) {
            return fail("an object that is not ELF64 for AMDGPU");
        }
        const auto table = part(header_.e_shoff, uint64_t{header_.e_shnum} * sizeof(Elf64_Shdr));
        if (!table) return fail("section headers outside of the object");
        sections_ = records<Elf64_Shdr>(*table);
        contents_.resize(sections_.size());
        placed_.resize(sections_.size());
        size_t symbol_section = 0;
        for (size_t i = 1; i < sections_.size(); i++) {
            const Elf64_Shdr& section = sections_[i];
            if (section.sh_type == SHT_NOBITS) {
                if ((section.sh_flags & SHF_ALLOC) != 0 && section.sh_size != 0)
                    return fail("data that is not constant");
                continue;
            }
            const auto bytes = part(section.sh_offset, section.sh_size);
            if (!bytes) return fail("a section outside of the object");
            contents_[i] = *bytes;
            if (section.sh_type == SHT_SYMTAB) symbol_section = i;
            if ((section.sh_flags & SHF_ALLOC) != 0 && (section.sh_flags & SHF_WRITE) != 0 && section.sh_size != 0) {
                return fail("data that is not constant");
            }
        }
        if (symbol_section == 0 || sections_[symbol_section].sh_link >= sections_.size()) return fail("no symbols");
        symbols_ = records<Elf64_Sym>(contents_[symbol_section]);
        names_ = contents_[sections_[symbol_section].sh_link];
        return read_symbols();
    }

    std::string_view name_of(const Elf64_Sym& symbol) const {
        if (symbol.st_name >= names_.size()) return {};
        const std::string_view rest = names_.substr(symbol.st_name);
        return rest.substr(0, rest.find('\0'));
    }

    bool read_symbols() {
        dynamic_symbols_.push_back({});
        dynamic_names_.push_back('\0');
        for (size_t i = 1; i < symbols_.size(); i++) {
            Elf64_Sym symbol = symbols_[i];
            const unsigned bind = ELF64_ST_BIND(symbol.st_info);
            if (bind == STB_LOCAL) continue;
            const std::string name(name_of(symbol));
            if (symbol.st_shndx == SHN_UNDEF) return fail("symbol '" + name + "', which nothing defines");
            if (symbol.st_shndx >= sections_.size()) continue;  // absolute: registers and the like
            const unsigned visibility = ELF64_ST_VISIBILITY(symbol.st_other);
            if (visibility == STV_HIDDEN || visibility == STV_INTERNAL) continue;
            symbol.st_name = static_cast<uint32_t>(dynamic_names_.size());
            dynamic_names_ += name;
            dynamic_names_ += '\0';
            dynamic_symbols_.push_back(symbol);
            exported_.push_back(name);
        }
        return true;
    }

    void align(uint64_t to) {
        const uint64_t alignment = to == 0 ? 1 : to;
        out_.resize((out_.size() + alignment - 1) / alignment * alignment, 0);
    }
    uint64_t append(std::string_view bytes) {
        const uint64_t offset = out_.size();
        out_.insert(out_.end(), bytes.begin(), bytes.end());
        return offset;
    }
    template <typename Predicate>
    void place(uint64_t delta, Predicate chosen) {
        for (size_t i = 1; i < sections_.size(); i++) {
            const Elf64_Shdr& section = sections_[i];
            if ((section.sh_flags & SHF_ALLOC) == 0 || contents_[i].empty() || !chosen(section)) continue;
            align(section.sh_addralign);
            const uint64_t offset = append(contents_[i]);
            placed_[i] = {offset + delta, offset, true};
        }
    }

    void place_read_only() {
        align(4);
        note_offset_ = out_.size();
        place(0, [](const Elf64_Shdr& section) { return section.sh_type == SHT_NOTE; });
        note_end_ = out_.size();
        align(8);
        symbol_offset_ = append(std::string(dynamic_symbols_.size() * sizeof(Elf64_Sym), '\0'));
        const uint32_t buckets = static_cast<uint32_t>(dynamic_symbols_.size());
        std::vector<uint32_t> table(2 + 2 * size_t{buckets}, 0);
        table[0] = table[1] = buckets;
        for (uint32_t i = 1; i < buckets; i++) {
            const uint32_t bucket = sysv_hash(exported_[i - 1]) % buckets;
            table[2 + buckets + i] = table[2 + bucket];
            table[2 + bucket] = i;
        }
        hash_offset_ = append({reinterpret_cast<const char*>(table.data()), table.size() * sizeof(uint32_t)});
        name_offset_ = append(dynamic_names_);
        align(64);
        constant_offset_ = out_.size();
        place(0, [](const Elf64_Shdr& section) {
            return section.sh_type != SHT_NOTE && (section.sh_flags & SHF_EXECINSTR) == 0;
        });
        constant_end_ = out_.size();
    }

    void place_code() {
        align(256);
        code_offset_ = out_.size();
        place(page, [](const Elf64_Shdr& section) { return (section.sh_flags & SHF_EXECINSTR) != 0; });
        code_end_ = out_.size();
    }

    void place_dynamic() {
        align(16);
        const Elf64_Dyn entries[] = {{DT_SYMTAB, {symbol_offset_}}, {DT_SYMENT, {sizeof(Elf64_Sym)}},
                                     {DT_STRTAB, {name_offset_}},   {DT_STRSZ, {dynamic_names_.size()}},
                                     {DT_HASH, {hash_offset_}},     {DT_NULL, {0}}};
        dynamic_offset_ = append({reinterpret_cast<const char*>(entries), sizeof entries});
        dynamic_bytes_ = sizeof entries;
    }

    bool relocate() {
        for (size_t i = 1; i < sections_.size(); i++) {
            const Elf64_Shdr& section = sections_[i];
            if (section.sh_type != SHT_RELA || section.sh_info >= sections_.size()) continue;
            const Placed& target = placed_[section.sh_info];
            if (!target.placed) continue;
            for (const Elf64_Rela& entry : records<Elf64_Rela>(contents_[i])) {
                if (!apply(target, contents_[section.sh_info].size(), entry)) return false;
            }
        }
        return true;
    }

    bool apply(const Placed& target, uint64_t target_bytes, const Elf64_Rela& entry) {
        const uint64_t index = ELF64_R_SYM(entry.r_info);
        const uint32_t type = static_cast<uint32_t>(ELF64_R_TYPE(entry.r_info));
        if (index >= symbols_.size()) return fail("a relocation of a symbol that is not there");
        const Elf64_Sym& symbol = symbols_[index];
        if (symbol.st_shndx >= sections_.size() || !placed_[symbol.st_shndx].placed) {
            return fail("symbol '" + std::string(name_of(symbol)) + "', which lies in no section of the image");
        }
        const uint64_t width = type == rel64 ? 8 : 4;
        if (entry.r_offset > target_bytes || width > target_bytes - entry.r_offset) {
            return fail("a relocation outside of its section");
        }
        uint64_t value = placed_[symbol.st_shndx].address + symbol.st_value + static_cast<uint64_t>(entry.r_addend) -
                         (target.address + entry.r_offset);
        switch (type) {
            case rel32:
            case rel32_lo:
            case rel64:
                break;
            case rel32_hi:
                value >>= 32;
                break;
            default:
                return fail("relocation " + std::to_string(type) + " of symbol '" + std::string(name_of(symbol)) +
                            "', which is not relative to the code");
        }
        std::memcpy(out_.data() + target.offset + entry.r_offset, &value, width);
        return true;
    }

    void write_symbols() {
        for (size_t i = 1; i < dynamic_symbols_.size(); i++) {
            Elf64_Sym& symbol = dynamic_symbols_[i];
            const bool code = (sections_[symbol.st_shndx].sh_flags & SHF_EXECINSTR) != 0;
            symbol.st_value += placed_[symbol.st_shndx].address;
            symbol.st_shndx = code ? text : rodata;
        }
        std::memcpy(out_.data() + symbol_offset_, dynamic_symbols_.data(), dynamic_symbols_.size() * sizeof(Elf64_Sym));
    }

    void write_headers() {
        static constexpr std::string_view names(
            "\0.note\0.dynsym\0.hash\0.dynstr\0.rodata\0.text\0.dynamic\0.shstrtab\0", 61);
        static constexpr uint32_t name_at[section_count] = {0, 1, 7, 15, 21, 29, 37, 43, 52};
        const uint64_t names_offset = append(names);
        align(8);
        const uint64_t code_address = code_offset_ + page, dynamic_address = dynamic_offset_ + 2 * page;
        const Elf64_Shdr headers[section_count] = {
            {},
            {name_at[note], SHT_NOTE, SHF_ALLOC, note_offset_, note_offset_, note_end_ - note_offset_, 0, 0, 4, 0},
            {name_at[dynsym], SHT_DYNSYM, SHF_ALLOC, symbol_offset_, symbol_offset_,
             dynamic_symbols_.size() * sizeof(Elf64_Sym), dynstr, 1, 8, sizeof(Elf64_Sym)},
            {name_at[hash], SHT_HASH, SHF_ALLOC, hash_offset_, hash_offset_, name_offset_ - hash_offset_, dynsym, 0, 4,
             4},
            {name_at[dynstr], SHT_STRTAB, SHF_ALLOC, name_offset_, name_offset_, dynamic_names_.size(), 0, 0, 1, 0},
            {name_at[rodata], SHT_PROGBITS, SHF_ALLOC, constant_offset_, constant_offset_,
             constant_end_ - constant_offset_, 0, 0, 64, 0},
            {name_at[text], SHT_PROGBITS, SHF_ALLOC | SHF_EXECINSTR, code_address, code_offset_,
             code_end_ - code_offset_, 0, 0, 256, 0},
            {name_at[dynamic], SHT_DYNAMIC, SHF_ALLOC | SHF_WRITE, dynamic_address, dynamic_offset_, dynamic_bytes_,
             dynstr, 0, 8, sizeof(Elf64_Dyn)},
            {name_at[shstrtab], SHT_STRTAB, 0, 0, names_offset, names.size(), 0, 0, 1, 0}};
        Elf64_Ehdr header = header_;
        header.e_type = ET_DYN;
        header.e_entry = 0;
        header.e_phoff = sizeof header;
        header.e_phentsize = sizeof(Elf64_Phdr);
        header.e_phnum = program_headers;
        header.e_shoff = append({reinterpret_cast<const char*>(headers), sizeof headers});
        header.e_shnum = section_count;
        header.e_shstrndx = shstrtab;
        std::memcpy(out_.data(), &header, sizeof header);
        const uint64_t code_bytes = code_end_ - code_offset_;
        const Elf64_Phdr programs[program_headers] = {
            {PT_LOAD, PF_R, 0, 0, 0, constant_end_, constant_end_, page},
            {PT_LOAD, PF_R | PF_X, code_offset_, code_address, code_address, code_bytes, code_bytes, page},
            {PT_LOAD, PF_R | PF_W, dynamic_offset_, dynamic_address, dynamic_address, dynamic_bytes_, dynamic_bytes_,
             page},
            {PT_DYNAMIC, PF_R | PF_W, dynamic_offset_, dynamic_address, dynamic_address, dynamic_bytes_, dynamic_bytes_,
             8},
            {PT_NOTE, PF_R, note_offset_, note_offset_, note_offset_, note_end_ - note_offset_,
             note_end_ - note_offset_, 4}};
        std::memcpy(out_.data() + sizeof header, programs, sizeof programs);
    }

    std::string_view object_;
    std::vector<char>& out_;
    std::string problem_;
    Elf64_Ehdr header_{};
    std::vector<Elf64_Shdr> sections_;
    std::vector<std::string_view> contents_;
    std::vector<Placed> placed_;
    std::vector<Elf64_Sym> symbols_, dynamic_symbols_;
    std::string_view names_;
    std::string dynamic_names_;
    std::vector<std::string> exported_;
    uint64_t note_offset_ = 0, note_end_ = 0, symbol_offset_ = 0, hash_offset_ = 0, name_offset_ = 0;
    uint64_t constant_offset_ = 0, constant_end_ = 0, code_offset_ = 0, code_end_ = 0;
    uint64_t dynamic_offset_ = 0, dynamic_bytes_ = 0;
};

}  // namespace

std::string link_hsaco(std::string_view object, std::vector<char>* image) { return Linker(object, image).link(); }

}  // namespace onebit::loom
