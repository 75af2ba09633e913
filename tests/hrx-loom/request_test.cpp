// If this fails, a request with wrong constants reaches the compiler, or two different requests share a place in the
// cache.
#include "tests/hrx-loom/fixture.h"

namespace onebit::loom::test {
namespace {

const Kernel& windows() { return *must(find_kernel("case_windows")); }

Error refused(const char* target, Constants constants) {
    const auto made = make_request(windows(), target, std::move(constants));
    return made.ok() ? Error{} : made.error();
}

TEST(Request, OptionsHaveDefaultsAndArgumentsStayOpen) {
    const auto made = request("case_windows", "gfx1151");
    EXPECT_EQ(made.constants, (Constants{{"terms", 2}, {"workgroup", 64}}));
    EXPECT_EQ(made.workgroup(), 64u);
    EXPECT_EQ(request("case_windows", "gfx1151", {{"workgroup", 256}}).workgroup(), 256u);
    EXPECT_TRUE(request("case_polynomial", "gfx1151").constants.empty());
}

TEST(Request, RangesHoldAtTheirEnds) {
    for (const uint32_t terms : {1u, 8u}) EXPECT_TRUE(make_request(windows(), "gfx1151", {{"terms", terms}}).ok());
    for (const uint32_t terms : {0u, 9u, UINT32_MAX}) {
        const Error error = refused("gfx1151", {{"terms", terms}});
        EXPECT_EQ(error.code, ErrorCode::usage);
        EXPECT_EQ(error.subject, "kernel case_windows, constant terms");
        EXPECT_EQ(error.expected, "1 to 8");
        EXPECT_EQ(error.found, std::to_string(terms));
    }
    EXPECT_TRUE(make_request(*must(find_kernel("case_polynomial")), "gfx1151", {{"count", UINT32_MAX}}).ok());
}

TEST(Request, UnknownNamesAreNamed) {
    const Error error = refused("gfx1151", {{"term", 1}});
    EXPECT_EQ(error.code, ErrorCode::usage);
    EXPECT_NE(error.message().find("did you mean terms?"), std::string::npos) << error.message();
    EXPECT_EQ(find_kernel("case_window").error().remedy, "did you mean case_windows?");
    for (const char* target : {"gfx906", "gfx11510", "sm_75", "sm_", "", "sm_90x", "x86-64"}) {
        EXPECT_EQ(refused(target, {}).code, ErrorCode::unsupported) << target;
    }
}

TEST(Request, NewerNvidiaChipsTakeTheNewestTarget) {
    EXPECT_EQ(must(target_for("sm_87"))->name, "sm_86");
    for (const char* newer : {"sm_90", "sm_100", "sm_120"}) {
        EXPECT_EQ(must(target_for(newer))->name, "sm_90") << newer;
        EXPECT_EQ(must(generic_image(windows(), newer)).target, "sm_90");
    }
    EXPECT_EQ(must(generic_image(windows(), "sm_89")).target, "sm_80");
    EXPECT_FALSE(generic_image(windows(), "sm_70").ok());
}

TEST(Request, KeysTellAllThatDecidesApart) {
    const std::string key = request("case_windows", "gfx1151").key();
    EXPECT_EQ(key, request("case_windows", "gfx1151", {{"terms", 2}}).key());
    EXPECT_NE(key, request("case_windows", "gfx1151", {{"terms", 3}}).key());
    EXPECT_NE(key, request("case_windows", "gfx1150").key());
    EXPECT_NE(key, request("case_windows", "gfx1151", {{"workgroup", 128}}).key());
    EXPECT_NE(request("case_polynomial", "gfx1151").key(), request("case_polynomial", "gfx1151", {{"scale", 1}}).key());
}

TEST(Request, ConstantsAreRead) {
    EXPECT_EQ(must(parse_constant("columns=0")), (std::pair<std::string, uint32_t>("columns", 0)));
    EXPECT_EQ(must(parse_constant("a=4294967295")).second, UINT32_MAX);
    for (const char* wrong : {"", "=", "a", "a=", "=1", "a=4294967296", "a=-1", "a=1x", "a= 1"}) {
        EXPECT_EQ(parse_constant(wrong).error().code, ErrorCode::usage) << wrong;
    }
}

}  // namespace
}  // namespace onebit::loom::test
