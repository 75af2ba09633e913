// If this fails, operands or modifiers of instructions are read wrongly from their text.
#include "hrx/emulator/asm_text.h"

#include <gtest/gtest.h>

namespace onebit::emulator {

using Kind = AsmOperand::Kind;

TEST(AsmText, OperandsAndModifiers) {
    auto parts = parse_assembly("v_fma_f32_e64_dpp v5, -v1, |v2|, s[4:5] op_sel:[0,1] clamp mul:2");
    ASSERT_TRUE(parts);
    ASSERT_EQ(parts->size(), 1u);
    const AsmInstruction& text = parts->front();
    EXPECT_EQ(text.mnemonic, "v_fma_f32");
    EXPECT_TRUE(text.dpp);
    ASSERT_EQ(text.operands.size(), 4u);
    EXPECT_EQ(text.operands[0].kind, Kind::vgpr);
    EXPECT_EQ(text.operands[0].index, 5);
    EXPECT_TRUE(text.operands[1].negate);
    EXPECT_FALSE(text.operands[1].absolute);
    EXPECT_TRUE(text.operands[2].absolute);
    EXPECT_EQ(text.operands[3].kind, Kind::sgpr);
    EXPECT_EQ(text.operands[3].words, 2);
    ASSERT_NE(text.modifier("op_sel"), nullptr);
    EXPECT_EQ(parse_list(*text.modifier("op_sel")), (std::vector<int>{0, 1}));
    EXPECT_TRUE(text.has("clamp"));
    EXPECT_EQ(*text.modifier("mul"), "2");
    EXPECT_FALSE(text.has("div"));
}

TEST(AsmText, Constants) {
    auto parts = parse_assembly("v_x v0, -16, 0xdeadbeef, 0.15915494, -4.0, neg(1.0), -|v3|");
    ASSERT_TRUE(parts);
    const auto& operands = parts->front().operands;
    ASSERT_EQ(operands.size(), 7u);
    EXPECT_EQ(operands[1].kind, Kind::integer);
    EXPECT_EQ(operands[1].integer, -16);
    EXPECT_EQ(operands[2].kind, Kind::literal);
    EXPECT_EQ(operands[2].integer, 0xdeadbeef);
    EXPECT_EQ(operands[3].kind, Kind::real);
    EXPECT_EQ(operands[4].real, -4.0);
    EXPECT_TRUE(operands[5].negate);
    EXPECT_EQ(operands[5].real, 1.0);
    EXPECT_TRUE(operands[6].negate && operands[6].absolute);
}

TEST(AsmText, NamesAndDuals) {
    auto parts = parse_assembly("v_dual_mov_b32 v0, vcc_lo :: v_dual_add_f32 v1, m0, null");
    ASSERT_TRUE(parts);
    ASSERT_EQ(parts->size(), 2u);
    EXPECT_EQ(parts->front().operands[1].index, kVcc);
    EXPECT_EQ(parts->back().operands[1].index, kM0);
    EXPECT_EQ(parts->back().operands[2].index, kNull);
    EXPECT_EQ(parse_assembly("ds_swizzle_b32 v0, v1 offset:swizzle(SWAP,16)")->front().operands.size(), 2u);
}

TEST(AsmText, NoOperandsAndNothing) {
    EXPECT_TRUE(parse_assembly("s_endpgm")->front().operands.empty());
    EXPECT_FALSE(parse_assembly(""));
    EXPECT_FALSE(parse_assembly("   "));
    EXPECT_FALSE(parse_number(""));
    EXPECT_FALSE(parse_number("0x"));
    EXPECT_FALSE(parse_number("12k"));
    EXPECT_FALSE(parse_list("[1,"));
    EXPECT_EQ(parse_list("[]"), std::vector<int>{});
}

TEST(AsmText, RegistersOutOfRangeAreNone) {
    for (const char* text : {"v_x v256", "v_x v[4:2]", "v_x v[0:256]", "v_x v[", "v_x v"})
        EXPECT_EQ(parse_assembly(text)->front().operands[0].kind, Kind::other) << text;
}

}  // namespace onebit::emulator
