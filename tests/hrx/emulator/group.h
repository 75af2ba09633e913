// Runs assembly as a kernel over whole groups on an engine: v0 the packed work-item number, s[0:1] the arguments, s2
// the group's number.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "hrx/emulator/engine.h"
#include "tests/hrx/emulator/assembler.h"

namespace onebit::emulator {

class GroupRun {
public:
    explicit GroupRun(Mode mode = Mode::checked, u32 workers = 2) {
        settings_.mode = mode;
        settings_.workers = workers;
        settings_.instructions_per_wave = 1000000;
    }
    GroupRun& lds(u32 bytes) {
        dispatch_.group_bytes = bytes;
        return *this;
    }
    GroupRun& scratch(u32 bytes) {
        dispatch_.private_bytes = bytes;
        return *this;
    }
    GroupRun& vector_registers(u32 count) {
        registers_ = count;
        return *this;
    }
    // Words that kernels may write, shared by all; their address is the only argument.
    std::vector<u32>& words() { return words_; }

    std::optional<Trap> run(const std::string& assembly, u32 grid, u32 group) {
        auto bytes = assemble(assembly + "\ns_endpgm\n");
        bytes.insert(bytes.end(), 64, 0);
        auto program = build_program(bytes, 0x10000, 0, "gfx1151");
        EXPECT_TRUE(program.ok());
        if (!program.ok()) return Trap{};
        Kernel kernel;
        kernel.name = "test";
        kernel.program = program->get();
        kernel.descriptor.rsrc1 = registers_ / 8 - 1;
        kernel.descriptor.rsrc2 = 2u << 1 | 1u << 7;
        kernel.descriptor.properties = 8 | 1u << 10;
        MemoryMap memory;
        const u64 arguments[2] = {reinterpret_cast<u64>(words_.data()), 0};
        memory.add({reinterpret_cast<u64>(arguments), sizeof(arguments), false});
        if (!words_.empty()) memory.add({arguments[0], words_.size() * 4, true});
        dispatch_.kernel = &kernel;
        dispatch_.grid[0] = grid;
        dispatch_.group[0] = group;
        dispatch_.kernarg = reinterpret_cast<u64>(arguments);
        Engine engine(memory, settings_);
        auto trap = engine.run(dispatch_);
        instructions_ = engine.instructions();
        return trap;
    }
    u64 instructions() const { return instructions_; }
    Settings& settings() { return settings_; }

private:
    Settings settings_;
    Dispatch dispatch_;
    u32 registers_ = 64;
    std::vector<u32> words_;
    u64 instructions_ = 0;
};

}  // namespace onebit::emulator
