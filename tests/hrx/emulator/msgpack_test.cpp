// If this fails, a code object's metadata is misread, or damaged metadata crashes the process.
#include "hrx/emulator/msgpack.h"

#include <gtest/gtest.h>

namespace onebit::emulator {

using Kind = MsgPackValue::Kind;

TEST(MsgPack, ReadsEveryKind) {
    const std::vector<u8> bytes = {0x89, 0xa1, 'a',  0x7f, 0xa1, 'b',  0xff, 0xa1, 'c',  0xcd, 0x12,
                                   0x34, 0xa1, 'd',  0xd1, 0xff, 0xfe, 0xa1, 'e',  0xc3, 0xa1, 'f',
                                   0xc0, 0xa1, 'g',  0x92, 0x01, 0xa2, 'h',  'i',  0xa1, 'h',  0xca,
                                   0x40, 0x49, 0x0f, 0xdb, 0xa1, 'i',  0xd9, 0x03, 'x',  'y',  'z'};
    auto value = parse_msgpack(bytes);
    ASSERT_TRUE(value);
    EXPECT_EQ(value->find("a", Kind::integer)->integer, 127);
    EXPECT_EQ(value->find("b", Kind::integer)->integer, -1);
    EXPECT_EQ(value->find("c", Kind::integer)->integer, 0x1234);
    EXPECT_EQ(value->find("d", Kind::integer)->integer, -2);
    EXPECT_TRUE(value->find("e", Kind::boolean)->boolean);
    EXPECT_NE(value->find("f", Kind::nil), nullptr);
    EXPECT_EQ(value->find("g", Kind::array)->array[1].text, "hi");
    EXPECT_NEAR(value->find("h", Kind::real)->real, 3.14159, 1e-5);
    EXPECT_EQ(value->find("i", Kind::text)->text, "xyz");
    EXPECT_EQ(value->find("i", Kind::integer), nullptr);
    EXPECT_EQ(value->find("z", Kind::integer), nullptr);
}

TEST(MsgPack, RefusesDamage) {
    EXPECT_FALSE(parse_msgpack({}));
    for (const std::vector<u8>& bytes : std::vector<std::vector<u8>>{{0xc1},
                                                                     {0x01, 0x02},
                                                                     {0x91},
                                                                     {0x81, 0xa1},
                                                                     {0xdb, 0xff, 0xff, 0xff, 0xff},
                                                                     {0xdd, 0xff, 0xff, 0xff, 0xff},
                                                                     {0xdf, 0xff, 0xff, 0xff, 0xff, 0x01},
                                                                     {0xc9, 0xff, 0xff, 0xff, 0xff, 0x01},
                                                                     {0xcf, 1, 2, 3}})
        EXPECT_FALSE(parse_msgpack(bytes));
    // deeper than anything real
    EXPECT_FALSE(parse_msgpack(std::vector<u8>(1000, 0x91)));
    // a map as the key of a map is skipped
    EXPECT_TRUE(parse_msgpack(std::vector<u8>{0x81, 0x80, 0x01})->map.empty());
}

}  // namespace onebit::emulator
