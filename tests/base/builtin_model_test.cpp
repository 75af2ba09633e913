// If this fails, 1bit without a model's name finds none, or serves another than the one that was asked for.
#include "models/builtin_model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "base/hash.h"
#include "tests/base/scratch.h"

namespace onebit {
namespace {

class BuiltinModel : public testing::Test {
protected:
    void SetUp() override {
        ::unsetenv("ONEBIT_BUILTIN_MODEL");
        std::filesystem::create_directories(scratch / "bin");
        std::filesystem::create_directories(installed.parent_path());
        std::filesystem::create_directories(source.parent_path());
    }
    Result<std::filesystem::path> find(const std::string& named) {
        return find_builtin_model(named, scratch / "bin", scratch / "src/models");
    }
    test::ScratchFolder scratch;
    const std::filesystem::path installed = scratch / "share/1bit/models/onebit-tiny-f16.gguf";
    const std::filesystem::path source = scratch / "src/models/onebit-tiny-f16.gguf";
};

TEST_F(BuiltinModel, TheNamedOneThenTheInstalledOneThenTheSource) {
    test::write_file(source, "x");
    EXPECT_EQ(*find(""), source);
    test::write_file(installed, "x");
    EXPECT_EQ(*find(""), installed);
    test::write_file(scratch / "own.gguf", "x");
    EXPECT_EQ(*find((scratch / "own.gguf").string()), scratch / "own.gguf");
}

TEST_F(BuiltinModel, ANamedOneThatIsMissingIsNotReplaced) {
    test::write_file(source, "x");
    for (const std::string& named :
         {(scratch / "none").string(), scratch.path().string(), std::string("a\0b", 3), std::string(5000, 'n')}) {
        const auto model = find(named);
        ASSERT_FALSE(model.ok());
        EXPECT_EQ(model.error().code, ErrorCode::not_found);
        EXPECT_EQ(model.error().subject, "ONEBIT_BUILTIN_MODEL");
    }
}

TEST_F(BuiltinModel, WithoutAnyTheErrorNamesEveryPlace) {
    std::filesystem::create_directory(source);
    const auto model = find("");
    ASSERT_FALSE(model.ok());
    EXPECT_EQ(model.error().code, ErrorCode::not_found);
    EXPECT_THAT(model.error().message(),
                testing::AllOf(testing::HasSubstr(installed.string()), testing::HasSubstr(source.string())));
    EXPECT_FALSE(find_builtin_model("", {}, {}).ok());
}

// The bytes that MODEL_CARD.md describes.
TEST_F(BuiltinModel, TheOneOfThisBuildIsTheReleasedOne) {
    const auto model = builtin_model();
    ASSERT_TRUE(model.ok()) << model.error().message();
    EXPECT_EQ(to_hex(*sha256_file(*model)), "468e1ff7d5e6af3b9b86924406af27902280e737695971b7194ccb2710573977");
}

TEST_F(BuiltinModel, TheEnvironmentNamesAnother) {
    test::write_file(scratch / "own.gguf", "x");
    ::setenv("ONEBIT_BUILTIN_MODEL", (scratch / "own.gguf").c_str(), 1);
    EXPECT_EQ(*builtin_model(), scratch / "own.gguf");
    ::setenv("ONEBIT_BUILTIN_MODEL", "", 1);
    EXPECT_NE(*builtin_model(), scratch / "own.gguf");
}

// The build makes them for the tests of other rooms: the target `models`.
TEST(QuantisedModels, AreMadeByTheBuild) {
    const char* folder = std::getenv("ONEBIT_TEST_DATA");
    ASSERT_NE(folder, nullptr) << "run it by ctest";
    const auto path = [&](const std::string& type) {
        return std::filesystem::path(folder) / ("onebit-tiny-" + type + ".gguf");
    };
    std::uintmax_t larger = std::filesystem::file_size(path("F16"));
    // from the largest to the smallest
    for (const std::string type : {"Q8_0", "Q4_K_M", "Q4_0", "IQ4_XS", "IQ3_XXS"}) {
        ASSERT_TRUE(std::filesystem::exists(path(type))) << type;
        EXPECT_EQ(test::read_file(path(type)).substr(0, 4), "GGUF");
        EXPECT_LT(std::filesystem::file_size(path(type)), larger) << type;
        larger = std::filesystem::file_size(path(type));
    }
}

}  // namespace
}  // namespace onebit
