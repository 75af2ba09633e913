// Handlers of scalar operations from formulas; formulas set SCC through their last argument.
#pragma once

#include "hrx/emulator/bind.h"
#include "hrx/emulator/wave.h"

namespace onebit::emulator {

// F(a, b, scc) on 32-bit operands.
template <auto F>
void scalar_32(Wave& wave, const Instruction& i) {
    const u32 a = wave.scalar(i.source[0]);
    const u32 b = i.sources > 1 ? wave.scalar(i.source[1]) : 0;
    bool scc = wave.scc;
    wave.set_scalar(i.destination, static_cast<u32>(F(a, b, scc)));
    wave.scc = scc;
}
// F(a, b, scc) on 64-bit operands or 32-bit ones, as the operands' words say.
template <auto F>
void scalar_64(Wave& wave, const Instruction& i) {
    auto read = [&](const Operand& o) { return o.words == 2 ? wave.scalar64(o) : u64{wave.scalar(o)}; };
    const u64 a = read(i.source[0]);
    const u64 b = i.sources > 1 ? read(i.source[1]) : 0;
    bool scc = wave.scc;
    const u64 result = F(a, b, scc);
    if (i.destination.words == 2)
        wave.set_scalar64(i.destination, result);
    else
        wave.set_scalar(i.destination, static_cast<u32>(result));
    wave.scc = scc;
}
// SCC = F(a, b).
template <auto F>
void scalar_compare(Wave& wave, const Instruction& i) {
    wave.scc = F(wave.scalar(i.source[0]), wave.scalar(i.source[1]));
}

// value of a row for bind_scalar
inline constexpr u32 kNoDestination = 1;     // comparisons
inline constexpr u32 kReadsDestination = 2;  // the old destination is the first source (SOPK and conditional moves)
inline constexpr u32 kCopies = 4;            // a plain move

}  // namespace onebit::emulator
