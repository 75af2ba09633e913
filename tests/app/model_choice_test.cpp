// If this fails, `1bit run` takes a question for a model or a model for a question.
#include "app/model_choice.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

namespace onebit {
namespace {

TEST(LooksLikeRepository, Names) {
    for (const char* name : {"org/repo", "org/repo:Q4_K_M", "Org-1/Repo.2_x:IQ4_XS", "org/repo/file.gguf"})
        EXPECT_TRUE(looks_like_repository(name)) << name;
    for (const char* name : {"", "builtin", "/etc/passwd", "./a/b", "../a", "org/", "org/../x", "a/b/c",
                             "a/b/c/d.gguf.txt", "what is 1/2 of 4?", "a/b c", "~/m.gguf", "org/repo\n"})
        EXPECT_FALSE(looks_like_repository(name)) << name;
}

class ModelChoice : public testing::Test {
protected:
    void SetUp() override {
        std::string name = testing::TempDir() + "choice-XXXXXX";
        folder_ = mkdtemp(name.data());
        config_.models["small"].source = "builtin";
        config_.models["small"].aliases = {"tiny"};
    }
    void TearDown() override { std::filesystem::remove_all(folder_); }
    RunWords split(std::vector<std::string> words) { return split_words(words, config_, folders_); }
    std::filesystem::path folder_;
    ServeConfig config_;
    CatalogFolders folders_;
};

TEST_F(ModelChoice, TwoWordsAreModelAndPrompt) {
    RunWords words = split({"question", "builtin"});
    EXPECT_EQ(words.model, "question");
    EXPECT_EQ(words.prompt, "builtin");
    EXPECT_TRUE(words.has_prompt);
}

TEST_F(ModelChoice, OneWordIsTheModelIfItNamesOne) {
    std::ofstream(folder_ / "plain") << "x";
    for (const std::string& model :
         {std::string("small"), std::string("tiny"), std::string("org/repo:Q8_0"), std::string("missing.gguf"),
          std::string("/no/such/model"), (folder_ / "plain").string()}) {
        RunWords words = split({model});
        EXPECT_EQ(words.model, model);
        EXPECT_FALSE(words.has_prompt) << model;
    }
    for (const std::string& prompt :
         {std::string("Hello"), std::string("What is the capital of France?"), std::string("-"),
          std::string("is 1/2 more than 1/3?"), std::string(100000, 'x'), std::string("Small?")}) {
        RunWords words = split({prompt});
        EXPECT_EQ(words.prompt, prompt);
        EXPECT_EQ(words.model, "");
        EXPECT_TRUE(words.has_prompt) << prompt;
    }
}

TEST_F(ModelChoice, NoWordIsNeither) {
    RunWords words = split({});
    EXPECT_EQ(words.model, "");
    EXPECT_FALSE(words.has_prompt);
}

TEST_F(ModelChoice, OfflineNothingIsFetched) {
    std::atomic<bool> cancel{false};
    config_.offline = true;
    Result<void> fetched = fetch_if_missing("org/repo:Q8_0", config_, folders_, cancel);
    ASSERT_FALSE(fetched);
    EXPECT_EQ(fetched.error().code, ErrorCode::not_found);
    EXPECT_THAT(fetched.error().message(), testing::HasSubstr("--offline"));
    config_.offline = false;
    EXPECT_EQ(fetch_if_missing("/no/such.gguf", config_, folders_, cancel).error().code, ErrorCode::not_found);
}

}  // namespace
}  // namespace onebit
