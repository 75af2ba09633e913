#include "engine/bench.h"

// The text is part of the program, so that an installed one compares by the same tokens as one in its source folder.
asm(R"(
    .section .rodata
    .balign 16
    .global onebit_held_out_begin
    .hidden onebit_held_out_begin
onebit_held_out_begin:
    .incbin ")" ONEBIT_HELD_OUT_TEXT R"("
    .global onebit_held_out_end
    .hidden onebit_held_out_end
onebit_held_out_end:
    .byte 0
    .previous
)");

extern "C" {
extern const char onebit_held_out_begin[];
extern const char onebit_held_out_end[];
}

namespace onebit {

std::string held_out_text() { return {onebit_held_out_begin, onebit_held_out_end}; }

}  // namespace onebit
