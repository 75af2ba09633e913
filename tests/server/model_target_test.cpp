// Breaks when a context means another number of tokens to the plan than to the engine, an answer has a name of the
// model that depends on the alphabet, the line to try names a model that is not loaded, or a slot of the CPU stays busy
// for four ubatches after its client has left.
#include "server/supervisor/model_target.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>

#include "tests/server/gguf_writer.h"
#include "tests/server/supervisor_testing.h"

namespace onebit {
namespace {

using Words = std::vector<std::string>;

std::string after(const Words& words, const std::string& flag) {
    const auto at = std::find(words.begin(), words.end(), flag);
    return at == words.end() || at + 1 == words.end() ? "" : *(at + 1);
}

ModelTarget target() {
    ModelTarget target;
    target.id = "model";
    target.entry.files = {"/models/m.gguf"};
    target.entry.context_length = 32768;
    return target;
}

TEST(SlotsOfAModel, a_context_is_that_of_one_request_for_the_plan_and_its_product_for_the_engine) {
    ModelTarget one = target();
    one.settings.context = 4096;
    one.settings.parallel = 3;
    const std::vector<SlotShape> shapes = slot_shapes(one);
    ASSERT_EQ(shapes.size(), 1u);
    const Words engine = engine_arguments(one, shapes[0], false), plan = plan_arguments(one, shapes[0]);
    EXPECT_EQ(after(engine, "--ctx-size"), "12288");
    EXPECT_EQ(after(engine, "--parallel"), "3");
    EXPECT_EQ(after(plan, "--ctx-size"), "4096");
    EXPECT_EQ(after(plan, "--parallel"), "3");
    EXPECT_EQ(after(plan, "--shared-ctx-size"), "");
}

TEST(SlotsOfAModel, what_is_left_open_has_smaller_ones_to_try) {
    const auto shapes_of = [](std::optional<uint32_t> context, std::optional<uint32_t> parallel, uint64_t trained) {
        ModelTarget one = target();
        one.entry.context_length = trained;
        one.settings.context = context;
        one.settings.parallel = parallel;
        std::string text;
        for (const SlotShape& shape : slot_shapes(one))
            text += std::to_string(shape.slots) + "x" + std::to_string(shape.context) + " ";
        return text;
    };
    EXPECT_EQ(shapes_of({}, {}, 32768), "4x8192 1x8192 1x4096 ");
    EXPECT_EQ(shapes_of({}, {}, 4096), "4x4096 1x4096 ");
    EXPECT_EQ(shapes_of({}, {}, 0), "4x4096 1x4096 ") << "unknown";
    EXPECT_EQ(shapes_of({}, 2, 32768), "2x8192 2x4096 ");
    EXPECT_EQ(shapes_of(0, {}, 32768), "4x32768 1x32768 ");
    EXPECT_EQ(shapes_of(512, 1, 32768), "1x512 ");
}

TEST(SlotsOfAModel, what_llama_cpp_is_told_by_hand_is_shared_by_all_slots) {
    const auto plan_of = [](Words arguments) {
        ModelTarget one = target();
        one.settings.arguments = std::move(arguments);
        return plan_arguments(one, slot_shapes(one).front());
    };
    Words plan = plan_of({"-c", "8192", "-np", "2"});
    EXPECT_EQ(after(plan, "--shared-ctx-size"), "8192");
    EXPECT_EQ(after(plan, "--parallel"), "2");
    EXPECT_EQ(after(plan, "--ctx-size"), "");
    plan = plan_of({"--parallel", "2"});
    EXPECT_EQ(after(plan, "--shared-ctx-size"), "0") << "the model's own";
    plan = plan_of({"-c", "many"});
    EXPECT_EQ(after(plan, "--shared-ctx-size"), "0") << "for llama.cpp to refuse";
}

// llama.cpp answers with the first of its names in the order of the alphabet
TEST(NamesOfAModel, the_engine_knows_the_one_that_answers_use) {
    ModelTarget one = target();
    one.aliases = {"a", "z"};
    EXPECT_EQ(after(engine_arguments(one, {4096, 1}, false), "--alias"), "model");
    one.settings.arguments = {"--alias", "mine"};
    const Words words = engine_arguments(one, {4096, 1}, false);
    EXPECT_EQ(std::count(words.begin(), words.end(), "--alias"), 1);
    EXPECT_EQ(after(words, "--alias"), "mine");
}

TEST(NameToTry, is_of_the_first_model_that_is_preloaded_as_a_request_may_name_it) {
    const testing::TempFolder ours, elsewhere;
    const auto write = [](const std::filesystem::path& file) {
        std::ofstream(file, std::ios::binary) << test::listed_model().bytes();
        return file.string();
    };
    const std::string listed = write(ours.path() / "listed.gguf"), apart = write(elsewhere.path() / "apart.gguf");
    CatalogFolders folders;
    folders.ours = ours.path();
    ServeConfig config;
    const auto name = [&](Words preload) {
        config.preload = std::move(preload);
        return name_to_try(config, folders);
    };
    EXPECT_EQ(name({}), "builtin");
    EXPECT_EQ(name({"listed", apart}), "listed");
    EXPECT_EQ(name({listed}), "listed");
    EXPECT_EQ(name({apart, "listed"}), apart) << "a request may name it so, since it is preloaded";
    EXPECT_EQ(name({"missing", "LIST"}), "listed");
    EXPECT_EQ(name({"missing"}), "builtin");
    config.models["mine"].source = apart;
    config.models["mine"].aliases = {"other"};
    EXPECT_EQ(name({"other"}), "mine");
    config.default_model.clear();
    EXPECT_EQ(name({}), "");
}

TEST(BatchOfTheCpu, is_one_ubatch_unless_the_user_chose_one) {
    const auto batch = [](std::vector<std::string> devices, Words arguments, const char* projector = "") {
        ModelTarget one = target();
        one.settings.devices = std::move(devices);
        one.settings.arguments = std::move(arguments);
        one.entry.projector = projector;
        return after(engine_arguments(one, {4096, 1}, false), "--batch-size");
    };
    EXPECT_EQ(batch({"CPU"}, {}), "512");
    EXPECT_EQ(batch({"CPU"}, {"-ub", "128"}), "128");
    EXPECT_EQ(batch({"CPU"}, {"-ub", "32"}), "32");
    EXPECT_EQ(batch({"CPU"}, {"--ubatch-size", "2048"}), "2048");
    EXPECT_EQ(batch({}, {"--device", "none"}), "512");
    for (const char* left : {"31", "0", "2049", "-1", "x", "99999999999999999999"})
        EXPECT_EQ(batch({"CPU"}, {"-ub", left}), "") << left;
    EXPECT_EQ(batch({}, {}), "") << "the engine chooses its devices";
    EXPECT_EQ(batch({"Vulkan0"}, {}), "");
    EXPECT_EQ(batch({"CPU"}, {"--device", "Vulkan0"}), "");
    EXPECT_EQ(batch({"CPU"}, {"-b", "1024"}), "") << "theirs alone";
    EXPECT_EQ(batch({"CPU"}, {"--batch-size", "1024"}), "1024");
    EXPECT_EQ(batch({"CPU"}, {}, "/models/mmproj.gguf"), "") << "images";
    EXPECT_EQ(batch({"CPU"}, {"--embeddings"}), "4096") << "a whole text";
    ModelTarget tandem = target();
    tandem.settings.devices = {"CPU"};
    tandem.settings.prefill_device = {"Vulkan0"};
    EXPECT_EQ(after(engine_arguments(tandem, {4096, 1}, false), "--batch-size"), "");
}

TEST(BatchOfTheCpu, heeds_the_variables_that_llama_cpp_reads) {
    ModelTarget one = target();
    one.settings.devices = {"CPU"};
    ::setenv("LLAMA_ARG_UBATCH", "256", 1);
    EXPECT_EQ(after(engine_arguments(one, {4096, 1}, false), "--batch-size"), "256");
    ::setenv("LLAMA_ARG_BATCH", "1024", 1);
    EXPECT_EQ(after(engine_arguments(one, {4096, 1}, false), "--batch-size"), "");
    ::unsetenv("LLAMA_ARG_UBATCH");
    ::unsetenv("LLAMA_ARG_BATCH");
    EXPECT_EQ(after(engine_arguments(one, {4096, 1}, false), "--batch-size"), "512");
}

}  // namespace
}  // namespace onebit
