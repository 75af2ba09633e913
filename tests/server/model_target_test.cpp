// Breaks when a context means another number of tokens to the plan than to the engine, or an answer has a name of the
// model that depends on the alphabet.
#include "server/supervisor/model_target.h"

#include <gtest/gtest.h>

#include <algorithm>

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

}  // namespace
}  // namespace onebit
