// If this fails, code objects are loaded wrongly, or damaged ones crash the process.
#include "hrx/emulator/code_object.h"

#include <elf.h>
#include <gtest/gtest.h>

#include <cstring>
#include <fstream>

#include "hrx/emulator/engine.h"

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

TEST(CodeObject, WavesOf64AreRefused) {
    std::vector<u8> file = kernel_file();
    MemoryMap memory;
    u64 descriptor = 0;
    {
        auto object = CodeObject::load(file, memory);
        ASSERT_TRUE(object.ok());
        const Kernel& kernel = (*object)->kernels().front();
        // the file holds the descriptor as it is loaded
        const auto* bytes = reinterpret_cast<const u8*>(kernel.object);
        descriptor = static_cast<u64>(std::search(file.begin(), file.end(), bytes, bytes + 64) - file.begin());
    }
    ASSERT_LT(descriptor + 64, file.size());
    file[descriptor + 57] &= static_cast<u8>(~4u);
    auto object = CodeObject::load(file, memory);
    ASSERT_FALSE(object.ok());
    EXPECT_NE(object.error().message().find("64 lanes"), std::string::npos);
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
