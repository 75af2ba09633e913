// If this fails, `1bit plan` counts another number of requests or tokens than `1bit serve` takes.
#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "tests/app/real_program.h"

namespace onebit {
namespace {

using testing::HasSubstr;
using Json = nlohmann::json;

class PlanProgram : public RealProgram {
protected:
    // Of the built-in model, which was trained for 4096 tokens, on the CPU.
    Json plan(Texts more = {}, int code = 0) {
        Texts words = {"plan", "builtin", "--device", "none", "--json"};
        words.insert(words.end(), more.begin(), more.end());
        const ProgramResult result = run(words);
        EXPECT_EQ(result.exit_code, code) << testing::PrintToString(more) << result.error_output;
        return Json::parse(result.output, nullptr, false);
    }
    std::string shape(const Texts& more) {
        const Json made = plan(more);
        return made["slots"].dump() + " x " + made["context"].dump();
    }
    static double cache(const Json& plan) { return plan["rows"][0]["kv_cache"].get<double>(); }
};

TEST_F(PlanProgram, counts_what_serve_takes) {
    EXPECT_EQ(shape({}), "4 x 4096");
    EXPECT_EQ(shape({"--ctx-size", "1024"}), "4 x 1024");
    EXPECT_EQ(shape({"--ctx-size", "0"}), "4 x 4096");
    EXPECT_EQ(shape({"--parallel", "1"}), "1 x 4096");
    EXPECT_EQ(shape({"--parallel", "3", "--ctx-size", "512"}), "3 x 512");
    EXPECT_EQ(shape({"--shared-ctx-size", "2048", "--parallel", "2"}), "2 x 2048");
    EXPECT_EQ(shape({"--shared-ctx-size", "2048"}), "1 x 2048");
    EXPECT_EQ(cache(plan()), 4 * cache(plan({"--parallel", "1"})));
    EXPECT_THAT(run({"plan", "builtin", "--device", "none"}).output, HasSubstr("4 slots of 4096 tokens each"));
}

TEST_F(PlanProgram, where_four_do_not_fit_it_is_one_and_says_so) {
    const Json one = plan({"--ctx-size", "524288", "--parallel", "1"});
    const Json& row = one["rows"][0];
    ASSERT_TRUE(row["free_bytes"].is_number()) << "this machine does not say how much memory is free";
    // a request that takes two fifths of the memory
    const double each = (row["kv_cache"].get<double>() + row["compute"].get<double>()) / 524288;
    const std::string context = std::to_string(static_cast<uint64_t>(row["free_bytes"].get<double>() * 0.4 / each));
    const Json taken = plan({"--ctx-size", context});
    EXPECT_EQ(taken["slots"], 1);
    EXPECT_EQ(taken["fits"], true);
    EXPECT_EQ(taken["notes"][0], "does not fit: 4 slots of " + context + " tokens each");
    // what was asked for by name is not made smaller
    const Json four = plan({"--ctx-size", context, "--parallel", "4"}, 3);
    EXPECT_EQ(four["slots"], 4);
    EXPECT_EQ(four["fits"], false);
    const Json none = plan({"--ctx-size", "1073741824"}, 3);
    EXPECT_EQ(none["slots"], 1);
    EXPECT_EQ(none["notes"][0], "does not fit: 4 slots of 1073741824 tokens each");
}

}  // namespace
}  // namespace onebit
