// If this fails, scalar instructions (addresses, loop counters, masks) of emulated kernels are wrong.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "tests/hrx/emulator/cases.h"
#include "tests/hrx/emulator/machine.h"

namespace onebit::emulator {
namespace {

i64 S(u32 x) { return static_cast<i32>(x); }
// What an operation leaves: its result, and SCC (2: unchanged).
struct Outcome {
    u64 value;
    int scc = 2;
};
Outcome logic(u64 value) { return {value, value != 0 ? 1 : 0}; }

struct Row {
    const char* text;  // result in s0 or s[0:1], sources s4 and s6 (s[4:5], s[6:7])
    Outcome (*expected)(u64 a, u64 b, bool scc);
};

u64 ones(u64 x) {
    u64 count = 0;
    for (; x != 0; x >>= 1) count += x & 1;
    return count;
}
u64 mirrored(u64 x, int bits) {
    u64 result = 0;
    for (int k = 0; k < bits; ++k) result = result << 1 | (x >> k & 1);
    return result;
}
u64 position(u64 x, int bits, bool from_top) {
    for (int k = 0; k < bits; ++k)
        if ((x >> (from_top ? bits - 1 - k : k) & 1) != 0) return static_cast<u64>(k);
    return 0xffffffff;
}
u64 sign_run(u32 x) {
    u32 count = 0;
    while (count < 32 && (x >> (31 - count) & 1) == x >> 31) ++count;
    return count == 32 ? 0xffffffff : count;
}
// Field of b[22:16] bits from bit b[5:0] of an n-bit number.
u64 field(u64 a, u64 b, int n, bool is_signed) {
    const int offset = static_cast<int>(b) & (n - 1);
    const int width = std::min(static_cast<int>(b >> 16) & 0x7f, n);
    u64 result = 0;
    for (int k = 0; k < n; ++k) {
        const int from = std::min(offset + std::min(k, width - 1), n - 1);
        if (width == 0 || (!is_signed && (k >= width || offset + k >= n))) break;
        result |= (a >> from & 1) << k;
    }
    return result;
}

const Row kRows32[] = {
    {"s_mov_b32 s0, s4", [](u64 a, u64, bool) { return Outcome{a}; }},
    {"s_movk_i32 s0, 0x8001", [](u64, u64, bool) { return Outcome{0xffff8001}; }},
    {"s_brev_b32 s0, s4", [](u64 a, u64, bool) { return Outcome{mirrored(a, 32)}; }},
    {"s_ctz_i32_b32 s0, s4", [](u64 a, u64, bool) { return Outcome{position(a, 32, false)}; }},
    {"s_clz_i32_u32 s0, s4", [](u64 a, u64, bool) { return Outcome{position(a, 32, true)}; }},
    {"s_cls_i32 s0, s4", [](u64 a, u64, bool) { return Outcome{sign_run(static_cast<u32>(a))}; }},
    {"s_sext_i32_i8 s0, s4", [](u64 a, u64, bool) { return Outcome{static_cast<u32>(static_cast<i8>(a))}; }},
    {"s_sext_i32_i16 s0, s4", [](u64 a, u64, bool) { return Outcome{static_cast<u32>(static_cast<i16>(a))}; }},
    {"s_abs_i32 s0, s4", [](u64 a, u64, bool) { return logic(static_cast<u32>(std::llabs(S(static_cast<u32>(a))))); }},
    {"s_not_b32 s0, s4", [](u64 a, u64, bool) { return logic(static_cast<u32>(~a)); }},
    {"s_bcnt0_i32_b32 s0, s4", [](u64 a, u64, bool) { return logic(32 - ones(a)); }},
    {"s_bcnt1_i32_b32 s0, s4", [](u64 a, u64, bool) { return logic(ones(a)); }},
    {"s_add_u32 s0, s4, s6",
     [](u64 a, u64 b, bool) {
         return Outcome{static_cast<u32>(a + b), a + b > 0xffffffff};
     }},
    {"s_sub_u32 s0, s4, s6",
     [](u64 a, u64 b, bool) {
         return Outcome{static_cast<u32>(a - b), a < b};
     }},
    {"s_addc_u32 s0, s4, s6",
     [](u64 a, u64 b, bool c) {
         return Outcome{static_cast<u32>(a + b + c), a + b + c > 0xffffffff};
     }},
    {"s_subb_u32 s0, s4, s6",
     [](u64 a, u64 b, bool c) {
         return Outcome{static_cast<u32>(a - b - c), a < b + c};
     }},
    {"s_add_i32 s0, s4, s6",
     [](u64 a, u64 b, bool) {
         const i64 sum = S(static_cast<u32>(a)) + S(static_cast<u32>(b));
         return Outcome{static_cast<u32>(sum), sum != static_cast<i32>(sum)};
     }},
    {"s_sub_i32 s0, s4, s6",
     [](u64 a, u64 b, bool) {
         const i64 sum = S(static_cast<u32>(a)) - S(static_cast<u32>(b));
         return Outcome{static_cast<u32>(sum), sum != static_cast<i32>(sum)};
     }},
    {"s_absdiff_i32 s0, s4, s6",
     [](u64 a, u64 b, bool) {
         const i32 difference = static_cast<i32>(static_cast<u32>(a - b));
         return logic(
             static_cast<u32>(difference < 0 ? 0u - static_cast<u32>(difference) : static_cast<u32>(difference)));
     }},
    {"s_lshl_b32 s0, s4, s6", [](u64 a, u64 b, bool) { return logic(static_cast<u32>(a << b % 32)); }},
    {"s_lshr_b32 s0, s4, s6", [](u64 a, u64 b, bool) { return logic(a >> b % 32); }},
    {"s_ashr_i32 s0, s4, s6",
     [](u64 a, u64 b, bool) { return logic(static_cast<u32>(S(static_cast<u32>(a)) >> b % 32)); }},
    {"s_lshl1_add_u32 s0, s4, s6",
     [](u64 a, u64 b, bool) {
         return Outcome{static_cast<u32>(2 * a + b), 2 * a + b > 0xffffffff};
     }},
    {"s_lshl2_add_u32 s0, s4, s6",
     [](u64 a, u64 b, bool) {
         return Outcome{static_cast<u32>(4 * a + b), 4 * a + b > 0xffffffff};
     }},
    {"s_lshl3_add_u32 s0, s4, s6",
     [](u64 a, u64 b, bool) {
         return Outcome{static_cast<u32>(8 * a + b), 8 * a + b > 0xffffffff};
     }},
    {"s_lshl4_add_u32 s0, s4, s6",
     [](u64 a, u64 b, bool) {
         return Outcome{static_cast<u32>(16 * a + b), 16 * a + b > 0xffffffff};
     }},
    {"s_min_i32 s0, s4, s6",
     [](u64 a, u64 b, bool) {
         return S(static_cast<u32>(a)) < S(static_cast<u32>(b)) ? Outcome{a, 1} : Outcome{b, 0};
     }},
    {"s_min_u32 s0, s4, s6",
     [](u64 a, u64 b, bool) {
         return a < b ? Outcome{a, 1} : Outcome{b, 0};
     }},
    {"s_max_i32 s0, s4, s6",
     [](u64 a, u64 b, bool) {
         return S(static_cast<u32>(a)) >= S(static_cast<u32>(b)) ? Outcome{a, 1} : Outcome{b, 0};
     }},
    {"s_max_u32 s0, s4, s6",
     [](u64 a, u64 b, bool) {
         return a >= b ? Outcome{a, 1} : Outcome{b, 0};
     }},
    {"s_and_b32 s0, s4, s6", [](u64 a, u64 b, bool) { return logic(a & b); }},
    {"s_or_b32 s0, s4, s6", [](u64 a, u64 b, bool) { return logic(a | b); }},
    {"s_xor_b32 s0, s4, s6", [](u64 a, u64 b, bool) { return logic(a ^ b); }},
    {"s_nand_b32 s0, s4, s6", [](u64 a, u64 b, bool) { return logic(static_cast<u32>(~(a & b))); }},
    {"s_nor_b32 s0, s4, s6", [](u64 a, u64 b, bool) { return logic(static_cast<u32>(~(a | b))); }},
    {"s_xnor_b32 s0, s4, s6", [](u64 a, u64 b, bool) { return logic(static_cast<u32>(~(a ^ b))); }},
    {"s_and_not1_b32 s0, s4, s6", [](u64 a, u64 b, bool) { return logic(a & static_cast<u32>(~b)); }},
    {"s_or_not1_b32 s0, s4, s6", [](u64 a, u64 b, bool) { return logic(a | static_cast<u32>(~b)); }},
    {"s_bfe_u32 s0, s4, s6", [](u64 a, u64 b, bool) { return logic(field(a, b, 32, false)); }},
    {"s_bfe_i32 s0, s4, s6", [](u64 a, u64 b, bool) { return logic(field(a, b, 32, true)); }},
    {"s_bfm_b32 s0, s4, s6",
     [](u64 a, u64 b, bool) { return Outcome{static_cast<u32>(((u64{1} << a % 32) - 1) << b % 32)}; }},
    {"s_mul_i32 s0, s4, s6", [](u64 a, u64 b, bool) { return Outcome{static_cast<u32>(a * b)}; }},
    {"s_mul_hi_u32 s0, s4, s6", [](u64 a, u64 b, bool) { return Outcome{a * b >> 32}; }},
    {"s_mul_hi_i32 s0, s4, s6",
     [](u64 a, u64 b, bool) {
         return Outcome{static_cast<u32>(S(static_cast<u32>(a)) * S(static_cast<u32>(b)) >> 32)};
     }},
    {"s_cselect_b32 s0, s4, s6", [](u64 a, u64 b, bool scc) { return Outcome{scc ? a : b}; }},
    {"s_pack_ll_b32_b16 s0, s4, s6", [](u64 a, u64 b, bool) { return Outcome{(a & 0xffff) | (b & 0xffff) << 16}; }},
    {"s_pack_lh_b32_b16 s0, s4, s6", [](u64 a, u64 b, bool) { return Outcome{(a & 0xffff) | (b >> 16) << 16}; }},
    {"s_pack_hh_b32_b16 s0, s4, s6", [](u64 a, u64 b, bool) { return Outcome{a >> 16 | (b >> 16) << 16}; }},
    {"s_pack_hl_b32_b16 s0, s4, s6", [](u64 a, u64 b, bool) { return Outcome{a >> 16 | (b & 0xffff) << 16}; }},
    // these read their destination, which holds 0x5a5a0ff0
    {"s_cmov_b32 s0, s4", [](u64 a, u64, bool scc) { return Outcome{scc ? a : 0x5a5a0ff0}; }},
    {"s_cmovk_i32 s0, 0xfffe", [](u64, u64, bool scc) { return Outcome{scc ? 0xfffffffe : 0x5a5a0ff0}; }},
    {"s_bitset0_b32 s0, s4", [](u64 a, u64, bool) { return Outcome{0x5a5a0ff0 & ~(u64{1} << a % 32)}; }},
    {"s_bitset1_b32 s0, s4", [](u64 a, u64, bool) { return Outcome{0x5a5a0ff0 | u64{1} << a % 32}; }},
    {"s_addk_i32 s0, 0x8000", [](u64, u64, bool) { return Outcome{0x5a5a0ff0 - 0x8000, 0}; }},
    {"s_mulk_i32 s0, 0xfffd", [](u64, u64, bool) { return Outcome{static_cast<u32>(-3 * i64{0x5a5a0ff0})}; }},
};

const Row kRows64[] = {
    {"s_mov_b64 s[0:1], s[4:5]", [](u64 a, u64, bool) { return Outcome{a}; }},
    {"s_brev_b64 s[0:1], s[4:5]", [](u64 a, u64, bool) { return Outcome{mirrored(a, 64)}; }},
    {"s_not_b64 s[0:1], s[4:5]", [](u64 a, u64, bool) { return logic(~a); }},
    {"s_lshl_b64 s[0:1], s[4:5], s6", [](u64 a, u64 b, bool) { return logic(a << (b & 63)); }},
    {"s_lshr_b64 s[0:1], s[4:5], s6", [](u64 a, u64 b, bool) { return logic(a >> (b & 63)); }},
    {"s_ashr_i64 s[0:1], s[4:5], s6",
     [](u64 a, u64 b, bool) { return logic(static_cast<u64>(static_cast<i64>(a) >> (b & 63))); }},
    {"s_and_b64 s[0:1], s[4:5], s[6:7]", [](u64 a, u64 b, bool) { return logic(a & b); }},
    {"s_or_b64 s[0:1], s[4:5], s[6:7]", [](u64 a, u64 b, bool) { return logic(a | b); }},
    {"s_xor_b64 s[0:1], s[4:5], s[6:7]", [](u64 a, u64 b, bool) { return logic(a ^ b); }},
    {"s_nand_b64 s[0:1], s[4:5], s[6:7]", [](u64 a, u64 b, bool) { return logic(~(a & b)); }},
    {"s_nor_b64 s[0:1], s[4:5], s[6:7]", [](u64 a, u64 b, bool) { return logic(~(a | b)); }},
    {"s_xnor_b64 s[0:1], s[4:5], s[6:7]", [](u64 a, u64 b, bool) { return logic(~(a ^ b)); }},
    {"s_and_not1_b64 s[0:1], s[4:5], s[6:7]", [](u64 a, u64 b, bool) { return logic(a & ~b); }},
    {"s_or_not1_b64 s[0:1], s[4:5], s[6:7]", [](u64 a, u64 b, bool) { return logic(a | ~b); }},
    {"s_bfe_u64 s[0:1], s[4:5], s6", [](u64 a, u64 b, bool) { return logic(field(a, b & 0xffffffff, 64, false)); }},
    {"s_bfe_i64 s[0:1], s[4:5], s6", [](u64 a, u64 b, bool) { return logic(field(a, b & 0xffffffff, 64, true)); }},
    {"s_bfm_b64 s[0:1], s4, s6", [](u64 a, u64 b, bool) { return Outcome{((u64{1} << (a & 63)) - 1) << (b & 63)}; }},
    {"s_cselect_b64 s[0:1], s[4:5], s[6:7]", [](u64 a, u64 b, bool scc) { return Outcome{scc ? a : b}; }},
    {"s_cmov_b64 s[0:1], s[4:5]", [](u64 a, u64, bool scc) { return Outcome{scc ? a : 0x112233445a5a0ff0}; }},
    {"s_bitset0_b64 s[0:1], s4", [](u64 a, u64, bool) { return Outcome{0x112233445a5a0ff0 & ~(u64{1} << (a & 63))}; }},
    {"s_bitset1_b64 s[0:1], s4", [](u64 a, u64, bool) { return Outcome{0x112233445a5a0ff0 | u64{1} << (a & 63)}; }},
};
// 64-bit sources, 32-bit result.
const Row kRowsNarrow[] = {
    {"s_ctz_i32_b64 s0, s[4:5]", [](u64 a, u64, bool) { return Outcome{position(a, 64, false)}; }},
    {"s_clz_i32_u64 s0, s[4:5]", [](u64 a, u64, bool) { return Outcome{position(a, 64, true)}; }},
    {"s_bcnt0_i32_b64 s0, s[4:5]", [](u64 a, u64, bool) { return logic(64 - ones(a)); }},
    {"s_bcnt1_i32_b64 s0, s[4:5]", [](u64 a, u64, bool) { return logic(ones(a)); }},
};

void run_row(const Row& row, u64 a, u64 b, bool wide_sources, bool wide_result) {
    for (bool scc : {false, true}) {
        Machine machine;
        machine.s64(0, 0x112233445a5a0ff0).s64(4, a).s64(6, b).set_scc(scc).ok(row.text);
        const Outcome wanted =
            wide_sources ? row.expected(a, b, scc) : row.expected(a & 0xffffffff, b & 0xffffffff, scc);
        const u64 found = wide_result ? machine.get_s64(0) : machine.get_s(0);
        EXPECT_EQ(found, wide_result ? wanted.value : wanted.value & 0xffffffff)
            << row.text << std::hex << " a " << a << " b " << b << " scc " << scc;
        EXPECT_EQ(machine.scc(), wanted.scc == 2 ? scc : wanted.scc == 1)
            << row.text << std::hex << " a " << a << " b " << b;
    }
}

void arithmetic() {
    const std::vector<u32> edges = {0,          1,          5,          31,         0x7f,       0x80,
                                    0x8000,     0xffff,     0x7fffffff, 0x80000000, 0xffffffff, 0x12345678,
                                    0x00080004, 0x0020001f, 0x00400000, 0x00050000};
    for (const Row& row : kRows32)
        for (u32 a : edges)
            for (u32 b : edges) run_row(row, a, b, false, false);
    for (const Row& row : kRows64)
        for (u64 a : kInteger64Edges)
            for (u64 b : {u64{0}, u64{1}, u64{63}, u64{0x00100004}, u64{0x0040003f}, u64{0x123456789abcdef0}, ~u64{0}})
                run_row(row, a, b, true, true);
    for (const Row& row : kRowsNarrow)
        for (u64 a : kInteger64Edges) run_row(row, a, 0, true, false);
}

void comparisons() {
    struct Compare {
        const char* name;
        bool (*signed_or_not)(i64, i64);
    };
    const Compare compares[] = {
        {"eq", [](i64 a, i64 b) { return a == b; }}, {"lg", [](i64 a, i64 b) { return a != b; }},
        {"gt", [](i64 a, i64 b) { return a > b; }},  {"ge", [](i64 a, i64 b) { return a >= b; }},
        {"lt", [](i64 a, i64 b) { return a < b; }},  {"le", [](i64 a, i64 b) { return a <= b; }}};
    for (const Compare& compare : compares)
        for (bool is_signed : {false, true})
            for (u32 a : kIntegerEdges)
                for (u32 b : {0u, 1u, 0x7fffu, 0x8000u, 0xffffu, 0xffffffffu, 0x80000000u}) {
                    const std::string type = is_signed ? "_i32" : "_u32";
                    Machine machine;
                    machine.s(4, a).s(6, b).ok("s_cmp_" + std::string(compare.name) + type + " s4, s6");
                    EXPECT_EQ(machine.scc(),
                              is_signed ? compare.signed_or_not(S(a), S(b)) : compare.signed_or_not(a, b));
                    // the constant of the short form has 16 bits and is extended as the type says
                    const u32 k = b & 0xffff;
                    Machine constant;
                    constant.s(4, a).ok("s_cmpk_" + std::string(compare.name) + type + " s4, " + std::to_string(k));
                    const i64 extended = is_signed ? static_cast<i16>(k) : static_cast<i64>(k);
                    EXPECT_EQ(constant.scc(), compare.signed_or_not(is_signed ? S(a) : i64{a}, extended))
                        << compare.name << type << a << " " << k;
                }
    for (int bit : {0, 5, 31, 37}) {
        Machine machine;
        machine.s(4, 0x80000020).s(6, static_cast<u32>(bit)).ok("s_bitcmp1_b32 s4, s6");
        EXPECT_EQ(machine.scc(), (0x80000020u >> bit % 32 & 1) == 1);
        machine.ok("s_bitcmp0_b32 s4, s6");
        EXPECT_EQ(machine.scc(), (0x80000020u >> bit % 32 & 1) == 0);
        Machine wide;
        wide.s64(4, 0x2000000001).s(6, static_cast<u32>(bit)).ok("s_bitcmp1_b64 s[4:5], s6");
        EXPECT_EQ(wide.scc(), (0x2000000001u >> bit & 1) == 1);
        wide.ok("s_bitcmp0_b64 s[4:5], s6");
        EXPECT_EQ(wide.scc(), (0x2000000001u >> bit & 1) == 0);
    }
    for (u64 b : {u64{5}, u64{0x100000005}}) {
        Machine machine;
        machine.s64(4, 5).s64(6, b).ok("s_cmp_eq_u64 s[4:5], s[6:7]");
        EXPECT_EQ(machine.scc(), b == 5);
        machine.ok("s_cmp_lg_u64 s[4:5], s[6:7]");
        EXPECT_EQ(machine.scc(), b != 5);
    }
}

void exec_masks() {
    struct Row {
        const char* name;
        u32 (*formula)(u32 source, u32 exec);
    };
    for (const Row& row : {Row{"s_and_saveexec_b32", [](u32 s, u32 e) { return s & e; }},
                           Row{"s_or_saveexec_b32", [](u32 s, u32 e) { return s | e; }},
                           Row{"s_xor_saveexec_b32", [](u32 s, u32 e) { return s ^ e; }},
                           Row{"s_nand_saveexec_b32", [](u32 s, u32 e) { return ~(s & e); }},
                           Row{"s_nor_saveexec_b32", [](u32 s, u32 e) { return ~(s | e); }},
                           Row{"s_xnor_saveexec_b32", [](u32 s, u32 e) { return ~(s ^ e); }},
                           Row{"s_and_not0_saveexec_b32", [](u32 s, u32 e) { return ~s & e; }},
                           Row{"s_or_not0_saveexec_b32", [](u32 s, u32 e) { return ~s | e; }},
                           Row{"s_and_not1_saveexec_b32", [](u32 s, u32 e) { return s & ~e; }},
                           Row{"s_or_not1_saveexec_b32", [](u32 s, u32 e) { return s | ~e; }}})
        for (u32 source : {0u, 0xff00ff00u, 0xffffffffu, kHalfExec}) {
            Machine machine;
            machine.s(4, source).exec(kHalfExec).ok(std::string(row.name) + " s0, s4");
            EXPECT_EQ(machine.get_s(0), kHalfExec) << row.name;
            EXPECT_EQ(machine.get_s(kExec), row.formula(source, kHalfExec)) << row.name;
            EXPECT_EQ(machine.scc(), row.formula(source, kHalfExec) != 0) << row.name;
        }
    for (const Row& row : {Row{"s_and_not0_wrexec_b32", [](u32 s, u32 e) { return ~s & e; }},
                           Row{"s_and_not1_wrexec_b32", [](u32 s, u32 e) { return s & ~e; }}}) {
        Machine machine;
        machine.s(4, 0xff00ff00).exec(kHalfExec).ok(std::string(row.name) + " s0, s4");
        EXPECT_EQ(machine.get_s(0), row.formula(0xff00ff00, kHalfExec)) << row.name;
        EXPECT_EQ(machine.get_s(kExec), row.formula(0xff00ff00, kHalfExec)) << row.name;
    }
}

// RDNA3.5's scalar floats.
void floats() {
    struct Row {
        const char* text;
        float (*formula)(float, float, float);
    };
    for (const Row& row : {Row{"s_add_f32 s0, s4, s6", [](float a, float b, float) { return a + b; }},
                           Row{"s_sub_f32 s0, s4, s6", [](float a, float b, float) { return a - b; }},
                           Row{"s_mul_f32 s0, s4, s6", [](float a, float b, float) { return a * b; }},
                           Row{"s_min_f32 s0, s4, s6", [](float a, float b, float) { return a < b ? a : b; }},
                           Row{"s_max_f32 s0, s4, s6", [](float a, float b, float) { return a > b ? a : b; }},
                           Row{"s_fmaak_f32 s0, s4, s6, 0x40490fdb",
                               [](float a, float b, float) { return std::fma(a, b, as_f32(0x40490fdb)); }},
                           Row{"s_fmamk_f32 s0, s4, 0x40490fdb, s6",
                               [](float a, float b, float) { return std::fma(a, as_f32(0x40490fdb), b); }},
                           Row{"s_fmac_f32 s0, s4, s6", [](float a, float b, float c) { return std::fma(a, b, c); }},
                           Row{"s_ceil_f32 s0, s4", [](float a, float, float) { return std::ceil(a); }},
                           Row{"s_floor_f32 s0, s4", [](float a, float, float) { return std::floor(a); }},
                           Row{"s_trunc_f32 s0, s4", [](float a, float, float) { return std::trunc(a); }},
                           Row{"s_rndne_f32 s0, s4", [](float a, float, float) { return std::nearbyint(a); }}})
        for (float a : {0.5f, -2.5f, 3.75f, 1e30f})
            for (float b : {1.0f, -7.25f}) {
                Machine machine;
                machine.s(0, bits_of(2.0f)).s(4, bits_of(a)).s(6, bits_of(b)).ok(row.text);
                EXPECT_EQ(machine.get_s(0), bits_of(row.formula(a, b, 2.0f))) << row.text << " " << a << " " << b;
            }
    Machine machine;
    machine.s(4, 0xfffffff9).s(5, bits_of(-7.5f)).s(6, 0x3c004200);
    machine.ok(R"(
        s_cvt_f32_i32 s8, s4
        s_cvt_f32_u32 s9, s4
        s_cvt_i32_f32 s10, s5
        s_cvt_u32_f32 s11, s5
        s_cvt_f16_f32 s12, s5
        s_cvt_f32_f16 s13, s6
        s_cvt_hi_f32_f16 s14, s6)");
    EXPECT_EQ(machine.get_s(8), bits_of(-7.0f));
    EXPECT_EQ(machine.get_s(9), bits_of(4294967289.0f));
    EXPECT_EQ(machine.get_s(10), static_cast<u32>(-7));
    EXPECT_EQ(machine.get_s(11), 0u);
    EXPECT_EQ(machine.get_s(12), bits_of(static_cast<f16>(-7.5f)));
    EXPECT_EQ(machine.get_s(13), bits_of(3.0f));
    EXPECT_EQ(machine.get_s(14), bits_of(1.0f));
    // to halves towards zero: 2049 has no half of its own, 65520 would be rounded to infinity
    Machine packing;
    packing.s(4, bits_of(-2049.0f)).s(6, bits_of(65520.0f)).s(7, bits_of(1.0f / 3.0f)).s(8, 0x7f800000);
    packing.ok(R"(
        s_cvt_pk_rtz_f16_f32 s0, s4, s6
        s_cvt_pk_rtz_f16_f32 s1, s7, s8)");
    EXPECT_EQ(packing.get_s(0), 0x7bffe800u);
    EXPECT_EQ(packing.get_s(1), 0x7c003555u);
    const float nan = as_f32(0x7fc00000);
    struct Compare {
        const char* name;
        int accepted;  // 1 less, 2 equal, 4 greater, 8 unordered
    };
    for (const Compare& compare :
         {Compare{"lt", 1}, Compare{"eq", 2}, Compare{"le", 3}, Compare{"gt", 4}, Compare{"lg", 5}, Compare{"ge", 6},
          Compare{"o", 7}, Compare{"u", 8}, Compare{"nge", 9}, Compare{"nlg", 10}, Compare{"ngt", 11},
          Compare{"nle", 12}, Compare{"neq", 13}, Compare{"nlt", 14}})
        for (float b : {1.0f, 2.0f, 3.0f, nan}) {
            Machine compared;
            compared.s(4, bits_of(2.0f)).s(6, bits_of(b)).ok("s_cmp_" + std::string(compare.name) + "_f32 s4, s6");
            const int relation = std::isnan(b) ? 8 : 2.0f < b ? 1 : 2.0f == b ? 2 : 4;
            EXPECT_EQ(compared.scc(), (compare.accepted & relation) != 0) << compare.name << " " << b;
        }
}

void halves() {
    struct Row {
        const char* text;
        double (*formula)(double, double, double);
    };
    for (const Row& row : {Row{"s_add_f16 s0, s4, s6", [](double a, double b, double) { return a + b; }},
                           Row{"s_sub_f16 s0, s4, s6", [](double a, double b, double) { return a - b; }},
                           Row{"s_mul_f16 s0, s4, s6", [](double a, double b, double) { return a * b; }},
                           Row{"s_min_f16 s0, s4, s6", [](double a, double b, double) { return a < b ? a : b; }},
                           Row{"s_max_f16 s0, s4, s6", [](double a, double b, double) { return a > b ? a : b; }},
                           Row{"s_fmac_f16 s0, s4, s6", [](double a, double b, double c) { return a * b + c; }},
                           Row{"s_ceil_f16 s0, s4", [](double a, double, double) { return std::ceil(a); }},
                           Row{"s_floor_f16 s0, s4", [](double a, double, double) { return std::floor(a); }},
                           Row{"s_trunc_f16 s0, s4", [](double a, double, double) { return std::trunc(a); }},
                           Row{"s_rndne_f16 s0, s4", [](double a, double, double) { return std::nearbyint(a); }}})
        for (double a : {0.5, -2.5, 3.75})
            for (double b : {1.0, -7.25}) {
                auto bits = [](double x) { return bits_of(static_cast<f16>(x)); };
                Machine machine;
                machine.s(0, bits(2.0)).s(4, 0xffff0000u | bits(a)).s(6, bits(b)).ok(row.text);
                EXPECT_EQ(machine.get_s(0) & 0xffff, bits(row.formula(a, b, 2.0))) << row.text << a << b;
            }
    struct Compare {
        const char* name;
        int accepted;
    };
    for (const Compare& compare :
         {Compare{"lt", 1}, Compare{"eq", 2}, Compare{"le", 3}, Compare{"gt", 4}, Compare{"lg", 5}, Compare{"ge", 6},
          Compare{"o", 7}, Compare{"u", 8}, Compare{"nge", 9}, Compare{"nlg", 10}, Compare{"ngt", 11},
          Compare{"nle", 12}, Compare{"neq", 13}, Compare{"nlt", 14}})
        for (u32 b : {0x3c00u, 0x4000u, 0x4200u, 0x7e00u}) {
            Machine compared;
            compared.s(4, 0x4000).s(6, b).ok("s_cmp_" + std::string(compare.name) + "_f16 s4, s6");
            const int relation = b == 0x7e00 ? 8 : b > 0x4000 ? 1 : b == 0x4000 ? 2 : 4;
            EXPECT_EQ(compared.scc(), (compare.accepted & relation) != 0) << compare.name << b;
        }
}

}  // namespace

void scalar_cases() {
    halves();
    arithmetic();
    comparisons();
    exec_masks();
    floats();
}

TEST(Scalar, Arithmetic) { arithmetic(); }
TEST(Scalar, Comparisons) { comparisons(); }
TEST(Scalar, ExecMasks) { exec_masks(); }
TEST(Scalar, Floats) { floats(); }
TEST(Scalar, Halves) { halves(); }
TEST(Scalar, SpecialSources) {
    Machine machine;
    machine.s(kVcc, 0).exec(0).set_scc(true).ok(
        "s_mov_b64 s[0:1], src_shared_base\ns_mov_b64 s[2:3], src_private_base");
    EXPECT_EQ(machine.get_s64(0), u64{kSharedApertureHigh} << 32);
    EXPECT_EQ(machine.get_s64(2), u64{kPrivateApertureHigh} << 32);
    machine.ok("s_mov_b32 s4, null\ns_mov_b64 s[6:7], 0xfffffff0\ns_mov_b64 s[8:9], -2\ns_mov_b64 null, -1");
    EXPECT_EQ(machine.get_s(4), 0u);
    EXPECT_EQ(machine.get_s64(6), 0xfffffff0u);
    EXPECT_EQ(machine.get_s64(8), ~u64{1});
    EXPECT_EQ(machine.get_s(kExec), 0u);
}

}  // namespace onebit::emulator
