// If this fails, branches and masks of emulated kernels follow wrong comparisons.
#include <gtest/gtest.h>

#include <cmath>

#include "tests/hrx/emulator/cases.h"
#include "tests/hrx/emulator/machine.h"

namespace onebit::emulator {
namespace {

// The relation of two numbers, as the names of comparisons list what they accept.
enum Relation : int { kLess = 1, kEqual = 2, kGreater = 4, kUnordered = 8 };
struct Condition {
    const char* name;
    int accepted;
};
const Condition kAnyType[] = {
    {"lt", kLess}, {"eq", kEqual}, {"le", kLess | kEqual}, {"gt", kGreater}, {"ge", kGreater | kEqual},
    {"f", 0},      {"t", 15}};
const Condition kFloatOnly[] = {
    {"lg", kLess | kGreater},       {"o", kLess | kEqual | kGreater},       {"u", kUnordered},
    {"nge", kLess | kUnordered},    {"nlg", kEqual | kUnordered},           {"ngt", kLess | kEqual | kUnordered},
    {"nle", kGreater | kUnordered}, {"neq", kLess | kGreater | kUnordered}, {"nlt", kEqual | kGreater | kUnordered}};

struct Type {
    const char* name;
    bool wide;
    bool real;
    int (*relation)(u64, u64);
};
template <typename T>
int relate(T a, T b) {
    return a < b ? kLess : a > b ? kGreater : a == b ? kEqual : kUnordered;
}
const Type kTypes[] = {
    {"i32", false, false, [](u64 a, u64 b) { return relate(static_cast<i32>(a), static_cast<i32>(b)); }},
    {"u32", false, false, [](u64 a, u64 b) { return relate(static_cast<u32>(a), static_cast<u32>(b)); }},
    {"i16", false, false, [](u64 a, u64 b) { return relate(static_cast<i16>(a), static_cast<i16>(b)); }},
    {"u16", false, false, [](u64 a, u64 b) { return relate(static_cast<u16>(a), static_cast<u16>(b)); }},
    {"i64", true, false, [](u64 a, u64 b) { return relate(static_cast<i64>(a), static_cast<i64>(b)); }},
    {"u64", true, false, [](u64 a, u64 b) { return relate(a, b); }},
    {"f32", false, true, [](u64 a, u64 b) { return relate(as_f32(static_cast<u32>(a)), as_f32(static_cast<u32>(b))); }},
    {"f16", false, true,
     [](u64 a, u64 b) {
         return relate(static_cast<float>(as_f16(static_cast<u32>(a))),
                       static_cast<float>(as_f16(static_cast<u32>(b))));
     }},
    {"f64", true, true, [](u64 a, u64 b) { return relate(as_f64(a), as_f64(b)); }},
};

u64 edge(const Type& type, int k) {
    const auto n = static_cast<std::size_t>(k);
    if (!type.wide)
        return type.real
                   ? (type.name[1] == '1' ? kHalfEdges[n % kHalfEdges.size()] : kFloatEdges[n % kFloatEdges.size()])
                   : kIntegerEdges[n % kIntegerEdges.size()];
    return type.real ? kDoubleEdges[n % kDoubleEdges.size()] : kInteger64Edges[n % kInteger64Edges.size()];
}

void one(const Type& type, const Condition& condition) {
    const std::string name = std::string(condition.name) + "_" + type.name;
    const std::string operands = type.wide ? "v[2:3], v[4:5]" : "v2, v4";
    for (int round = 0; round < 8; ++round) {
        auto a = [&](int lane) { return edge(type, lane); };
        auto b = [&](int lane) { return edge(type, lane + 3 * round); };
        const u32 exec = round % 2 == 0 ? kAllLanes : kHalfExec;
        u32 wanted = 0;
        for (int lane = 0; lane < kLanes; ++lane)
            if ((exec >> lane & 1) != 0 && (type.relation(a(lane), b(lane)) & condition.accepted) != 0)
                wanted |= 1u << lane;
        Machine machine;
        machine.v64(2, a).v64(4, b).exec(exec);
        machine.ok("v_cmp_" + name + " vcc_lo, " + operands + "\nv_cmp_" + name + "_e64 s7, " + operands + "\nv_cmpx_" +
                   name + " " + operands);
        EXPECT_EQ(machine.get_s(kVcc), wanted) << name;
        EXPECT_EQ(machine.get_s(7), wanted) << name;
        EXPECT_EQ(machine.get_s(kExec), wanted) << name;
    }
}

void relations() {
    for (const Type& type : kTypes) {
        for (const Condition& condition : kAnyType) {
            // gfx11 has no constant comparisons of 16-bit integers
            if ((condition.accepted == 0 || condition.accepted == 15) && type.name[1] == '1' && !type.real) continue;
            one(type, condition);
        }
        if (!type.real) one(type, {"ne", kLess | kGreater});
        for (const Condition& condition : kFloatOnly)
            if (type.real) one(type, condition);
    }
}

void classes() {
    struct Number {
        u32 f32;
        u32 f16;
        u64 f64;
        int bit;
    };
    const Number numbers[] = {{0x7fa00000, 0x7d00, 0x7ff4000000000000, 0}, {0x7fc00000, 0x7e00, 0x7ff8000000000000, 1},
                              {0xff800000, 0xfc00, 0xfff0000000000000, 2}, {0xbf800000, 0xbc00, 0xbff0000000000000, 3},
                              {0x80000001, 0x8001, 0x8000000000000001, 4}, {0x80000000, 0x8000, 0x8000000000000000, 5},
                              {0x00000000, 0x0000, 0x0000000000000000, 6}, {0x00000001, 0x0001, 0x0000000000000001, 7},
                              {0x3f800000, 0x3c00, 0x3ff0000000000000, 8}, {0x7f800000, 0x7c00, 0x7ff0000000000000, 9}};
    for (const Number& number : numbers) {
        auto mask = [](int lane) { return lane < 10 ? 1u << lane : 0x3ffu; };
        const u32 wanted = 1u << number.bit | 0xfffffc00u;
        for (const char* prefix : {"v_cmp_class_", "v_cmpx_class_"}) {
            const bool writes_exec = prefix[5] == 'x';
            const std::string to = writes_exec ? " " : " vcc_lo, ";
            Machine machine;
            machine.v(1, number.f32).v(2, mask).ok(prefix + std::string("f32") + to + "v1, v2");
            EXPECT_EQ(machine.get_s(writes_exec ? kExec : kVcc), wanted) << std::hex << number.f32;
            Machine half;
            half.v(1, number.f16).v(2, mask).ok(prefix + std::string("f16") + to + "v1, v2");
            EXPECT_EQ(half.get_s(writes_exec ? kExec : kVcc), wanted) << std::hex << number.f16;
            Machine wide;
            wide.v64(4, [&](int) { return number.f64; }).v(2, mask).ok(prefix + std::string("f64") + to + "v[4:5], v2");
            EXPECT_EQ(wide.get_s(writes_exec ? kExec : kVcc), wanted) << std::hex << number.f64;
        }
    }
}

}  // namespace

void compare_cases() {
    relations();
    classes();
}

TEST(Compare, Relations) { relations(); }
TEST(Compare, Classes) { classes(); }
TEST(Compare, SourcesMayBePermuted) {
    Machine machine;
    machine.v(1, [](int lane) { return static_cast<u32>(lane); }).v(2, 4u);
    machine.ok("v_cmp_eq_u32_e64_dpp vcc_lo, v1, v2 row_share:4 row_mask:0xf bank_mask:0xf");
    EXPECT_EQ(machine.get_s(kVcc), 0x0000ffffu);
}

}  // namespace onebit::emulator
