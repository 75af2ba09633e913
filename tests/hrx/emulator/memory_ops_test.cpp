// If this fails, emulated kernels read or write wrong memory.
#include <gtest/gtest.h>

#include <cstring>

#include "tests/hrx/emulator/cases.h"
#include "tests/hrx/emulator/machine.h"

namespace onebit::emulator {
namespace {

constexpr const char* kWait = "\ns_waitcnt vmcnt(0) lgkmcnt(0)\ns_waitcnt_vscnt null, 0";

// A buffer that the machine may touch, filled with a pattern.
struct Buffer {
    explicit Buffer(Machine& machine, u64 size = 4096) : bytes(size) {
        for (u64 k = 0; k < size; ++k) bytes[k] = static_cast<u8>(k * 5 + 11);
        EXPECT_TRUE(machine.memory().add({address(), size, true}));
    }
    u64 address() const { return reinterpret_cast<u64>(bytes.data()); }
    u32 word(u64 at) const {
        u32 value = 0;
        std::memcpy(&value, &bytes[at], 4);
        return value;
    }
    std::vector<u8> bytes;
};

u32 extended(u32 value, int bytes, bool is_signed) {
    if (bytes == 1) return is_signed ? static_cast<u32>(static_cast<i8>(value)) : value & 0xff;
    if (bytes == 2) return is_signed ? static_cast<u32>(static_cast<i16>(value)) : value & 0xffff;
    return value;
}

struct Load {
    const char* name;
    int bytes;
    bool is_signed;
    int half;  // 0 whole register, 1 low, 2 high half
};
const Load kLoads[] = {{"u8", 1, false, 0},         {"i8", 1, true, 0},         {"u16", 2, false, 0},
                       {"i16", 2, true, 0},         {"d16_u8", 1, false, 1},    {"d16_i8", 1, true, 1},
                       {"d16_b16", 2, false, 1},    {"d16_hi_u8", 1, false, 2}, {"d16_hi_i8", 1, true, 2},
                       {"d16_hi_b16", 2, false, 2}, {"b32", 4, false, 0},       {"b64", 8, false, 0},
                       {"b96", 12, false, 0},       {"b128", 16, false, 0}};

// Forms of an address: 0 a vector of 64 bits, 1 scalar base and vector offset; for scratch 0 vector, 1 scalar.
std::string address_text(const std::string& segment, int form, bool store, const std::string& data) {
    if (segment == "flat") return store ? "v[8:9], " + data : data + ", v[8:9]";
    const std::string vector = segment == "scratch" ? (form == 0 ? "v8" : "off") : form == 0 ? "v[8:9]" : "v10";
    const std::string scalar = form == 0 ? "off" : segment == "scratch" ? "s6" : "s[4:5]";
    return store ? vector + ", " + data + ", " + scalar : data + ", " + vector + ", " + scalar;
}

void prepare(Machine& machine, Buffer& buffer, const std::string& segment) {
    auto offset = [](int lane) { return 32 * static_cast<u32>(lane); };
    if (segment == "scratch") {
        machine.scratch(256).v(8, [](int lane) { return 4 * static_cast<u32>(lane); }).s(6, 20);
        return;
    }
    machine.v64(8, [&, offset](int lane) { return buffer.address() + offset(lane); })
        .v(10, offset)
        .s64(4, buffer.address());
}

void loads() {
    for (const std::string segment : {"global", "flat", "scratch"})
        for (const Load& load : kLoads)
            for (int form = 0; form < (segment == "flat" ? 1 : 2); ++form) {
                Machine machine;
                Buffer buffer(machine);
                prepare(machine, buffer, segment);
                const int words = (load.bytes + 3) / 4;
                const std::string data = "v[0:" + std::to_string(words - 1) + "]";
                const std::string text =
                    segment + "_load_" + load.name + " " + address_text(segment, form, false, data) + " offset:8";
                machine.v(0, 0x11112222u).exec(~8u);
                if (segment == "scratch") {
                    // what a store put there comes back
                    const std::string values = form == 0 ? "v_lshlrev_b32 v20, 3, v8" : "v_mov_b32 v20, 0x8182f3f4";
                    machine.ok(values +
                               "\nv_mov_b32 v21, 21\nv_mov_b32 v22, 22\nv_mov_b32 v23, 23\nscratch_store_b128 " +
                               address_text(segment, form, true, "v[20:23]") + " offset:8\n" + text + kWait);
                } else {
                    machine.ok(text + kWait);
                }
                for (int lane : {0, 1, 3, 31})
                    for (int k = 0; k < words; ++k) {
                        u32 memory = 0;
                        if (segment == "scratch")
                            memory = k > 0       ? 20 + static_cast<u32>(k)
                                     : form == 0 ? 32 * static_cast<u32>(lane)
                                                 : 0x8182f3f4;
                        else
                            memory = buffer.word(32 * static_cast<u32>(lane) + 8 + 4 * static_cast<u32>(k));
                        const u32 value = extended(memory, load.bytes, load.is_signed);
                        const u32 old = k == 0 ? 0x11112222 : 0xdeadbeef;
                        u32 wanted = load.half == 1   ? (old & 0xffff0000u) | (value & 0xffff)
                                     : load.half == 2 ? (old & 0xffff) | value << 16
                                                      : value;
                        if (lane == 3) wanted = old;
                        EXPECT_EQ(machine.get_v(static_cast<u16>(k), lane), wanted) << text << " lane " << lane;
                    }
            }
}

void stores() {
    struct Store {
        const char* name;
        int bytes;
        bool high;
    };
    for (const std::string segment : {"global", "flat", "scratch"})
        for (const Store& store :
             {Store{"b8", 1, false}, Store{"b16", 2, false}, Store{"d16_hi_b8", 1, true}, Store{"d16_hi_b16", 2, true},
              Store{"b32", 4, false}, Store{"b64", 8, false}, Store{"b96", 12, false}, Store{"b128", 16, false}})
            for (int form = 0; form < (segment == "flat" ? 1 : 2); ++form) {
                Machine machine;
                Buffer buffer(machine);
                const std::vector<u8> before = buffer.bytes;
                prepare(machine, buffer, segment);
                for (u16 k = 0; k < 4; ++k)
                    machine.v(k, [=](int lane) { return 0x01020304u * static_cast<u32>(lane + 1) + k; });
                const int words = (store.bytes + 3) / 4;
                const std::string text = segment + "_store_" + store.name + " " +
                                         address_text(segment, form, true, "v[0:" + std::to_string(words - 1) + "]") +
                                         (segment == "flat" ? " offset:4" : " offset:-4");
                machine.exec(~8u);
                if (segment == "scratch") {
                    machine.s(6, 24).v(8, [](int lane) { return 4 + 4 * static_cast<u32>(lane); });
                    machine.ok(
                        "v_mov_b32 v30, 0\nv_mov_b32 v31, 0\nv_mov_b32 v32, 0\nv_mov_b32 v33, 0\nscratch_store_b128 " +
                        address_text(segment, form, true, "v[30:33]") + " offset:-4\n" + text + "\nscratch_load_b128 " +
                        address_text(segment, form, false, "v[40:43]") + " offset:-4" + kWait);
                } else {
                    // flat addresses have no negative offsets
                    const u64 base = buffer.address() + (segment == "flat" ? -4 : 4);
                    machine.v64(8, [=](int lane) { return base + 32 * static_cast<u64>(lane); });
                    machine.v(10, [](int lane) { return 32 * static_cast<u32>(lane) + 4; });
                    machine.ok(text + kWait);
                }
                for (int lane : {0, 2, 3, 31})
                    for (int k = 0; k < 16; ++k) {
                        const u32 at = 32 * static_cast<u32>(lane) + static_cast<u32>(k);
                        const u32 data = (0x01020304u * static_cast<u32>(lane + 1) + static_cast<u32>(k / 4)) >>
                                         (store.high ? 16 : 0);
                        const u8 stored = static_cast<u8>(data >> 8 * (k % 4));
                        if (segment == "scratch") {
                            if (lane == 3) continue;
                            const u8 found =
                                static_cast<u8>(machine.get_v(static_cast<u16>(40 + k / 4), lane) >> 8 * (k % 4));
                            EXPECT_EQ(found, k < store.bytes ? stored : 0) << text << lane << " " << k;
                        } else {
                            EXPECT_EQ(buffer.bytes[at], k < store.bytes && lane != 3 ? stored : before[at])
                                << text << lane << " " << k;
                        }
                    }
            }
}

void scalar_loads() {
    for (int words : {1, 2, 4, 8, 16}) {
        Machine machine;
        Buffer buffer(machine);
        const std::string last = std::to_string(16 + words - 1);
        const std::string to = words == 1 ? "s16" : "s[16:" + last + "]";
        machine.s64(4, buffer.address() + 16)
            .s(6, 8)
            .ok("s_load_b" + std::to_string(32 * words) + " " + to + ", s[4:5], 0x14" + kWait);
        for (int k = 0; k < words; ++k)
            EXPECT_EQ(machine.get_s(static_cast<u16>(16 + k)), buffer.word(36 + 4 * static_cast<u32>(k)));
        machine.ok(
            "s_load_b32 s40, s[4:5], s6 offset:0x4\ns_load_b32 s41, s[4:5], -0x10\ns_load_b32 s42, s[4:5], null" +
            std::string(kWait));
        EXPECT_EQ(machine.get_s(40), buffer.word(28));
        EXPECT_EQ(machine.get_s(41), buffer.word(0));
        EXPECT_EQ(machine.get_s(42), buffer.word(16));
    }
}

// A flat address inside of an aperture means LDS or scratch.
void apertures() {
    Machine machine;
    machine.lds(64).scratch(64);
    machine.v64(2, [](int lane) { return u64{kSharedApertureHigh} << 32 | static_cast<u32>(lane % 16) * 4; });
    machine.v64(4, [](int) { return u64{kPrivateApertureHigh} << 32 | 12; }).v(1, [](int lane) {
        return static_cast<u32>(lane % 16);
    });
    machine.ok(
        "flat_store_b32 v[2:3], v1\nflat_store_b32 v[4:5], v1\nflat_load_b32 v6, v[2:3]\nflat_load_b32 v7, v[4:5]" +
        std::string(kWait));
    EXPECT_EQ(machine.get_v(6, 9), 9u);
    EXPECT_EQ(machine.get_v(7, 9), 9u);
    EXPECT_EQ(machine.lds_bytes()[36], 9u);
}

}  // namespace

void memory_cases() {
    loads();
    stores();
    scalar_loads();
    apertures();
}

TEST(Memory, Loads) { loads(); }
TEST(Memory, Stores) { stores(); }
TEST(Memory, ScalarLoads) { scalar_loads(); }
TEST(Memory, Apertures) { apertures(); }

}  // namespace onebit::emulator
