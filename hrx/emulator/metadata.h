// The AMDGPU metadata note of a code object (msgpack; LLVM's "Code Object V5 Metadata").
#pragma once

#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "hrx/emulator/types.h"

namespace onebit::emulator {

struct KernelArgument {
    std::string name;
    std::string kind;  // "global_buffer", "by_value", "hidden_block_count_x"
    u32 offset = 0;
    u32 size = 0;
};

struct KernelMetadata {
    std::string name;
    std::string symbol;  // "NAME.kd"
    u32 kernarg_bytes = 0;
    u32 kernarg_alignment = 8;
    u32 group_bytes = 0;
    u32 private_bytes = 0;
    u32 vector_registers = 0;
    u32 scalar_registers = 0;
    u32 wave_size = 0;
    u32 maximal_group_size = 0;
    bool dynamic_stack = false;
    std::vector<KernelArgument> arguments;
};

struct Metadata {
    std::string target;  // "amdgcn-amd-amdhsa--gfx1151"
    std::vector<KernelMetadata> kernels;
};

// note: the msgpack document.
Result<Metadata> parse_metadata(std::span<const u8> note);

}  // namespace onebit::emulator
