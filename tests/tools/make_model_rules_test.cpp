// If this fails, make-model's files are not those that llama.cpp's quantiser would make of the real models.
#include <gtest/gtest.h>

#include <memory>

#include "llama-ext.h"
#include "tools/make-model/arguments.h"
#include "tools/make-model/file_types.h"
#include "tools/make-model/model_writer.h"

namespace onebit {
namespace {

struct Free {
    void operator()(ggml_context* context) const { ggml_free(context); }
    void operator()(llama_model* model) const { llama_model_free(model); }
    void operator()(quantize_state_impl* state) const { llama_quant_free(state); }
};

// The types by llama.cpp's own rules; F32 for what it leaves alone.
std::vector<ggml_type> types_by_llama(const ModelShape& shape, const FileType& file,
                                      const std::vector<TensorSpec>& specs) {
    llama_quant_model_desc description{};
    description.architecture = shape.architecture.c_str();
    description.n_embd = shape.width;
    description.n_ff = shape.feed_forward;
    description.n_layer = shape.layers;
    description.n_head = shape.heads;
    description.n_head_kv = shape.kv_heads;
    description.n_expert = shape.experts;
    description.n_embd_head_k = description.n_embd_head_v = shape.head_width;
    const std::unique_ptr<llama_model, Free> model(llama_quant_model_from_metadata(&description));
    llama_model_quantize_params parameters = llama_model_quantize_default_params();
    parameters.ftype = file.number;
    const std::unique_ptr<quantize_state_impl, Free> state(llama_quant_init(model.get(), &parameters));
    const std::unique_ptr<ggml_context, Free> context(
        ggml_init({specs.size() * ggml_tensor_overhead(), nullptr, true}));
    std::vector<ggml_tensor*> quantised;
    std::vector<size_t> places;
    for (size_t i = 0; i < specs.size(); i++) {
        const TensorSpec& spec = specs[i];
        const int64_t experts = std::max<int64_t>(spec.experts, 1);
        const int64_t sizes[] = {int64_t(spec.row), int64_t(spec.rows) / experts, experts};
        const int dimensions = spec.experts != 0 ? 3 : spec.role == TensorRole::vector ? 1 : 2;
        ggml_tensor* tensor = ggml_new_tensor(context.get(), GGML_TYPE_F32, dimensions, sizes);
        ggml_set_name(tensor, spec.name.c_str());
        if (!llama_quant_tensor_allows_quantization(state.get(), tensor)) continue;
        quantised.push_back(tensor);
        places.push_back(i);
    }
    std::vector<ggml_type> chosen(quantised.size(), GGML_TYPE_F32), types(specs.size(), GGML_TYPE_F32);
    llama_quant_compute_types(state.get(), file.number, quantised.data(), chosen.data(), chosen.size());
    for (size_t i = 0; i < chosen.size(); i++) types[places[i]] = chosen[i];
    return types;
}

void expect_the_same(const ModelShape& shape, const char* except = "") {
    const std::vector<TensorSpec> specs = tensors_of(shape, 6);
    for (const FileType& file : file_types()) {
        if (file.name == except) continue;
        const std::vector<ggml_type> expected = types_by_llama(shape, file, specs);
        for (size_t i = 0; i < specs.size(); i++) {
            ASSERT_STREQ(ggml_type_name(tensor_type(file, shape, specs[i], false)), ggml_type_name(expected[i]))
                << shape.name << " " << file.name << " " << specs[i].name;
        }
    }
}

TEST(MakeModelTypes, AreThoseOfLlamasQuantiserForEveryShape) {
    for (const ModelShape& shape : model_shapes()) expect_the_same(shape);
}

TEST(MakeModelTypes, AreThoseOfLlamasQuantiserForEveryNumberOfLayers) {
    for (uint32_t layers = 1; layers <= 40; layers++) {
        ModelShape shape = *find_shape("tiny");
        shape.layers = layers;
        expect_the_same(shape);
    }
}

// blocks of 256 do not fit, blocks of 32 do or do not; Q1_0 has blocks of 128 and llama.cpp no other type for it
TEST(MakeModelTypes, AreThoseOfLlamasQuantiserForOddRows) {
    for (const uint32_t width : {32u, 64u, 96u, 320u, 720u}) {
        for (const char* name : {"tiny", "tiny-tied", "tiny-moe", "tiny-qwen2"}) {
            ModelShape shape = *find_shape(name);
            shape.layers = 9;
            shape.width = width;
            shape.feed_forward = shape.expert_feed_forward = width + 16;
            expect_the_same(shape, "Q1_0");
        }
    }
}

TEST(MakeModelTypes, BaseTypesAreLlamas) {
    for (const FileType& file : file_types()) {
        EXPECT_EQ(file.base, llama_ftype_get_default_type(file.number)) << file.name;
        EXPECT_EQ(find_file_type(file.name), &file);
    }
    EXPECT_EQ(find_file_type("q4_k_m"), find_file_type("Q4_K_M"));
    EXPECT_EQ(find_file_type(""), nullptr);
    EXPECT_EQ(find_file_type("Q4_K_M "), nullptr);
}

// llama.cpp's test interface knows no importance matrix: the rules that it changes, by hand
TEST(MakeModelTypes, AnImportanceMatrixChangesThese) {
    const ModelShape& shape = *find_shape("qwen3-0.6b");
    const auto type = [&shape](const char* file, TensorRole role, uint32_t layer, bool importance) {
        TensorSpec spec;
        spec.role = role;
        spec.layer = layer;
        spec.row = 3072;
        return tensor_type(*find_file_type(file), shape, spec, importance);
    };
    EXPECT_EQ(type("IQ3_XXS", TensorRole::value, 0, false), GGML_TYPE_IQ3_S);
    EXPECT_EQ(type("IQ3_XXS", TensorRole::value, 0, true), GGML_TYPE_IQ3_XXS);
    EXPECT_EQ(type("IQ3_XXS", TensorRole::down, 0, false), GGML_TYPE_Q4_K);
    EXPECT_EQ(type("IQ3_XXS", TensorRole::down, 0, true), GGML_TYPE_IQ3_XXS);
    EXPECT_EQ(type("IQ4_XS", TensorRole::down, 2, false), GGML_TYPE_Q5_K);
    EXPECT_EQ(type("IQ4_XS", TensorRole::down, 2, true), GGML_TYPE_IQ4_XS);
    EXPECT_EQ(type("Q4_0", TensorRole::down, 2, true), GGML_TYPE_Q4_1);
    EXPECT_EQ(type("Q4_0", TensorRole::down, 3, true), GGML_TYPE_Q4_0);
    EXPECT_EQ(type("Q5_0", TensorRole::down, 2, true), GGML_TYPE_Q5_1);
    EXPECT_TRUE(made_with_importance(*find_file_type("IQ3_XXS")));
    EXPECT_FALSE(made_with_importance(*find_file_type("Q4_0")));
}

ModelPlan plan_of(const char* shape, const char* type) {
    ModelRequest request;
    request.shape = *find_shape(shape);
    request.type = *find_file_type(type);
    return plan_model_file(request);
}

// as the models' authors publish them
TEST(MakeModelPlan, ParametersAreThoseOfTheRealModels) {
    EXPECT_EQ(plan_of("qwen3-0.6b", "F16").parameters, 596049920u);
    EXPECT_EQ(plan_of("qwen3-8b", "F16").parameters, 8190735360u);
    EXPECT_EQ(plan_of("qwen2.5-7b", "F16").parameters, 7615616512u);
    EXPECT_EQ(plan_of("qwen3-30b-a3b", "F16").parameters, 30532122624u);
}

// sizes of published files of these models, to three figures
TEST(MakeModelPlan, SizesAreThoseOfTheRealFiles) {
    const auto gigabytes = [](const char* shape, const char* type) {
        return static_cast<double>(plan_of(shape, type).tensor_bytes) * 1e-9;
    };
    EXPECT_NEAR(gigabytes("qwen3-0.6b", "Q4_K_M"), 0.391, 0.002);
    EXPECT_NEAR(gigabytes("qwen3-8b", "Q4_K_M"), 5.02, 0.01);
    EXPECT_NEAR(gigabytes("qwen2.5-7b", "Q4_K_M"), 4.68, 0.01);
    EXPECT_NEAR(gigabytes("qwen3-30b-a3b", "Q4_K_M"), 18.55, 0.02);
    EXPECT_NEAR(gigabytes("qwen3-8b", "Q8_0"), 8.70, 0.01);
    EXPECT_NEAR(gigabytes("qwen3-8b", "F16"), 16.38, 0.01);
}

Result<MakeModelArguments> parse(std::vector<std::string> arguments) { return parse_make_model(arguments); }

TEST(MakeModelArguments, AreTakenInAnyOrder) {
    const auto parsed = parse({"--seed", "18446744073709551615", "tiny", "--layers=1", "iq3_xxs", "--logit-std", "0.5",
                               "--threads=256", "out.gguf"});
    ASSERT_TRUE(parsed.ok()) << parsed.error().message();
    EXPECT_EQ(parsed->request.shape.name, "tiny");
    EXPECT_EQ(parsed->request.shape.layers, 1u);
    EXPECT_EQ(parsed->request.type.name, "IQ3_XXS");
    EXPECT_EQ(parsed->request.seed, UINT64_MAX);
    EXPECT_EQ(parsed->request.logit_deviation, 0.5);
    EXPECT_EQ(parsed->request.threads, 256u);
    EXPECT_EQ(parsed->request.file, "out.gguf");
    EXPECT_TRUE(parse({"--help"})->help);
    EXPECT_GE(parse({"tiny", "F16", "x"})->request.threads, 1u);
}

TEST(MakeModelArguments, WrongOnesAreUsageErrorsThatNameThem) {
    const std::vector<std::pair<std::vector<std::string>, std::string>> cases = {
        {{}, "SHAPE TYPE FILE"},
        {{"tiny"}, "1 word"},
        {{"tiny", "F16", "a", "b"}, "4 words"},
        {{"qwen3-9b", "F16", "a"}, "did you mean qwen3-8b?"},
        {{"", "F16", "a"}, "shape"},
        {{"tiny", "Q4_K_N", "a"}, "did you mean Q4_K_"},
        {{"tiny", "F16", ""}, "FILE"},
        {{"tiny", "F16", "a", "--layer", "1"}, "did you mean --layers?"},
        {{"tiny", "F16", "a", "--layers"}, "a value"},
        {{"tiny", "F16", "a", "--layers", "0"}, "from 1 to 512"},
        {{"tiny", "F16", "a", "--layers", "513"}, "from 1 to 512"},
        {{"tiny", "F16", "a", "--layers", "-1"}, "'-1'"},
        {{"tiny", "F16", "a", "--layers", "99999999999999999999"}, "--layers"},
        {{"tiny", "F16", "a", "--layers", "2x"}, "'2x'"},
        {{"tiny", "F16", "a", "--seed="}, "''"},
        {{"tiny", "F16", "a", "--seed", "18446744073709551616"}, "--seed"},
        {{"tiny", "F16", "a", "--logit-std", "nan"}, "'nan'"},
        {{"tiny", "F16", "a", "--logit-std", "inf"}, "'inf'"},
        {{"tiny", "F16", "a", "--logit-std", "0"}, "--logit-std"},
        {{"tiny", "F16", "a", "--threads", "0"}, "from 1 to 256"},
        {{"tiny", "F16", "a", "--threads", "257"}, "from 1 to 256"},
        {{"tiny", "F16", "a", "-x"}, "'-x'"},
        {{std::string(100000, 'x'), "F16", "a"}, "shape"},
    };
    for (const auto& [arguments, part] : cases) {
        const auto parsed = parse(arguments);
        ASSERT_FALSE(parsed.ok()) << part;
        EXPECT_EQ(parsed.error().code, ErrorCode::usage);
        EXPECT_NE(parsed.error().message().find(part), std::string::npos) << parsed.error().message();
    }
}

TEST(MakeModelArguments, UsageNamesEveryShapeAndType) {
    const std::string usage = make_model_usage();
    for (const ModelShape& shape : model_shapes()) EXPECT_NE(usage.find(" " + shape.name), std::string::npos);
    for (const FileType& type : file_types()) EXPECT_NE(usage.find(" " + type.name), std::string::npos);
}

}  // namespace
}  // namespace onebit
