// Breaks when a required call is refused for a template of which llama.cpp would have held the answer to one.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "chat.h"

namespace onebit {
namespace {

std::string grammar_of_required_call(const common_chat_templates* templates) {
    common_chat_msg message;
    message.role = "user";
    message.content = "x";
    common_chat_templates_inputs inputs;
    inputs.messages = {message};
    inputs.tools = {{"f", "", R"({"type":"object","properties":{"a":{"type":"string"}}})"}};
    inputs.tool_choice = COMMON_CHAT_TOOL_CHOICE_REQUIRED;
    return common_chat_templates_apply(templates, inputs).grammar;
}

TEST(ToolTemplate, one_that_knows_no_tools_has_no_form_for_calls) {
    int with = 0, without = 0;
    for (const auto& entry : std::filesystem::directory_iterator(LLAMA_TEMPLATES)) {
        if (entry.path().extension() != ".jinja") continue;
        std::stringstream text;
        text << std::ifstream(entry.path()).rdbuf();
        const auto templates = common_chat_templates_init(nullptr, text.str());
        auto caps = common_chat_templates_get_caps(templates.get());
        ASSERT_EQ(caps.count("supports_tools") + caps.count("supports_tool_calls"), 2u);
        if (caps["supports_tools"] || caps["supports_tool_calls"]) {
            with++;
            continue;
        }
        without++;
        EXPECT_EQ(grammar_of_required_call(templates.get()), "") << entry.path();
    }
    EXPECT_GT(with, 20);
    EXPECT_GT(without, 2);
}

}  // namespace
}  // namespace onebit
