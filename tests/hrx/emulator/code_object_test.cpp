// If this fails, code objects are loaded wrongly, or damaged ones crash the process.
#include "hrx/emulator/code_object.h"

#include <elf.h>
#include <gtest/gtest.h>

#include <cstring>
#include <fstream>

#include "hrx/emulator/engine.h"
#include "hrx/emulator/packet.h"

namespace onebit::emulator {
namespace {

std::vector<u8> kernel_file() {
    std::ifstream file(ONEBIT_TEST_KERNELS, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
}

}  // namespace

TEST(CodeObject, DescribesItsKernels) {
    MemoryMap memory;
    auto object = CodeObject::load(kernel_file(), memory);
    ASSERT_TRUE(object.ok()) << object.error().message();
    EXPECT_EQ((*object)->processor(), "gfx1151");
    EXPECT_EQ((*object)->metadata().target, "amdgcn-amd-amdhsa--gfx1151");
    const Kernel* kernel = (*object)->kernel("rms_norm");
    ASSERT_NE(kernel, nullptr);
    EXPECT_EQ((*object)->kernel(kernel->object), kernel);
    EXPECT_EQ((*object)->kernel(kernel->object + 8), nullptr);
    EXPECT_EQ((*object)->kernel("none"), nullptr);
    EXPECT_EQ(kernel->descriptor.group_bytes, 32u);
    EXPECT_EQ(kernel->descriptor.kernarg_bytes, 32u);
    EXPECT_TRUE(kernel->descriptor.wave32());
    ASSERT_NE(kernel->metadata, nullptr);
    ASSERT_GE(kernel->metadata->arguments.size(), 5u);
    EXPECT_EQ(kernel->metadata->arguments[3].offset, 24u);
    EXPECT_EQ(kernel->metadata->arguments[3].size, 4u);
    EXPECT_EQ(kernel->metadata->arguments[0].kind, "global_buffer");
    EXPECT_EQ(kernel->metadata->wave_size, 32u);
}

TEST(CodeObject, EveryInstructionOfTheKernelsIsKnown) {
    MemoryMap memory;
    auto object = CodeObject::load(kernel_file(), memory);
    ASSERT_TRUE(object.ok());
    const Program& program = *(*object)->kernels().front().program;
    for (std::size_t k = 0; k + 1 < program.details.size(); ++k)
        EXPECT_FALSE(program.details[k].unknown) << program.details[k].text << ": " << program.details[k].problem;
}

TEST(CodeObject, MemoryIsGivenBack) {
    MemoryMap memory;
    {
        auto object = CodeObject::load(kernel_file(), memory);
        ASSERT_TRUE(object.ok());
        EXPECT_FALSE(memory.table()->empty());
        // code and descriptors are read-only
        const Region region = *memory.find((*object)->kernels().front().object);
        EXPECT_FALSE(region.writable);
    }
    EXPECT_TRUE(memory.table()->empty());
}

TEST(CodeObject, DamagedFilesAreRefused) {
    const std::vector<u8> good = kernel_file();
    MemoryMap memory;
    for (std::size_t size :
         {std::size_t{0}, std::size_t{1}, std::size_t{63}, std::size_t{64}, std::size_t{200}, good.size() / 2}) {
        auto object = CodeObject::load(std::span(good).first(size), memory);
        EXPECT_FALSE(object.ok()) << size;
    }
    auto broken = [&](std::size_t offset, std::initializer_list<u8> bytes) {
        std::vector<u8> file = good;
        std::copy(bytes.begin(), bytes.end(), file.begin() + static_cast<std::ptrdiff_t>(offset));
        return CodeObject::load(file, memory);
    };
    EXPECT_FALSE(broken(0, {0x7e}).ok());
    EXPECT_FALSE(broken(offsetof(Elf64_Ehdr, e_machine), {62, 0}).ok());
    auto other = broken(offsetof(Elf64_Ehdr, e_flags), {0x36});
    ASSERT_FALSE(other.ok());
    EXPECT_EQ(other.error().code, ErrorCode::unsupported);
    EXPECT_FALSE(broken(offsetof(Elf64_Ehdr, e_phoff), {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff}).ok());
}

TEST(CodeObject, NoBytePatternCrashes) {
    const std::vector<u8> good = kernel_file();
    u32 state = 99;
    for (int round = 0; round < 100; ++round) {
        std::vector<u8> file = good;
        // headers, program headers, dynamic tables and descriptors
        for (int k = 0; k < 4; ++k) {
            state = state * 1664525 + 1013904223;
            file[(state >> 8) % std::min<std::size_t>(file.size(), 0xc00)] = static_cast<u8>(state >> 24);
        }
        MemoryMap memory;
        auto object = CodeObject::load(file, memory);
        if (object.ok()) SUCCEED();
    }
}

// Where the descriptor of the first kernel lies in the file, which holds it as it is loaded.
std::size_t descriptor_in(const std::vector<u8>& file) {
    MemoryMap memory;
    auto object = CodeObject::load(file, memory);
    EXPECT_TRUE(object.ok());
    if (!object.ok()) return 0;
    const auto* bytes = reinterpret_cast<const u8*>((*object)->kernels().front().object);
    return static_cast<std::size_t>(std::search(file.begin(), file.end(), bytes, bytes + 64) - file.begin());
}

TEST(CodeObject, ModesThatAreNotInterpretedAreRefused) {
    struct Edit {
        std::size_t byte;
        u8 clear;
        const char* found;
    };
    // rsrc1 is at 48, the properties at 56
    for (const Edit& edit : {Edit{57, 4, "64 lanes"}, Edit{50, 0x20, "DX10_CLAMP"}, Edit{50, 0x01, "denormals"}}) {
        std::vector<u8> file = kernel_file();
        const std::size_t descriptor = descriptor_in(file);
        ASSERT_LT(descriptor + 64, file.size());
        ASSERT_NE(file[descriptor + edit.byte] & edit.clear, 0) << edit.found;
        file[descriptor + edit.byte] &= static_cast<u8>(~edit.clear);
        MemoryMap memory;
        auto object = CodeObject::load(file, memory);
        ASSERT_FALSE(object.ok()) << edit.found;
        EXPECT_NE(object.error().message().find(edit.found), std::string::npos) << object.error().message();
    }
}

// Code is what the file holds: a segment that asks for a gigabyte of zeroes behind it must not become as many
// instructions.
TEST(CodeObject, ZeroesBehindTheCodeAreNoCode) {
    std::vector<u8> file = kernel_file();
    Elf64_Ehdr header;
    std::memcpy(&header, file.data(), sizeof(header));
    u32 code_segments = 0;
    for (u32 k = 0; k < header.e_phnum; ++k) {
        u8* at = &file[header.e_phoff + k * sizeof(Elf64_Phdr)];
        Elf64_Phdr segment;
        std::memcpy(&segment, at, sizeof(segment));
        if (segment.p_type != PT_LOAD || (segment.p_flags & PF_X) == 0) continue;
        segment.p_memsz = u64{1} << 30;
        std::memcpy(at, &segment, sizeof(segment));
        ++code_segments;
    }
    ASSERT_EQ(code_segments, 1u);
    MemoryMap memory;
    auto object = CodeObject::load(file, memory);
    ASSERT_TRUE(object.ok()) << object.error().message();
    EXPECT_LT((*object)->kernels().front().program->code.size(), file.size());
}

// A relocation may write anywhere in the image, over the zero at the end of the names too.
TEST(CodeObject, RelocationsOverTheNamesDoNoHarm) {
    std::vector<u8> file = kernel_file();
    Elf64_Ehdr header;
    std::memcpy(&header, file.data(), sizeof(header));
    auto in_file = [&](u64 address) {
        for (u32 k = 0; k < header.e_phnum; ++k) {
            Elf64_Phdr segment;
            std::memcpy(&segment, &file[header.e_phoff + k * sizeof(segment)], sizeof(segment));
            if (segment.p_type == PT_LOAD && address >= segment.p_vaddr && address < segment.p_vaddr + segment.p_filesz)
                return address - segment.p_vaddr + segment.p_offset;
        }
        ADD_FAILURE() << "no segment holds " << address;
        return u64{0};
    };
    for (u32 k = 0; k < header.e_phnum; ++k) {
        Elf64_Phdr segment;
        std::memcpy(&segment, &file[header.e_phoff + k * sizeof(segment)], sizeof(segment));
        if (segment.p_type != PT_DYNAMIC) continue;
        const auto entries = segment.p_filesz / sizeof(Elf64_Dyn);
        std::vector<Elf64_Dyn> dynamic(entries);
        std::memcpy(dynamic.data(), &file[segment.p_offset], entries * sizeof(Elf64_Dyn));
        u64 names = 0, bytes = 0;
        Elf64_Dyn* spare[2] = {};
        for (Elf64_Dyn& entry : dynamic) {
            if (entry.d_tag == DT_STRTAB) names = entry.d_un.d_ptr;
            if (entry.d_tag == DT_STRSZ) bytes = entry.d_un.d_val;
            // the hash of GNU and the size of a symbol are not read
            if (entry.d_tag == DT_GNU_HASH) spare[0] = &entry;
            if (entry.d_tag == DT_SYMENT) spare[1] = &entry;
        }
        ASSERT_TRUE(spare[0] != nullptr && spare[1] != nullptr && bytes >= 32);
        // the relocation lies in the names, and writes ones over their end
        const Elf64_Rela relocation{names + bytes - 8, 13, -1};
        std::memcpy(&file[in_file(names)], &relocation, sizeof(relocation));
        *spare[0] = {DT_RELA, {names}};
        *spare[1] = {DT_RELASZ, {sizeof(relocation)}};
        std::memcpy(&file[segment.p_offset], dynamic.data(), entries * sizeof(Elf64_Dyn));
    }
    MemoryMap memory;
    auto object = CodeObject::load(file, memory);
    if (!object.ok()) GTEST_SUCCEED() << object.error().message();
}

// What a kernel's metadata claims does not lift the limits of the hardware.
TEST(CodeObject, MetadataDoesNotRaiseTheLimitOfAGroup) {
    KernelMetadata metadata;
    metadata.maximal_group_size = 0xffffffff;
    Kernel kernel;
    kernel.metadata = &metadata;
    hsa_kernel_dispatch_packet_t packet{};
    packet.setup = 3;
    packet.workgroup_size_x = packet.workgroup_size_y = packet.workgroup_size_z = 0xffff;
    packet.grid_size_x = packet.grid_size_y = packet.grid_size_z = 0xffff;
    MemoryMap memory;
    std::string problem;
    read_dispatch(packet, kernel, memory, problem);
    EXPECT_NE(problem.find("at most 1024"), std::string::npos) << problem;
    metadata.maximal_group_size = 64;
    packet.setup = 1;
    packet.workgroup_size_x = 65;
    problem.clear();
    read_dispatch(packet, kernel, memory, problem);
    EXPECT_NE(problem.find("at most 64"), std::string::npos) << problem;
}

// A compiled kernel whose waits are edited away must not pass.
TEST(CodeObject, WithoutItsWaitsAKernelTraps) {
    std::vector<u8> file = kernel_file();
    int edited = 0;
    for (std::size_t at = 0; at + 4 <= file.size(); at += 4) {
        u32 word = 0;
        std::memcpy(&word, &file[at], 4);
        // s_waitcnt is 0xbf89xxxx, s_nop 0xbf80xxxx
        if (word >> 16 != 0xbf89) continue;
        word = 0xbf800000;
        std::memcpy(&file[at], &word, 4);
        ++edited;
    }
    ASSERT_GT(edited, 5);
    MemoryMap memory;
    auto object = CodeObject::load(file, memory);
    ASSERT_TRUE(object.ok());
    std::vector<float> data(512);
    struct {
        u64 c, a, b;
        int n;
    } arguments{reinterpret_cast<u64>(data.data()), reinterpret_cast<u64>(data.data()),
                reinterpret_cast<u64>(data.data()), 256};
    memory.add({reinterpret_cast<u64>(data.data()), data.size() * 4, true});
    memory.add({reinterpret_cast<u64>(&arguments), sizeof(arguments), false});
    Dispatch dispatch;
    dispatch.kernel = (*object)->kernel("vec_add");
    dispatch.grid[0] = dispatch.group[0] = 256;
    dispatch.kernarg = reinterpret_cast<u64>(&arguments);
    auto trap = Engine(memory, Settings{}).run(dispatch);
    ASSERT_TRUE(trap);
    EXPECT_EQ(trap->kind, TrapKind::missing_wait) << trap->message();
    EXPECT_EQ(trap->kernel, "vec_add");
}

}  // namespace onebit::emulator
