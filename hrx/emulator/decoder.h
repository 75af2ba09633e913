// Decodes AMDGPU machine code with LLVM's MC layer into assembly text; nothing of LLVM shows in this header.
// Threads: a Decoder belongs to one thread at a time.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "hrx/emulator/types.h"

namespace onebit::emulator {

struct Decoded {
    std::string text;             // "v_add_f32_e32 v0, v1, v2"
    u32 bytes = 0;                // its length
    std::vector<i64> immediates;  // every immediate operand in MC's order: branch distance, counters, messages
};

class Decoder {
public:
    // processor: "gfx1151". Error when LLVM does not know it.
    static Result<Decoder> create(const std::string& processor);
    Decoder(Decoder&&) noexcept;
    Decoder& operator=(Decoder&&) noexcept;
    ~Decoder();

    // The instruction at the start of `code`; nullopt when it is none.
    std::optional<Decoded> decode(std::span<const u8> code, u64 pc);

private:
    struct Parts;
    explicit Decoder(std::unique_ptr<Parts> parts);
    std::unique_ptr<Parts> parts_;
};

}  // namespace onebit::emulator
