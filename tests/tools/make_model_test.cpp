// If this fails, models of make-model do not load, differ from run to run, or have logits that say nothing.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>

#include "llama.h"
#include "tests/base/scratch.h"
#include "tools/make-model/model_writer.h"
#include "tools/make-model/vocabulary.h"

namespace onebit {
namespace {

using test::ScratchFolder;

ModelRequest request_of(const ScratchFolder& folder, const char* shape, const char* type) {
    ModelRequest request;
    request.shape = *find_shape(shape);
    request.type = *find_file_type(type);
    request.file = folder / (std::string(shape) + "-" + type + ".gguf");
    request.threads = 2;
    return request;
}

struct Free {
    void operator()(llama_model* model) const { llama_model_free(model); }
    void operator()(llama_context* context) const { llama_free(context); }
};
using Model = std::unique_ptr<llama_model, Free>;
using Context = std::unique_ptr<llama_context, Free>;

Model load(const std::filesystem::path& file) {
    llama_log_set([](ggml_log_level, const char*, void*) {}, nullptr);
    llama_model_params parameters = llama_model_default_params();
    ggml_backend_dev_t none = nullptr;
    parameters.devices = &none;
    parameters.n_gpu_layers = 0;
    return Model(llama_model_load_from_file(file.c_str(), parameters));
}

// Logits after each of these tokens.
std::vector<float> logits_of(llama_model* model, std::vector<llama_token> tokens) {
    llama_context_params parameters = llama_context_default_params();
    parameters.n_ctx = 256;
    parameters.n_threads = parameters.n_threads_batch = 2;
    const Context context(llama_init_from_model(model, parameters));
    if (!context) return {};
    llama_batch batch = llama_batch_init(static_cast<int32_t>(tokens.size()), 0, 1);
    batch.n_tokens = static_cast<int32_t>(tokens.size());
    for (int32_t i = 0; i < batch.n_tokens; i++) {
        batch.token[i] = tokens[static_cast<size_t>(i)];
        batch.pos[i] = i;
        batch.n_seq_id[i] = 1;
        batch.seq_id[i][0] = 0;
        batch.logits[i] = 1;
    }
    std::vector<float> logits;
    if (llama_decode(context.get(), batch) == 0) {
        const size_t vocabulary = static_cast<size_t>(llama_vocab_n_tokens(llama_model_get_vocab(model)));
        const float* first = llama_get_logits(context.get());
        logits.assign(first, first + vocabulary * tokens.size());
    }
    llama_batch_free(batch);
    return logits;
}

std::vector<llama_token> some_tokens(int32_t vocabulary) {
    std::vector<llama_token> tokens;
    for (int32_t i = 0; i < 32; i++) tokens.push_back((i * 977 + 13) % (vocabulary - 8));
    return tokens;
}

double deviation(const std::vector<float>& values) {
    double sum = 0, squares = 0;
    for (const float value : values) {
        sum += value;
        squares += static_cast<double>(value) * value;
    }
    const auto count = static_cast<double>(values.size());
    return std::sqrt(squares / count - sum / count * (sum / count));
}

class MakeModelLoads : public testing::TestWithParam<std::pair<const char*, const char*>> {};

TEST_P(MakeModelLoads, AndItsLogitsHaveTheDeviationAskedFor) {
    const ScratchFolder folder;
    const ModelRequest request = request_of(folder, GetParam().first, GetParam().second);
    const auto plan = write_model(request);
    ASSERT_TRUE(plan.ok()) << plan.error().message();
    const Model model = load(request.file);
    ASSERT_TRUE(model);
    EXPECT_EQ(llama_model_n_params(model.get()), plan->parameters);
    EXPECT_EQ(llama_model_size(model.get()), plan->tensor_bytes);
    EXPECT_EQ(llama_model_n_layer(model.get()), 4);
    const int32_t vocabulary = llama_vocab_n_tokens(llama_model_get_vocab(model.get()));
    ASSERT_EQ(vocabulary, 2048);
    const std::vector<float> logits = logits_of(model.get(), some_tokens(vocabulary));
    ASSERT_FALSE(logits.empty());
    for (const float logit : logits) ASSERT_TRUE(std::isfinite(logit));
    EXPECT_NEAR(deviation(logits), 6, 0.5);
    EXPECT_GE(deviation(logits), 5);
    // each position has a distribution of its own: attention and experts do something
    size_t alike = 0;
    for (size_t i = 0; i < 2048; i++) alike += logits[i] == logits[2048 + i];
    EXPECT_LT(alike, 20u);
}

INSTANTIATE_TEST_SUITE_P(Types, MakeModelLoads,
                         testing::Values(std::pair("tiny", "F32"), std::pair("tiny", "F16"), std::pair("tiny", "BF16"),
                                         std::pair("tiny", "Q8_0"), std::pair("tiny", "Q4_0"),
                                         std::pair("tiny", "Q5_1"), std::pair("tiny", "Q2_K"),
                                         std::pair("tiny", "Q4_K_M"), std::pair("tiny", "Q5_K_M"),
                                         std::pair("tiny", "Q6_K"), std::pair("tiny", "IQ4_XS"),
                                         std::pair("tiny", "IQ3_XXS"), std::pair("tiny", "TQ2_0"),
                                         std::pair("tiny-tied", "Q4_K_M"), std::pair("tiny-qwen2", "Q4_K_M"),
                                         std::pair("tiny-moe", "Q4_K_M"), std::pair("tiny-moe", "MXFP4_MOE")),
                         [](const auto& info) {
                             std::string name = std::string(info.param.first) + "_" + info.param.second;
                             std::ranges::replace(name, '-', '_');
                             return name;
                         });

TEST(MakeModel, TheSameSeedGivesTheSameBytesOnAnyNumberOfThreads) {
    const ScratchFolder folder;
    ModelRequest request = request_of(folder, "tiny-moe", "Q4_K_M");
    std::string first;
    for (const unsigned threads : {1u, 2u, 7u}) {
        request.threads = threads;
        request.file = folder / std::to_string(threads);
        ASSERT_TRUE(write_model(request).ok());
        const std::string bytes = test::read_file(request.file);
        if (first.empty()) first = bytes;
        EXPECT_TRUE(bytes == first) << threads;
    }
    request.seed = 2;
    ASSERT_TRUE(write_model(request).ok());
    const std::string other = test::read_file(request.file);
    EXPECT_EQ(other.size(), first.size());
    EXPECT_FALSE(other == first);
}

// a single layer more or less must not change the rest: the same pools, the same places
TEST(MakeModel, NoTwoRowsOfAMatrixAreAlike) {
    const ScratchFolder folder;
    const ModelRequest request = request_of(folder, "tiny", "Q4_K_M");
    ASSERT_TRUE(write_model(request).ok());
    const Model model = load(request.file);
    ASSERT_TRUE(model);
    const std::vector<float> logits = logits_of(model.get(), {5, 6, 7});
    ASSERT_EQ(logits.size(), 3u * 2048);
    // equal rows of the output matrix would be equal logits
    std::vector<float> last(logits.end() - 2048, logits.end());
    std::ranges::sort(last);
    const auto equal = std::ranges::unique(last);
    EXPECT_LT(equal.size(), 8u);
}

TEST(MakeModel, LayersAndDeviationAreTakenOver) {
    const ScratchFolder folder;
    ModelRequest request = request_of(folder, "tiny", "F16");
    request.shape.layers = 1;
    request.logit_deviation = 12;
    ASSERT_TRUE(write_model(request).ok());
    const Model model = load(request.file);
    ASSERT_TRUE(model);
    EXPECT_EQ(llama_model_n_layer(model.get()), 1);
    EXPECT_NEAR(deviation(logits_of(model.get(), some_tokens(2048))), 12, 1);
}

TEST(MakeModel, AnyTextSurvivesTheTokenizer) {
    const ScratchFolder folder;
    ModelRequest request = request_of(folder, "qwen3-0.6b", "Q4_0");
    request.shape.width = 256;  // the whole vocabulary, and little else
    request.shape.feed_forward = 256;
    request.shape.layers = 1;
    ASSERT_TRUE(write_model(request).ok());
    const Model model = load(request.file);
    ASSERT_TRUE(model);
    const llama_vocab* vocab = llama_model_get_vocab(model.get());
    EXPECT_EQ(llama_vocab_n_tokens(vocab), 151936);
    EXPECT_EQ(llama_vocab_eos(vocab), 151645);
    EXPECT_NE(llama_model_chat_template(model.get(), nullptr), nullptr);
    const std::string text = "hello World, it's 12:30\n\t\xc3\xa4\xe2\x82\xac\xf0\x9f\x8e\xb2  end\x01";
    std::vector<llama_token> tokens(256);
    const int32_t count =
        llama_tokenize(vocab, text.data(), static_cast<int32_t>(text.size()), tokens.data(), 256, false, false);
    ASSERT_GT(count, 0);
    EXPECT_LT(count, static_cast<int32_t>(text.size()));  // words are more than single bytes
    std::string back(1024, 0);
    const int32_t length = llama_detokenize(vocab, tokens.data(), count, back.data(), 1024, false, false);
    ASSERT_GT(length, 0);
    EXPECT_EQ(back.substr(0, static_cast<size_t>(length)), text);
}

TEST(MakeModel, VocabularyHasNoTokenTwice) {
    const Vocabulary words = make_vocabulary(151936, 151643);
    ASSERT_EQ(words.tokens.size(), 151936u);
    EXPECT_EQ(words.types.size(), words.tokens.size());
    EXPECT_EQ(words.merges.size(), 151643u - 256);
    EXPECT_EQ(words.end_of_text, 151643u);
    std::vector<std::string> sorted = words.tokens;
    std::ranges::sort(sorted);
    EXPECT_TRUE(std::ranges::adjacent_find(sorted) == sorted.end());
    EXPECT_EQ(make_vocabulary(259, 256).tokens.size(), 259u);
}

TEST(MakeModel, WhatCannotBeWrittenIsAnErrorThatLeavesNothing) {
    const ScratchFolder folder;
    ModelRequest request = request_of(folder, "tiny", "F16");
    request.file = folder.path();
    auto written = write_model(request);
    ASSERT_FALSE(written.ok());
    EXPECT_EQ(written.error().code, ErrorCode::usage);
    request.file = folder / "missing" / "x.gguf";
    written = write_model(request);
    ASSERT_FALSE(written.ok());
    EXPECT_EQ(written.error().code, ErrorCode::not_found);
    EXPECT_TRUE(test::names_in(folder.path()).empty());
}

TEST(MakeModel, ADiskThatIsTooSmallIsNamedBeforeWriting) {
    const ScratchFolder folder;
    if (!test::mount_small_disk(folder.path(), 1024)) GTEST_SKIP() << "this system forbids mounting";
    const ModelRequest request = request_of(folder, "tiny", "F16");
    const auto written = write_model(request);
    ASSERT_FALSE(written.ok());
    EXPECT_EQ(written.error().code, ErrorCode::no_space);
    EXPECT_TRUE(test::names_in(folder.path()).empty());
}

}  // namespace
}  // namespace onebit
