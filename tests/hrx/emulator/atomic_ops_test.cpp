// If this fails, counters and reductions through atomics give wrong sums.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "tests/hrx/emulator/cases.h"
#include "tests/hrx/emulator/machine.h"

namespace onebit::emulator {
namespace {

struct Row {
    const char* name;      // of memory atomics
    const char* lds_name;  // with %: where "_rtn" goes; empty: LDS has none
    bool wide;
    u64 (*formula)(u64 old, u64 data, u64 compare);
    bool compares = false;
    bool only_returning = false;  // LDS
};

i64 S(u64 x, bool wide) { return wide ? static_cast<i64>(x) : static_cast<i32>(static_cast<u32>(x)); }
float F(u64 x) { return as_f32(static_cast<u32>(x)); }

const Row kRows[] = {
    {"swap_b32", "storexchg%_b32", false, [](u64, u64 d, u64) { return d; }, false, true},
    {"swap_b64", "storexchg%_b64", true, [](u64, u64 d, u64) { return d; }, false, true},
    {"cmpswap_b32", "cmpstore%_b32", false, [](u64 o, u64 d, u64 c) { return o == c ? d : o; }, true},
    {"cmpswap_b64", "cmpstore%_b64", true, [](u64 o, u64 d, u64 c) { return o == c ? d : o; }, true},
    {"add_u32", "add%_u32", false, [](u64 o, u64 d, u64) { return o + d; }},
    {"add_u64", "add%_u64", true, [](u64 o, u64 d, u64) { return o + d; }},
    {"sub_u32", "sub%_u32", false, [](u64 o, u64 d, u64) { return o - d; }},
    {"sub_u64", "sub%_u64", true, [](u64 o, u64 d, u64) { return o - d; }},
    {"", "rsub%_u32", false, [](u64 o, u64 d, u64) { return d - o; }},
    {"csub_u32", "", false, [](u64 o, u64 d, u64) { return o < d ? 0 : o - d; }},
    {"min_i32", "min%_i32", false, [](u64 o, u64 d, u64) { return S(o, false) < S(d, false) ? o : d; }},
    {"max_i32", "max%_i32", false, [](u64 o, u64 d, u64) { return S(o, false) > S(d, false) ? o : d; }},
    {"min_u32", "min%_u32", false, [](u64 o, u64 d, u64) { return std::min(o, d); }},
    {"max_u32", "max%_u32", false, [](u64 o, u64 d, u64) { return std::max(o, d); }},
    {"min_i64", "min%_i64", true, [](u64 o, u64 d, u64) { return S(o, true) < S(d, true) ? o : d; }},
    {"max_i64", "max%_i64", true, [](u64 o, u64 d, u64) { return S(o, true) > S(d, true) ? o : d; }},
    {"min_u64", "min%_u64", true, [](u64 o, u64 d, u64) { return std::min(o, d); }},
    {"max_u64", "max%_u64", true, [](u64 o, u64 d, u64) { return std::max(o, d); }},
    {"and_b32", "and%_b32", false, [](u64 o, u64 d, u64) { return o & d; }},
    {"or_b32", "or%_b32", false, [](u64 o, u64 d, u64) { return o | d; }},
    {"xor_b32", "xor%_b32", false, [](u64 o, u64 d, u64) { return o ^ d; }},
    {"and_b64", "and%_b64", true, [](u64 o, u64 d, u64) { return o & d; }},
    {"or_b64", "or%_b64", true, [](u64 o, u64 d, u64) { return o | d; }},
    {"xor_b64", "xor%_b64", true, [](u64 o, u64 d, u64) { return o ^ d; }},
    // wrapping counters
    {"inc_u32", "inc%_u32", false, [](u64 o, u64 d, u64) { return o >= d ? 0 : o + 1; }},
    {"dec_u32", "dec%_u32", false, [](u64 o, u64 d, u64) { return o == 0 || o > d ? d : o - 1; }},
    {"inc_u64", "", true, [](u64 o, u64 d, u64) { return o >= d ? 0 : o + 1; }},
    {"dec_u64", "", true, [](u64 o, u64 d, u64) { return o == 0 || o > d ? d : o - 1; }},
    {"add_f32", "add%_f32", false, [](u64 o, u64 d, u64) { return u64{bits_of(F(o) + F(d))}; }},
    {"min_f32", "min%_f32", false, [](u64 o, u64 d, u64) { return F(o) < F(d) ? o : d; }},
    {"max_f32", "max%_f32", false, [](u64 o, u64 d, u64) { return F(o) > F(d) ? o : d; }},
};

struct Values {
    u64 old, data, compare;
};
std::vector<Values> values(bool wide) {
    std::vector<Values> all;
    const u64 edges32[] = {0x3f800000, 0x40490fdb, 5, 0x80000005, 0x41200000};
    const u64 edges64[] = {5, 0x8000000000000005, 0x123456789abcdef0, 0xffffffff};
    auto edges = wide ? std::vector<u64>(std::begin(edges64), std::end(edges64))
                      : std::vector<u64>(std::begin(edges32), std::end(edges32));
    for (u64 old : edges)
        for (u64 data : edges) {
            all.push_back({old, data, old});
            all.push_back({old, data, data});
        }
    return all;
}

// v[2:3] data, v[4:5] the value to compare with, v[0:1] gets the old one, v[8:9] the address or v8 the LDS address.
void set(Machine& machine, const Values& v) {
    machine.v64(2, [&](int) { return v.data; }).exec(1u << 4);
    machine.v64(4, [&](int) { return v.compare; });
}

void memory_row(const Row& row, const std::string& segment, bool returns) {
    for (const Values& v : values(row.wide)) {
        Machine machine;
        alignas(16) u64 memory[2] = {v.old, 0x7777777777777777};
        ASSERT_TRUE(machine.memory().add({reinterpret_cast<u64>(memory), sizeof(memory), true}));
        set(machine, v);
        machine.v64(8, [&](int) { return reinterpret_cast<u64>(memory); });
        // the data and the value to compare lie side by side
        if (!row.wide) machine.v(3, static_cast<u32>(v.compare));
        std::string data = row.wide ? "v[2:3]" : "v2";
        if (row.compares) data = row.wide ? "v[2:5]" : "v[2:3]";
        std::string text = segment + "_atomic_" + row.name + " ";
        if (returns) text += row.wide ? "v[0:1], " : "v0, ";
        text += "v[8:9], " + data + (segment == "global" ? ", off" : "") + (returns ? " glc" : "");
        machine.ok(text + "\ns_waitcnt vmcnt(0) lgkmcnt(0)\ns_waitcnt_vscnt null, 0");
        const u64 mask = row.wide ? ~u64{0} : 0xffffffff;
        const u64 wanted = row.formula(v.old & mask, v.data & mask, v.compare & mask) & mask;
        EXPECT_EQ(memory[0] & mask, wanted) << text;
        EXPECT_EQ(memory[0] & ~mask, v.old & ~mask) << text;
        EXPECT_EQ(memory[1], 0x7777777777777777u) << text;
        if (returns) {
            EXPECT_EQ(row.wide ? machine.get_v64(0, 4) : machine.get_v(0, 4), v.old & mask) << text;
        }
    }
}

void lds_row(const Row& row, bool returns) {
    std::string name = "ds_" + std::string(row.lds_name);
    name.replace(name.find('%'), 1, returns ? "_rtn" : "");
    for (const Values& v : values(row.wide)) {
        Machine machine;
        machine.lds(64);
        std::memcpy(&machine.lds_bytes()[16], &v.old, 8);
        set(machine, v);
        machine.v(8, 8u);
        std::string text = name + " ";
        if (returns) text += row.wide ? "v[0:1], " : "v0, ";
        text += row.wide ? "v8, v[2:3]" : "v8, v2";
        if (row.compares) text += row.wide ? ", v[4:5]" : ", v4";
        machine.ok(text + " offset:8\ns_waitcnt lgkmcnt(0)");
        const u64 mask = row.wide ? ~u64{0} : 0xffffffff;
        u64 memory = 0;
        std::memcpy(&memory, &machine.lds_bytes()[16], 8);
        EXPECT_EQ(memory & mask, row.formula(v.old & mask, v.data & mask, v.compare & mask) & mask) << text;
        EXPECT_EQ(memory & ~mask, v.old & ~mask) << text;
        if (returns) {
            EXPECT_EQ(row.wide ? machine.get_v64(0, 4) : machine.get_v(0, 4), v.old & mask) << text;
        }
    }
}

void memory_atomics() {
    for (const Row& row : kRows)
        for (const std::string segment : {"global", "flat"})
            for (bool returns : {false, true}) {
                const std::string name = row.name;
                // the clamped subtraction exists for global memory and only with a result
                if (name.empty() || (name == "csub_u32" && (segment == "flat" || !returns))) continue;
                memory_row(row, segment, returns);
            }
}

void lds_atomics() {
    for (const Row& row : kRows)
        for (bool returns : {false, true}) {
            if (row.lds_name[0] == 0 || (row.only_returning && !returns)) continue;
            lds_row(row, returns);
        }
}

}  // namespace

void atomic_cases() {
    memory_atomics();
    lds_atomics();
}

TEST(Atomics, Memory) { memory_atomics(); }
TEST(Atomics, Lds) { lds_atomics(); }
TEST(Atomics, LanesAddUpOnOneAddress) {
    Machine machine;
    alignas(4) u32 memory = 5;
    ASSERT_TRUE(machine.memory().add({reinterpret_cast<u64>(&memory), 4, true}));
    machine.v64(8, [&](int) { return reinterpret_cast<u64>(&memory); }).v(2, [](int lane) {
        return static_cast<u32>(lane);
    });
    machine.ok("global_atomic_add_u32 v[8:9], v2, off");
    EXPECT_EQ(memory, 5u + 31 * 32 / 2);
}

}  // namespace onebit::emulator
