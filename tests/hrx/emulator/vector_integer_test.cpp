// If this fails, integer and bit instructions of emulated kernels give wrong numbers.
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/hrx/emulator/cases.h"
#include "tests/hrx/emulator/machine.h"

namespace onebit::emulator {
namespace {

using Formula = u32 (*)(u32, u32, u32);
struct Row {
    const char* name;
    int sources;
    Formula formula;
    bool half = false;  // a 16-bit operation: sees low halves, writes the low half
};

i64 S(u32 x) { return static_cast<i32>(x); }
i32 S16(u32 x) { return static_cast<i16>(x); }
i64 S24(u32 x) { return S(x << 8) >> 8; }
u64 W(u32 x) { return x; }
u32 clamp_to(i64 value, i64 least, i64 most) { return static_cast<u32>(std::clamp(value, least, most)); }

u32 leading_equal(u32 x) {
    u32 count = 0;
    while (count < 32 && (x >> (31 - count) & 1) == (x >> 31)) ++count;
    return count == 32 ? 0xffffffffu : count;
}
u32 first_set(u32 x, bool from_top) {
    for (u32 k = 0; k < 32; ++k)
        if ((x >> (from_top ? 31 - k : k) & 1) != 0) return k;
    return 0xffffffffu;
}
u32 mirrored(u32 x) {
    u32 result = 0;
    for (int k = 0; k < 32; ++k) result = result << 1 | (x >> k & 1);
    return result;
}
u32 ones(u32 x) {
    u32 count = 0;
    for (; x != 0; x >>= 1) count += x & 1;
    return count;
}

const Row kRows[] = {
    {"v_mov_b32", 1, [](u32 a, u32, u32) { return a; }},
    {"v_not_b32", 1, [](u32 a, u32, u32) { return ~a; }},
    {"v_bfrev_b32", 1, [](u32 a, u32, u32) { return mirrored(a); }},
    {"v_clz_i32_u32", 1, [](u32 a, u32, u32) { return first_set(a, true); }},
    {"v_ctz_i32_b32", 1, [](u32 a, u32, u32) { return first_set(a, false); }},
    {"v_cls_i32", 1, [](u32 a, u32, u32) { return leading_equal(a); }},
    {"v_and_b32", 2, [](u32 a, u32 b, u32) { return a & b; }},
    {"v_or_b32", 2, [](u32 a, u32 b, u32) { return a | b; }},
    {"v_xor_b32", 2, [](u32 a, u32 b, u32) { return a ^ b; }},
    {"v_xnor_b32", 2, [](u32 a, u32 b, u32) { return ~(a ^ b); }},
    {"v_add_nc_u32", 2, [](u32 a, u32 b, u32) { return a + b; }},
    {"v_sub_nc_u32", 2, [](u32 a, u32 b, u32) { return a - b; }},
    {"v_subrev_nc_u32", 2, [](u32 a, u32 b, u32) { return b - a; }},
    {"v_add_nc_i32", 2, [](u32 a, u32 b, u32) { return a + b; }},
    {"v_sub_nc_i32", 2, [](u32 a, u32 b, u32) { return a - b; }},
    {"v_mul_lo_u32", 2, [](u32 a, u32 b, u32) { return static_cast<u32>(W(a) * b); }},
    {"v_mul_hi_u32", 2, [](u32 a, u32 b, u32) { return static_cast<u32>(W(a) * b >> 32); }},
    {"v_mul_hi_i32", 2, [](u32 a, u32 b, u32) { return static_cast<u32>(S(a) * S(b) >> 32); }},
    {"v_mul_i32_i24", 2, [](u32 a, u32 b, u32) { return static_cast<u32>(S24(a) * S24(b)); }},
    {"v_mul_hi_i32_i24", 2, [](u32 a, u32 b, u32) { return static_cast<u32>(S24(a) * S24(b) >> 32); }},
    {"v_mul_u32_u24", 2, [](u32 a, u32 b, u32) { return static_cast<u32>(W(a & 0xffffff) * (b & 0xffffff)); }},
    {"v_mul_hi_u32_u24", 2, [](u32 a, u32 b, u32) { return static_cast<u32>(W(a & 0xffffff) * (b & 0xffffff) >> 32); }},
    {"v_min_i32", 2, [](u32 a, u32 b, u32) { return S(a) < S(b) ? a : b; }},
    {"v_max_i32", 2, [](u32 a, u32 b, u32) { return S(a) > S(b) ? a : b; }},
    {"v_min_u32", 2, [](u32 a, u32 b, u32) { return a < b ? a : b; }},
    {"v_max_u32", 2, [](u32 a, u32 b, u32) { return a > b ? a : b; }},
    {"v_lshlrev_b32", 2, [](u32 a, u32 b, u32) { return b << a % 32; }},
    {"v_lshrrev_b32", 2, [](u32 a, u32 b, u32) { return b >> a % 32; }},
    {"v_ashrrev_i32", 2, [](u32 a, u32 b, u32) { return static_cast<u32>(S(b) >> a % 32); }},
    {"v_bfm_b32", 2, [](u32 a, u32 b, u32) { return static_cast<u32>(((u64{1} << a % 32) - 1) << b % 32); }},
    {"v_bcnt_u32_b32", 2, [](u32 a, u32 b, u32) { return ones(a) + b; }},
    {"v_bfe_u32", 3, [](u32 a, u32 b, u32 c) { return static_cast<u32>((W(a) >> b % 32) & ((u64{1} << c % 32) - 1)); }},
    {"v_bfe_i32", 3,
     [](u32 a, u32 b, u32 c) {
         const u32 width = c % 32;
         u64 field = static_cast<u64>(S(a) >> b % 32) & ((u64{1} << width) - 1);
         if (width != 0 && (field >> (width - 1) & 1) != 0) field |= ~((u64{1} << width) - 1);
         return static_cast<u32>(field);
     }},
    {"v_bfi_b32", 3, [](u32 a, u32 b, u32 c) { return (a & b) | (~a & c); }},
    {"v_alignbit_b32", 3, [](u32 a, u32 b, u32 c) { return static_cast<u32>((W(a) << 32 | b) >> c % 32); }},
    {"v_alignbyte_b32", 3, [](u32 a, u32 b, u32 c) { return static_cast<u32>((W(a) << 32 | b) >> 8 * (c % 4)); }},
    {"v_xad_u32", 3, [](u32 a, u32 b, u32 c) { return (a ^ b) + c; }},
    {"v_lshl_add_u32", 3, [](u32 a, u32 b, u32 c) { return (a << b % 32) + c; }},
    {"v_add_lshl_u32", 3, [](u32 a, u32 b, u32 c) { return (a + b) << c % 32; }},
    {"v_lshl_or_b32", 3, [](u32 a, u32 b, u32 c) { return a << b % 32 | c; }},
    {"v_and_or_b32", 3, [](u32 a, u32 b, u32 c) { return (a & b) | c; }},
    {"v_or3_b32", 3, [](u32 a, u32 b, u32 c) { return a | b | c; }},
    {"v_xor3_b32", 3, [](u32 a, u32 b, u32 c) { return a ^ b ^ c; }},
    {"v_add3_u32", 3, [](u32 a, u32 b, u32 c) { return a + b + c; }},
    {"v_mad_u32_u24", 3, [](u32 a, u32 b, u32 c) { return static_cast<u32>(W(a & 0xffffff) * (b & 0xffffff) + c); }},
    {"v_mad_i32_i24", 3, [](u32 a, u32 b, u32 c) { return static_cast<u32>(S24(a) * S24(b) + S(c)); }},
    {"v_mad_u32_u16", 3, [](u32 a, u32 b, u32 c) { return static_cast<u32>(W(a & 0xffff) * (b & 0xffff) + c); }},
    {"v_mad_i32_i16", 3, [](u32 a, u32 b, u32 c) { return static_cast<u32>(i64{S16(a)} * S16(b) + S(c)); }},
    {"v_sad_u8", 3,
     [](u32 a, u32 b, u32 c) {
         for (int k = 0; k < 4; ++k) c += static_cast<u32>(std::abs(static_cast<int>(a >> 8 * k & 255) - static_cast<int>(b >> 8 * k & 255)));
         return c;
     }},
    {"v_sad_u32", 3, [](u32 a, u32 b, u32 c) { return (a < b ? b - a : a - b) + c; }},
    {"v_min3_i32", 3, [](u32 a, u32 b, u32 c) { return static_cast<u32>(std::min(std::min(S(a), S(b)), S(c))); }},
    {"v_max3_i32", 3, [](u32 a, u32 b, u32 c) { return static_cast<u32>(std::max(std::max(S(a), S(b)), S(c))); }},
    {"v_min3_u32", 3, [](u32 a, u32 b, u32 c) { return std::min(std::min(a, b), c); }},
    {"v_max3_u32", 3, [](u32 a, u32 b, u32 c) { return std::max(std::max(a, b), c); }},
    {"v_med3_i32", 3,
     [](u32 a, u32 b, u32 c) {
         i64 sorted[] = {S(a), S(b), S(c)};
         std::sort(sorted, sorted + 3);
         return static_cast<u32>(sorted[1]);
     }},
    {"v_med3_u32", 3,
     [](u32 a, u32 b, u32 c) {
         u32 sorted[] = {a, b, c};
         std::sort(sorted, sorted + 3);
         return sorted[1];
     }},
    {"v_maxmin_i32", 3, [](u32 a, u32 b, u32 c) { return static_cast<u32>(std::min(std::max(S(a), S(b)), S(c))); }},
    {"v_minmax_i32", 3, [](u32 a, u32 b, u32 c) { return static_cast<u32>(std::max(std::min(S(a), S(b)), S(c))); }},
    {"v_maxmin_u32", 3, [](u32 a, u32 b, u32 c) { return std::min(std::max(a, b), c); }},
    {"v_minmax_u32", 3, [](u32 a, u32 b, u32 c) { return std::max(std::min(a, b), c); }},
    {"v_not_b16", 1, [](u32 a, u32, u32) { return ~a; }, true},
    {"v_and_b16", 2, [](u32 a, u32 b, u32) { return a & b; }, true},
    {"v_or_b16", 2, [](u32 a, u32 b, u32) { return a | b; }, true},
    {"v_xor_b16", 2, [](u32 a, u32 b, u32) { return a ^ b; }, true},
    {"v_add_nc_u16", 2, [](u32 a, u32 b, u32) { return a + b; }, true},
    {"v_sub_nc_u16", 2, [](u32 a, u32 b, u32) { return a - b; }, true},
    {"v_add_nc_i16", 2, [](u32 a, u32 b, u32) { return a + b; }, true},
    {"v_sub_nc_i16", 2, [](u32 a, u32 b, u32) { return a - b; }, true},
    {"v_mul_lo_u16", 2, [](u32 a, u32 b, u32) { return a * b; }, true},
    {"v_lshlrev_b16", 2, [](u32 a, u32 b, u32) { return b << a % 16; }, true},
    {"v_lshrrev_b16", 2, [](u32 a, u32 b, u32) { return b >> a % 16; }, true},
    {"v_ashrrev_i16", 2, [](u32 a, u32 b, u32) { return static_cast<u32>(S16(b) >> a % 16); }, true},
    {"v_min_u16", 2, [](u32 a, u32 b, u32) { return a < b ? a : b; }, true},
    {"v_max_u16", 2, [](u32 a, u32 b, u32) { return a > b ? a : b; }, true},
    {"v_min_i16", 2, [](u32 a, u32 b, u32) { return S16(a) < S16(b) ? a : b; }, true},
    {"v_max_i16", 2, [](u32 a, u32 b, u32) { return S16(a) > S16(b) ? a : b; }, true},
    {"v_mad_u16", 3, [](u32 a, u32 b, u32 c) { return a * b + c; }, true},
    {"v_mad_i16", 3, [](u32 a, u32 b, u32 c) { return a * b + c; }, true},
    {"v_min3_u16", 3, [](u32 a, u32 b, u32 c) { return std::min({a, b, c}); }, true},
    {"v_max3_u16", 3, [](u32 a, u32 b, u32 c) { return std::max({a, b, c}); }, true},
    {"v_med3_u16", 3, [](u32 a, u32 b, u32 c) { return std::max(std::min(a, b), std::min(std::max(a, b), c)); }, true},
    {"v_min3_i16", 3, [](u32 a, u32 b, u32 c) { return static_cast<u32>(std::min({S16(a), S16(b), S16(c)})); }, true},
    {"v_max3_i16", 3, [](u32 a, u32 b, u32 c) { return static_cast<u32>(std::max({S16(a), S16(b), S16(c)})); }, true},
    {"v_med3_i16", 3,
     [](u32 a, u32 b, u32 c) {
         i32 sorted[] = {S16(a), S16(b), S16(c)};
         std::sort(sorted, sorted + 3);
         return static_cast<u32>(sorted[1]);
     },
     true},
};

void rows() {
    for (const Row& row : kRows) {
        std::string text = std::string(row.name) + " v0, v1";
        if (row.sources > 1) text += ", v2";
        if (row.sources > 2) text += ", v3";
        check_words(text, kIntegerEdges, [&](u32 a, u32 b, u32 c, u32 old) {
            if (!row.half) return row.formula(a, b, c);
            return (old & 0xffff0000u) | (row.formula(a & 0xffff, b & 0xffff, c & 0xffff) & 0xffff);
        });
    }
}

void saturation() {
    struct Clamped {
        const char* text;
        i64 (*exact)(u32, u32);
        i64 least, most;
        bool half;
    };
    const i64 u32_most = 0xffffffff;
    for (const Clamped& row :
         {Clamped{"v_add_nc_u32_e64 v0, v1, v2 clamp", [](u32 a, u32 b) { return i64{a} + b; }, 0, u32_most, false},
          Clamped{"v_sub_nc_u32_e64 v0, v1, v2 clamp", [](u32 a, u32 b) { return i64{a} - b; }, 0, u32_most, false},
          Clamped{"v_subrev_nc_u32_e64 v0, v1, v2 clamp", [](u32 a, u32 b) { return i64{b} - a; }, 0, u32_most, false},
          Clamped{"v_add_nc_i32 v0, v1, v2 clamp", [](u32 a, u32 b) { return S(a) + S(b); }, INT32_MIN, INT32_MAX,
                  false},
          Clamped{"v_sub_nc_i32 v0, v1, v2 clamp", [](u32 a, u32 b) { return S(a) - S(b); }, INT32_MIN, INT32_MAX,
                  false},
          Clamped{"v_add_nc_u16 v0, v1, v2 clamp", [](u32 a, u32 b) { return i64{a & 0xffff} + (b & 0xffff); }, 0,
                  65535, true},
          Clamped{"v_sub_nc_u16 v0, v1, v2 clamp", [](u32 a, u32 b) { return i64{a & 0xffff} - (b & 0xffff); }, 0,
                  65535, true},
          Clamped{"v_add_nc_i16 v0, v1, v2 clamp", [](u32 a, u32 b) { return i64{S16(a)} + S16(b); }, -32768, 32767,
                  true},
          Clamped{"v_sub_nc_i16 v0, v1, v2 clamp", [](u32 a, u32 b) { return i64{S16(a)} - S16(b); }, -32768, 32767,
                  true}})
        check_words(row.text, kIntegerEdges, [&](u32 a, u32 b, u32, u32 old) {
            const u32 value = clamp_to(row.exact(a, b), row.least, row.most);
            return row.half ? (old & 0xffff0000u) | (value & 0xffff) : value;
        });
}

void wide() {
    check_wide("v_lshlrev_b64 v[0:1], v2, v[4:5]", kInteger64Edges, [](u64 a, u64 b, u64) { return b << (a & 63); });
    check_wide("v_lshrrev_b64 v[0:1], v2, v[4:5]", kInteger64Edges, [](u64 a, u64 b, u64) { return b >> (a & 63); });
    check_wide("v_ashrrev_i64 v[0:1], v2, v[4:5]", kInteger64Edges,
               [](u64 a, u64 b, u64) { return static_cast<u64>(static_cast<i64>(b) >> (a & 63)); });
    check_wide("v_mad_u64_u32 v[0:1], null, v2, v4, v[6:7]", kInteger64Edges,
               [](u64 a, u64 b, u64 c) { return (a & 0xffffffff) * (b & 0xffffffff) + c; });
    check_wide("v_mad_i64_i32 v[0:1], null, v2, v4, v[6:7]", kInteger64Edges, [](u64 a, u64 b, u64 c) {
        return static_cast<u64>(S(static_cast<u32>(a)) * S(static_cast<u32>(b))) + c;
    });
}

// The 65th bit of the sum goes to the mask.
void multiply_add_masks() {
    for (bool is_signed : {false, true}) {
        auto a = [](int lane) { return kIntegerEdges[static_cast<std::size_t>(lane) % kIntegerEdges.size()]; };
        auto b = [](int lane) { return kIntegerEdges[static_cast<std::size_t>(3 * lane + 5) % kIntegerEdges.size()]; };
        auto c = [](int lane) {
            return kInteger64Edges[static_cast<std::size_t>(5 * lane + 1) % kInteger64Edges.size()];
        };
        Machine machine;
        machine.v(2, a).v(4, b).v64(6, c).exec(kHalfExec);
        machine.ok(is_signed ? "v_mad_i64_i32 v[0:1], s5, v2, v4, v[6:7]" : "v_mad_u64_u32 v[0:1], s5, v2, v4, v[6:7]");
        for (int lane = 0; lane < kLanes; ++lane) {
            __extension__ using Wide = __int128;
            const Wide sum = is_signed ? Wide{S(a(lane))} * S(b(lane)) + static_cast<i64>(c(lane))
                                       : Wide{W(a(lane))} * W(b(lane)) + c(lane);
            const bool top = (kHalfExec >> lane & 1) != 0 && (sum >> 64 & 1) != 0;
            EXPECT_EQ(machine.get_s(5) >> lane & 1, top ? 1u : 0u) << is_signed << " lane " << lane;
        }
    }
}

void carries() {
    struct Row {
        const char* text;
        u64 (*sum)(u64, u64, u64);
    };
    for (const Row& row :
         {Row{"v_add_co_u32 v0, vcc_lo, v1, v2", [](u64 a, u64 b, u64) { return a + b; }},
          Row{"v_sub_co_u32 v0, vcc_lo, v1, v2", [](u64 a, u64 b, u64) { return a - b; }},
          Row{"v_subrev_co_u32 v0, vcc_lo, v1, v2", [](u64 a, u64 b, u64) { return b - a; }},
          Row{"v_add_co_ci_u32 v0, vcc_lo, v1, v2, vcc_lo", [](u64 a, u64 b, u64 c) { return a + b + c; }},
          Row{"v_sub_co_ci_u32 v0, vcc_lo, v1, v2, vcc_lo", [](u64 a, u64 b, u64 c) { return a - b - c; }},
          Row{"v_subrev_co_ci_u32 v0, vcc_lo, v1, v2, vcc_lo", [](u64 a, u64 b, u64 c) { return b - a - c; }}})
        for (u32 exec : {kAllLanes, kHalfExec}) {
            auto a = [](int lane) { return kIntegerEdges[static_cast<std::size_t>(lane) % kIntegerEdges.size()]; };
            auto b = [](int lane) {
                return kIntegerEdges[static_cast<std::size_t>(3 * lane + 5) % kIntegerEdges.size()];
            };
            const u32 in = 0x3c5a99f1;
            Machine machine;
            machine.v(0, 0u).v(1, a).v(2, b).s(kVcc, in).exec(exec).ok(row.text);
            for (int lane = 0; lane < kLanes; ++lane) {
                const u64 sum = row.sum(a(lane), b(lane), in >> lane & 1);
                const bool enabled = (exec >> lane & 1) != 0;
                EXPECT_EQ(machine.get_v(0, lane), enabled ? static_cast<u32>(sum) : 0) << row.text << " lane " << lane;
                EXPECT_EQ(machine.get_s(kVcc) >> lane & 1, enabled ? sum >> 32 & 1 : 0) << row.text << " lane " << lane;
            }
        }
    // the overflow of a 64-bit multiply-add
    Machine machine;
    machine.v(2, 0xffffffffu)
        .v(4, 0xffffffffu)
        .v64(6, [](int) { return ~u64{0}; })
        .ok("v_mad_u64_u32 v[0:1], s4, v2, v4, v[6:7]");
    EXPECT_EQ(machine.get_s(4), kAllLanes);
}

void bytes_and_swaps() {
    for (const auto& [selector, expected] : std::initializer_list<std::pair<u32, u32>>{{0x03020100, 0x55667788},
                                                                                       {0x07060504, 0x11223344},
                                                                                       {0x0c0c0c0c, 0},
                                                                                       {0x0d0d0d0d, 0xffffffff},
                                                                                       {0x04000c0d, 0x448800ff}}) {
        Machine machine;
        machine.v(1, 0x11223344u).v(2, 0x55667788u).v(3, selector).ok("v_perm_b32 v0, v1, v2, v3");
        EXPECT_EQ(machine.get_v(0, 9), expected) << std::hex << selector;
    }
    // selectors 8 to 11: the sign of a 16-bit half of {v1, v2}
    Machine signs;
    signs.v(1, 0x80007fffu).v(2, 0x7fff8000u).v(3, 0x0b0a0908u).ok("v_perm_b32 v0, v1, v2, v3");
    EXPECT_EQ(signs.get_v(0, 0), 0xff0000ffu);
    Machine swap;
    swap.v(1, 5u).v(2, 6u).exec(1).ok("v_swap_b32 v1, v2");
    EXPECT_EQ(swap.get_v(1, 0), 6u);
    EXPECT_EQ(swap.get_v(2, 0), 5u);
    EXPECT_EQ(swap.get_v(1, 1), 5u);
    Machine select;
    select.v(0, 0xffff0000u).v(1, 5u).v(2, 6u).s(4, 2).ok("v_cndmask_b16 v0, v1, v2, s4");
    EXPECT_EQ(select.get_v(0, 0), 0xffff0005u);
    EXPECT_EQ(select.get_v(0, 1), 0xffff0006u);
    check_words("v_add_nc_u32 v0, -16, v2", kIntegerEdges, [](u32, u32 b, u32, u32) { return b - 16; });
    check_words(
        "v_add_nc_u32 v0, s4, v2", kIntegerEdges, [](u32, u32 b, u32, u32) { return b + 77; },
        [](Machine& m) { m.s(4, 77); });
    Machine nop;
    nop.ok("v_nop");
}

}  // namespace

void vector_integer_cases() {
    rows();
    saturation();
    wide();
    carries();
    bytes_and_swaps();
}

TEST(VectorInteger, Rows) { rows(); }
TEST(VectorInteger, Saturation) { saturation(); }
TEST(VectorInteger, Wide) { wide(); }
TEST(VectorInteger, Carries) { carries(); }
TEST(VectorInteger, MultiplyAddMasks) { multiply_add_masks(); }
TEST(VectorInteger, BytesAndSwaps) { bytes_and_swaps(); }

}  // namespace onebit::emulator
