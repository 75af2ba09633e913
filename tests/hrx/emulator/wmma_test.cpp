// If this fails, matrix products on the wave matrix instructions are wrong.
#include <gtest/gtest.h>

#include <cmath>

#include "tests/hrx/emulator/cases.h"
#include "tests/hrx/emulator/machine.h"

namespace onebit::emulator {
namespace {

// Small integers, so that every format and every order of summation gives the same.
int element_a(int row, int k) { return (row * 5 + k * 3) % 7 - 3; }
int element_b(int k, int column) { return (column * 11 + k * 2) % 5 - 2; }
int element_c(int row, int column) { return (row * 3 + column) % 9 - 4; }

int product(int row, int column) {
    int sum = element_c(row, column);
    for (int k = 0; k < 16; ++k) sum += element_a(row, k) * element_b(k, column);
    return sum;
}

u32 half(int x) { return bits_of(static_cast<f16>(static_cast<float>(x))); }
u32 brain(int x) { return bits_of(static_cast<float>(x)) >> 16; }

// A in v16.., B in v32.., as many registers as 16 elements of `bits` bits take.
void set_factors(Machine& machine, int bits, u32 (*encode)(int)) {
    const int each = 32 / bits;
    const u32 mask = bits == 32 ? ~0u : (1u << bits) - 1;
    for (int word = 0; word < 16 / each; ++word) {
        auto gather = [=](int lane, bool is_a) {
            u32 value = 0;
            for (int n = 0; n < each; ++n) {
                const int k = word * each + n;
                value |= (encode(is_a ? element_a(lane % 16, k) : element_b(k, lane % 16)) & mask) << bits * n;
            }
            return value;
        };
        machine.v(static_cast<u16>(16 + word), [=](int lane) { return gather(lane, true); });
        machine.v(static_cast<u16>(32 + word), [=](int lane) { return gather(lane, false); });
    }
}

void run(const char* name, int bits, u32 (*encode)(int), u32 (*encode_c)(int), const std::string& modifiers,
         u32 result_mask) {
    Machine machine;
    set_factors(machine, bits, encode);
    const u32 other_half = result_mask == 0xffff ? 0xabcd0000u : 0;
    for (int r = 0; r < 8; ++r)
        machine.v(static_cast<u16>(r), [=](int lane) {
            return other_half | (encode_c(element_c(2 * r + lane / 16, lane % 16)) & result_mask);
        });
    const std::string last_a = std::to_string(16 + bits / 2 - 1);
    const std::string last_b = std::to_string(32 + bits / 2 - 1);
    machine.ok(std::string(name) + " v[0:7], v[16:" + last_a + "], v[32:" + last_b + "], v[0:7]" + modifiers);
    for (int row = 0; row < 16; ++row)
        for (int column = 0; column < 16; ++column)
            EXPECT_EQ(machine.get_v(static_cast<u16>(row / 2), 16 * (row % 2) + column),
                      other_half | (encode_c(product(row, column)) & result_mask))
                << name << " " << row << ", " << column;
}

void products() {
    auto f32 = [](int x) { return bits_of(static_cast<float>(x)); };
    auto plain = [](int x) { return static_cast<u32>(x); };
    run("v_wmma_f32_16x16x16_f16", 16, half, f32, "", ~0u);
    run("v_wmma_f32_16x16x16_bf16", 16, brain, f32, "", ~0u);
    run("v_wmma_f16_16x16x16_f16", 16, half, half, "", 0xffff);
    run("v_wmma_bf16_16x16x16_bf16", 16, brain, brain, "", 0xffff);
    run("v_wmma_i32_16x16x16_iu8", 8, plain, plain, " neg_lo:[1,1,0]", ~0u);
    run("v_wmma_i32_16x16x16_iu4", 4, plain, plain, " neg_lo:[1,1,0]", ~0u);
}

}  // namespace

void wmma_cases() { products(); }

TEST(Wmma, Products) { products(); }

TEST(Wmma, UnsignedElementsAndAConstant) {
    Machine machine;
    for (u16 r = 0; r < 4; ++r)
        machine.v(static_cast<u16>(16 + r), 0xffffffffu).v(static_cast<u16>(32 + r), 0x02020202u);
    machine.ok("v_wmma_i32_16x16x16_iu8 v[0:7], v[16:19], v[32:35], 5");
    EXPECT_EQ(machine.get_v(3, 17), 16u * 255 * 2 + 5);
    machine.ok("v_wmma_i32_16x16x16_iu8 v[0:7], v[16:19], v[32:35], 5 neg_lo:[1,0,0]");
    EXPECT_EQ(machine.get_v(3, 17), static_cast<u32>(16 * -1 * 2 + 5));
}

TEST(Wmma, ClampSaturates) {
    Machine machine;
    for (u16 r = 0; r < 4; ++r)
        machine.v(static_cast<u16>(16 + r), 0x7f7f7f7fu).v(static_cast<u16>(32 + r), 0x7f7f7f7fu);
    for (u16 r = 0; r < 8; ++r) machine.v(r, 0x7ffffff0u);
    machine.ok("v_wmma_i32_16x16x16_iu8 v[0:7], v[16:19], v[32:35], v[0:7] neg_lo:[1,1,0] clamp");
    EXPECT_EQ(machine.get_v(0, 0), 0x7fffffffu);
}

TEST(Wmma, HighHalvesOfResults) {
    Machine machine;
    set_factors(machine, 16, half);
    for (int r = 0; r < 8; ++r)
        machine.v(static_cast<u16>(r),
                  [=](int lane) { return 0x5678u | half(element_c(2 * r + lane / 16, lane % 16)) << 16; });
    machine.ok("v_wmma_f16_16x16x16_f16 v[0:7], v[16:23], v[32:39], v[0:7] op_sel:[0,0,1]");
    EXPECT_EQ(machine.get_v(2, 19), 0x5678u | half(product(5, 3)) << 16);
}

TEST(Wmma, CopiesThatDifferTrap) {
    Machine machine;
    set_factors(machine, 16, half);
    machine.v(17, [](int lane) { return static_cast<u32>(lane); });
    for (u16 r = 0; r < 8; ++r) machine.v(r, 0u);
    auto trap = machine.run("v_wmma_f32_16x16x16_f16 v[0:7], v[16:23], v[32:39], v[0:7]");
    ASSERT_TRUE(trap);
    EXPECT_EQ(trap->kind, TrapKind::bad_state);
    EXPECT_NE(trap->detail.find("v17"), std::string::npos) << trap->detail;
}

// Hardware writes the first rows before it has read all factors.
TEST(Wmma, ResultsOverFactorsAreRefused) {
    for (const char* text : {"v_wmma_f32_16x16x16_f16 v[16:23], v[16:23], v[32:39], v[0:7]",
                             "v_wmma_f32_16x16x16_f16 v[39:46], v[16:23], v[32:39], v[0:7]",
                             "v_wmma_f32_16x16x16_f16 v[25:32], v[16:23], v[32:39], 0",
                             "v_wmma_i32_16x16x16_iu8 v[12:19], v[18:21], v[32:35], 0",
                             "v_wmma_f32_16x16x16_f16 v[4:11], v[16:23], v[32:39], v[0:7]"}) {
        auto trap = Machine().run(text);
        ASSERT_TRUE(trap) << text;
        EXPECT_EQ(trap->kind, TrapKind::unknown_instruction) << text;
        EXPECT_NE(trap->detail.find("which hardware still reads"), std::string::npos) << trap->detail;
    }
}

}  // namespace onebit::emulator
