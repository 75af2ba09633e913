#include "hrx/emulator/code_object.h"

#include <elf.h>
#include <sys/mman.h>

#include <cstring>

namespace onebit::emulator {
namespace {

constexpr u16 kMachineAmdgpu = 224;
constexpr u32 kNoteMetadata = 32;
constexpr u32 kRelocationRelative64 = 13;
constexpr u32 kRelocationAbsolute64 = 3;
constexpr std::size_t kLargestImage = std::size_t{1} << 30;
// Each word of code becomes some hundred bytes of the interpreter.
constexpr u64 kLargestCode = u64{16} << 20;

Error damaged(std::string expected, std::string found) {
    return Error{ErrorCode::invalid, "code object", std::move(expected), std::move(found), "compile the kernel again"};
}

// Reads a structure that lies wholly inside of the file.
template <typename T>
bool read_at(std::span<const u8> bytes, u64 offset, T& out) {
    if (offset > bytes.size() || bytes.size() - offset < sizeof(T)) return false;
    std::memcpy(&out, bytes.data() + offset, sizeof(T));
    return true;
}

// Processor of e_flags' EF_AMDGPU_MACH; empty when it is not emulated.
std::string processor_name(u32 flags) {
    switch (flags & 0xff) {
        case 0x41:
            return "gfx1100";
        case 0x46:
            return "gfx1101";
        case 0x47:
            return "gfx1102";
        case 0x44:
            return "gfx1103";
        case 0x43:
            return "gfx1150";
        case 0x4a:
            return "gfx1151";
        case 0x55:
            return "gfx1152";
        default:
            return {};
    }
}

struct Note {
    u64 offset = 0;
    u64 bytes = 0;
};

// The metadata document inside of a note segment.
Note find_metadata(std::span<const u8> file, const Elf64_Phdr& segment) {
    u64 at = segment.p_offset;
    const u64 end = segment.p_offset + segment.p_filesz;
    Elf64_Nhdr header;
    while (at < end && read_at(file, at, header)) {
        const u64 name = at + sizeof(header);
        const u64 text = name + (u64{header.n_namesz} + 3) / 4 * 4;
        const u64 next = text + (u64{header.n_descsz} + 3) / 4 * 4;
        if (text + header.n_descsz > end || next <= at) break;
        if (header.n_type == kNoteMetadata && header.n_namesz == 7 && std::memcmp(&file[name], "AMDGPU", 7) == 0)
            return {text, header.n_descsz};
        at = next;
    }
    return {};
}

KernelDescriptor read_descriptor(const u8* bytes) {
    KernelDescriptor d;
    std::memcpy(&d.group_bytes, bytes, 4);
    std::memcpy(&d.private_bytes, bytes + 4, 4);
    std::memcpy(&d.kernarg_bytes, bytes + 8, 4);
    std::memcpy(&d.entry_offset, bytes + 16, 8);
    std::memcpy(&d.rsrc3, bytes + 44, 4);
    std::memcpy(&d.rsrc1, bytes + 48, 4);
    std::memcpy(&d.rsrc2, bytes + 52, 4);
    std::memcpy(&d.properties, bytes + 56, 2);
    std::memcpy(&d.preload, bytes + 58, 2);
    return d;
}

// What the interpreter takes for granted about a kernel's modes; empty when all holds.
std::string unsupported_mode(const KernelDescriptor& d) {
    if (!d.wave32()) return "a wave of 64 lanes";
    if ((d.rsrc1 >> 12 & 15) != 0) return "a rounding mode other than to nearest even";
    if ((d.rsrc1 >> 16 & 15) != 15) return "flushed denormals";
    if ((d.rsrc1 >> 21 & 1) == 0) return "clamps that keep NaN (DX10_CLAMP off)";
    if (d.preload != 0) return "preloaded kernel arguments";
    return {};
}

}  // namespace

Result<std::unique_ptr<CodeObject>> CodeObject::load(std::span<const u8> file, MemoryMap& memory) {
    std::unique_ptr<CodeObject> object(new CodeObject(memory));
    ONEBIT_RETURN_IF_ERROR(object->read(file));
    return object;
}

CodeObject::~CodeObject() {
    for (u64 base : regions_) memory_.remove(base);
    if (image_ != nullptr) munmap(image_, image_bytes_);
}

Result<void> CodeObject::read(std::span<const u8> file) {
    Elf64_Ehdr header;
    if (!read_at(file, 0, header) || std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 ||
        header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_machine != kMachineAmdgpu || header.e_type != ET_DYN)
        return damaged("a 64-bit ELF shared object for amdgcn", "something else");
    processor_ = processor_name(header.e_flags);
    if (processor_.empty())
        return Error{ErrorCode::unsupported, "code object", "a gfx11 target",
                     "machine flags " + std::to_string(header.e_flags & 0xff), "compile for gfx1151"};

    // segments into one image, as far as the highest address that any of them uses
    std::vector<Elf64_Phdr> segments(header.e_phnum);
    u64 image_bytes = 0;
    for (u32 k = 0; k < header.e_phnum; ++k) {
        Elf64_Phdr& segment = segments[k];
        if (header.e_phentsize != sizeof(segment) || !read_at(file, header.e_phoff + u64{k} * sizeof(segment), segment))
            return damaged("program headers inside of the file", "truncated ones");
        if (segment.p_type != PT_LOAD) continue;
        if (segment.p_filesz > segment.p_memsz || segment.p_offset > file.size() ||
            file.size() - segment.p_offset < segment.p_filesz || segment.p_memsz > kLargestImage ||
            segment.p_vaddr > kLargestImage)
            return damaged("segments inside of the file, at most 1 GiB", "segment " + std::to_string(k) + " outside");
        image_bytes = std::max(image_bytes, segment.p_vaddr + segment.p_memsz);
    }
    if (image_bytes == 0) return damaged("a loadable segment", "none");
    image_bytes_ = (image_bytes + 4095) / 4096 * 4096;
    void* mapped = mmap(nullptr, image_bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (mapped == MAP_FAILED) return error_from_errno(errno, "memory for a code object");
    image_ = static_cast<u8*>(mapped);
    const u64 base = reinterpret_cast<u64>(image_);
    const std::span<u8> image(image_, image_bytes);
    Elf64_Dyn dynamic_entry{};
    u64 symbol_table = 0, string_table = 0, string_bytes = 0, hash = 0, relocations = 0, relocation_bytes = 0;
    for (const Elf64_Phdr& segment : segments) {
        if (segment.p_type == PT_LOAD) std::memcpy(image_ + segment.p_vaddr, &file[segment.p_offset], segment.p_filesz);
    }
    for (const Elf64_Phdr& segment : segments) {
        if (segment.p_type == PT_NOTE && segment.p_offset <= file.size() &&
            file.size() - segment.p_offset >= segment.p_filesz) {
            if (Note note = find_metadata(file, segment); note.bytes != 0) {
                auto metadata = parse_metadata(file.subspan(note.offset, note.bytes));
                if (!metadata) return std::move(metadata).error();
                metadata_ = std::move(metadata).value();
            }
        }
        if (segment.p_type != PT_DYNAMIC) continue;
        for (u64 at = segment.p_vaddr; read_at(std::span<const u8>(image), at, dynamic_entry);
             at += sizeof(dynamic_entry)) {
            if (dynamic_entry.d_tag == DT_NULL) break;
            if (dynamic_entry.d_tag == DT_SYMTAB) symbol_table = dynamic_entry.d_un.d_ptr;
            if (dynamic_entry.d_tag == DT_STRTAB) string_table = dynamic_entry.d_un.d_ptr;
            if (dynamic_entry.d_tag == DT_STRSZ) string_bytes = dynamic_entry.d_un.d_val;
            if (dynamic_entry.d_tag == DT_HASH) hash = dynamic_entry.d_un.d_ptr;
            if (dynamic_entry.d_tag == DT_RELA) relocations = dynamic_entry.d_un.d_ptr;
            if (dynamic_entry.d_tag == DT_RELASZ) relocation_bytes = dynamic_entry.d_un.d_val;
        }
    }
    // the second word of DT_HASH is the number of symbols
    u32 symbols = 0;
    if (hash == 0 || !read_at(std::span<const u8>(image), hash + 4, symbols))
        return damaged("a dynamic symbol table with DT_HASH", "none");
    if (string_table > image.size() || image.size() - string_table < string_bytes || string_bytes == 0 ||
        image[string_table + string_bytes - 1] != 0)
        return damaged("a string table inside of the image", "one outside");
    // a copy: relocations may write anywhere in the image, over the zero at the end too
    const std::string strings(reinterpret_cast<const char*>(image_ + string_table), string_bytes);

    auto symbol_at = [&](u32 index, Elf64_Sym& symbol) {
        return index < symbols &&
               read_at(std::span<const u8>(image), symbol_table + u64{index} * sizeof(symbol), symbol) &&
               symbol.st_name < string_bytes;
    };
    for (u64 at = relocations; at < relocations + relocation_bytes; at += sizeof(Elf64_Rela)) {
        Elf64_Rela relocation;
        Elf64_Sym symbol{};
        if (!read_at(std::span<const u8>(image), at, relocation) || relocation.r_offset > image.size() ||
            image.size() - relocation.r_offset < 8)
            return damaged("relocations inside of the image", "one outside");
        const u32 type = static_cast<u32>(relocation.r_info);
        u64 value = base + static_cast<u64>(relocation.r_addend);
        if (type == kRelocationAbsolute64) {
            if (!symbol_at(static_cast<u32>(relocation.r_info >> 32), symbol) || symbol.st_shndx == SHN_UNDEF)
                return damaged("relocations against defined symbols", "an undefined one");
            value += symbol.st_value;
        } else if (type != kRelocationRelative64) {
            return damaged("relocations R_AMDGPU_RELATIVE64 and R_AMDGPU_ABS64", "type " + std::to_string(type));
        }
        std::memcpy(image_ + relocation.r_offset, &value, 8);
    }

    for (const Elf64_Phdr& segment : segments) {
        if (segment.p_type != PT_LOAD || segment.p_memsz == 0) continue;
        const Region region{base + segment.p_vaddr, segment.p_memsz, (segment.p_flags & PF_W) != 0};
        if (memory_.add(region)) regions_.push_back(region.base);
        if ((segment.p_flags & PF_X) == 0) continue;
        if (segment.p_filesz > kLargestCode)
            return damaged("at most " + std::to_string(kLargestCode) + " bytes of code",
                           std::to_string(segment.p_filesz));
        // what the file does not hold is no code
        auto program =
            build_program(image.subspan(segment.p_vaddr, segment.p_filesz), region.base, segment.p_vaddr, processor_);
        if (!program) return std::move(program).error();
        programs_.push_back(std::move(program).value());
    }

    for (u32 index = 1; index < symbols; ++index) {
        Elf64_Sym symbol;
        if (!symbol_at(index, symbol)) return damaged("symbols inside of the image", "one outside");
        const std::string_view name(strings.c_str() + symbol.st_name);
        if (symbol.st_shndx == SHN_UNDEF || ELF64_ST_TYPE(symbol.st_info) != STT_OBJECT) continue;
        if (symbol.st_value > image.size() || image.size() - symbol.st_value < symbol.st_size)
            return damaged("symbols inside of the image", std::string(name) + " outside");
        if (!name.ends_with(".kd") || symbol.st_size != 64) {
            variables_.push_back({std::string(name), base + symbol.st_value, symbol.st_size});
            continue;
        }
        Kernel kernel;
        kernel.name = name.substr(0, name.size() - 3);
        kernel.object = base + symbol.st_value;
        kernel.descriptor = read_descriptor(image_ + symbol.st_value);
        if (auto problem = unsupported_mode(kernel.descriptor); !problem.empty())
            return Error{ErrorCode::unsupported, "kernel " + kernel.name, "modes of a plain wave32 HSA kernel", problem,
                         "compile it without those options"};
        const u64 entry = kernel.object + static_cast<u64>(kernel.descriptor.entry_offset);
        for (const auto& program : programs_) {
            kernel.entry = program->at(entry);
            kernel.program = program.get();
            if (kernel.entry != Program::kNoInstruction) break;
        }
        if (kernel.program == nullptr || kernel.entry == Program::kNoInstruction)
            return damaged("an entry of kernel " + kernel.name + " inside of the code", "one outside");
        kernels_.push_back(std::move(kernel));
    }
    for (Kernel& kernel : kernels_)
        for (const KernelMetadata& metadata : metadata_.kernels)
            if (metadata.symbol == kernel.name + ".kd") kernel.metadata = &metadata;
    return {};
}

const Kernel* CodeObject::kernel(u64 object) const {
    for (const Kernel& kernel : kernels_)
        if (kernel.object == object) return &kernel;
    return nullptr;
}

const Kernel* CodeObject::kernel(std::string_view name) const {
    for (const Kernel& kernel : kernels_)
        if (kernel.name == name) return &kernel;
    return nullptr;
}

}  // namespace onebit::emulator
