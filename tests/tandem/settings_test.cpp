// If this fails, a tandem is made of other devices, or routes by another rule, than the user wrote.
#include "tandem/settings.h"

#include <gtest/gtest.h>

namespace onebit::tandem {
namespace {

TEST(TandemSettings, TheOwnerAloneIsEnough) {
    const auto settings = parse_settings("owner=Vulkan0");
    ASSERT_TRUE(settings.ok());
    EXPECT_EQ(settings->prefill, "Vulkan0");
    EXPECT_EQ(settings->decode, "Vulkan0");
    EXPECT_EQ(settings->fault.kind, Fault::Kind::none);
}

TEST(TandemSettings, EverythingSurvivesTheWayThroughText) {
    const std::string text =
        "owner=Vulkan0,prefill=CUDA0,decode=Vulkan0,min=512,segments=always,strict=1,repeat=0,upload=4096,region="
        "16777216,"
        "deny=CPU/SWIGLU,deny=Vulkan0/ADD,fault=nan/CUDA0/3/2";
    const auto settings = parse_settings(text);
    ASSERT_TRUE(settings.ok()) << settings.error().message();
    EXPECT_EQ(settings->min_tokens, 512);
    EXPECT_EQ(settings->segments, Segments::always);
    EXPECT_TRUE(settings->strict);
    EXPECT_FALSE(settings->repeat);
    EXPECT_EQ(settings->region_limit, 16u << 20);
    EXPECT_EQ(settings->deny.size(), 2u);
    EXPECT_EQ(settings->fault.at, 3u);
    EXPECT_EQ(settings->fault.count, 2u);
    EXPECT_EQ(to_string(*settings), text);
}

TEST(TandemSettings, BytesHaveUnits) {
    EXPECT_EQ(parse_settings("owner=A,region=4096")->region_limit, 4096u);
    EXPECT_EQ(parse_settings("owner=A,region=16M")->region_limit, 16u << 20);
    EXPECT_EQ(parse_settings("owner=A,region=2G")->region_limit, uint64_t{2} << 30);
}

TEST(TandemSettings, EveryFaultHasAName) {
    for (const std::string name : {"compute", "nan", "allocate", "map", "abort", "hang", "lost"}) {
        const auto settings = parse_settings("owner=A,fault=" + name + "/B/2/3");
        ASSERT_TRUE(settings.ok()) << name;
        EXPECT_NE(to_string(*settings).find("fault=" + name + "/B/2/3"), std::string::npos) << to_string(*settings);
    }
}

TEST(TandemSettings, WrongTextIsRefusedByName) {
    for (const char* text : {"",
                             "prefill=A",
                             "owner",
                             "owner=A,min=0",
                             "owner=A,min=-1",
                             "owner=A,min=",
                             "owner=A,min=9999999999999999999999",
                             "owner=A,region=4095",
                             "owner=A,upload=0",
                             "owner=A,upload=x",
                             "owner=A,region=99999999999999999G",
                             "owner=A,region=M",
                             "owner=A,segments=some",
                             "owner=A,strict=2",
                             "owner=A,deny=CPU",
                             "owner=A,deny=/ADD",
                             "owner=A,fault=compute",
                             "owner=A,fault=melt/CPU",
                             "owner=A,fault=compute/CPU/x",
                             "owner=A,fault=compute/CPU/1/1/1",
                             "owner=A,colour=red"}) {
        const auto settings = parse_settings(text);
        ASSERT_FALSE(settings.ok()) << text;
        EXPECT_EQ(settings.error().code, ErrorCode::usage) << text;
        EXPECT_FALSE(settings.error().expected.empty()) << text;
    }
}

}  // namespace
}  // namespace onebit::tandem
