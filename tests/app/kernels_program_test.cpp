// If this fails, `1bit kernels` lists, compiles or clears something else than it says, or scripts cannot read it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <set>

#include "tests/app/real_program.h"

namespace onebit {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using Json = nlohmann::json;

class KernelsProgram : public RealProgram {
protected:
    Json list() { return Json::parse(run({"kernels", "list", "--json"}).output); }
    // A build without clang 19 has names and no images.
    bool has_images() {
        const Json kernels = list();
        return !kernels.empty() && !kernels[0]["images"].empty();
    }
    size_t files() const { return cached("kernels"); }
};

TEST_F(KernelsProgram, TheListNamesEachKernelOnceWithItsSource) {
    if (!has_images()) GTEST_SKIP() << "built without clang 19";
    std::set<std::string> names;
    for (const Json& kernel : list()) {
        EXPECT_TRUE(names.insert(kernel["name"]).second) << kernel["name"];
        EXPECT_THAT(kernel["source"].get<std::string>(), HasSubstr("hrx/kernels/"));
        EXPECT_EQ(kernel["images"].size(), 11u) << kernel["name"];
        for (const Json& image : kernel["images"]) {
            EXPECT_GT(image["bytes"], 500) << kernel["name"];
            if (const std::string target = image["target"]; target.starts_with("gfx1")) {
                EXPECT_EQ(image["executed"], target.starts_with("gfx11")) << target;
            }
        }
    }
    for (const char* name : {"rms_norm_f32", "mat_vec_q4_k", "mat_mul_f16", "flash_attention_d128", "softmax_f32"})
        EXPECT_EQ(names.count(name), 1u) << name;
    const std::string text = run({"kernels", "list"}).output;
    for (const std::string& name : names) EXPECT_THAT(text, HasSubstr(name + " "));
}

TEST_F(KernelsProgram, ShowTellsWhatTheCompilerMade) {
    if (!has_images()) GTEST_SKIP() << "built without clang 19";
    const ProgramResult amd = run({"kernels", "show", "rms_norm_f32", "--set", "columns=4096"});
    EXPECT_EQ(amd.exit_code, 0) << amd.error_output;
    EXPECT_THAT(amd.output, AllOf(HasSubstr("constants    columns=4096"), HasSubstr("gfx1151"), HasSubstr(" vector, "),
                                  HasSubstr("occupancy"), HasSubstr("s_endpgm")));
    const ProgramResult nvidia = run({"kernels", "show", "rms_norm_f32", "--target", "sm_90"});
    EXPECT_EQ(nvidia.exit_code, 0) << nvidia.error_output;
    EXPECT_THAT(nvidia.output, AllOf(HasSubstr("columns at run time"), HasSubstr(".target sm_90")));
    const Json json = Json::parse(run({"kernels", "show", "rms_norm_f32", "--json"}).output);
    EXPECT_THAT(json["code"].get<std::string>(), HasSubstr("rms_norm_f32:"));
}

TEST_F(KernelsProgram, WarmFillsTheCacheOnceAndClearEmptiesIt) {
    if (!has_images()) GTEST_SKIP() << "built without clang 19";
    const Texts warm = {"kernels", "warm", "rms_norm_f32", "swiglu_f32", "--set", "columns=128", "--json"};
    const Json first = Json::parse(run(warm).output), second = Json::parse(run(warm).output);
    EXPECT_EQ(first, Json({{"compiled", 2}, {"cached", 0}, {"failed", 0}}));
    EXPECT_EQ(second, Json({{"compiled", 0}, {"cached", 2}, {"failed", 0}}));
    EXPECT_EQ(files(), 2u);
    // another size is another image
    EXPECT_THAT(run({"kernels", "warm", "rms_norm_f32", "--set", "columns=129"}).output,
                HasSubstr("1 compiled, 0 were"));
    EXPECT_EQ(files(), 3u);
    const Json cleared = Json::parse(run({"kernels", "clear", "--json"}).output);
    EXPECT_GT(cleared["bytes"], 3000);
    EXPECT_EQ(files(), 0u);
    EXPECT_THAT(run({"kernels", "clear"}).output, HasSubstr("0 bytes removed"));
}

TEST_F(KernelsProgram, WhatCannotBeIsRefusedByName) {
    const std::vector<std::pair<Texts, std::string>> cases = {
        {{"show"}, "KERNEL"},
        {{"show", "rms"}, "did you mean rms_norm_f32?"},
        {{"show", "rms_norm_f32", "--set", "columns"}, "columns"},
        {{"show", "rms_norm_f32", "--set", "column=4"}, "did you mean columns?"},
        {{"show", "rms_norm_f32", "--set", "columns=0"}, "1 to 16777216"},
        {{"show", "rms_norm_f32", "--set", "columns=16777217"}, "1 to 16777216"},
        {{"show", "rms_norm_f32", "--set", "columns=99999999999999999999"}, "99999999999999999999"},
        {{"show", "rms_norm_f32", "--target", "gfx9"}, "gfx1151"},
        {{"warm"}, "KERNEL"},
        {{"warm", "rms_norm_f32", "nothing"}, "'nothing'"},
        {{"show", "rms_norm_f32", "--set", "columns=4", "--set", "columns=4"}, "a second one of columns"},
        {{"show", "rms_norm_f32", "--targt", "gfx1151"}, "an option of 1bit kernels show"},
        {{"show", "rms_norm_f32", "more"}, "1bit kernels show --help"},
        {{"fill"}, "'fill': expected a command of 1bit kernels"},
        {{"sho"}, "did you mean 'show'? see 1bit kernels --help"},
    };
    for (const auto& [more, part] : cases) {
        Texts words = {"kernels"};
        words.insert(words.end(), more.begin(), more.end());
        const ProgramResult result = run(words);
        EXPECT_NE(result.exit_code, 0) << part;
        EXPECT_THAT(result.error_output, HasSubstr(part));
        EXPECT_EQ(result.output, "");
    }
    EXPECT_EQ(files(), 0u);
}

TEST_F(KernelsProgram, WithoutTheCompilerTheListStaysAndTheRestSaysWhatIsMissing) {
    ::setenv("ONEBIT_LOOM_LIBRARY", (folder_ / "none.so").c_str(), 1);
    EXPECT_FALSE(list().empty());
    const ProgramResult show = run({"kernels", "show", "rms_norm_f32"});
    EXPECT_EQ(show.exit_code, 1);
    EXPECT_THAT(show.error_output, AllOf(HasSubstr("libloom"), HasSubstr("none.so"), HasSubstr("ONEBIT_LOOM_LIBRARY")));
    ::unsetenv("ONEBIT_LOOM_LIBRARY");
}

}  // namespace
}  // namespace onebit
