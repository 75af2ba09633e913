// Breaks when a client's choice of a tool is not obeyed, or is taken for another without a word.
#include "server/supervisor/tool_choice.h"

#include "rewrite_testing.h"

namespace onebit {
namespace {

using nlohmann::json;

json chat_tools() {
    json tools = json::array();
    for (const char* name : {"a", "b", "c"})
        tools.push_back({{"type", "function"}, {"function", {{"name", name}, {"parameters", {{"type", "object"}}}}}});
    return tools;
}
json flat_tools(bool typed) {
    json tools = json::array();
    for (const char* name : {"a", "b", "c"}) {
        tools.push_back({{"name", name}});
        if (typed) tools.back()["type"] = "function";
    }
    return tools;
}

struct Made {
    std::vector<std::string> tools;  // names
    json choice;
    bool must_call = false;
};

Made made(const std::string& path, const json& tools, const json& choice) {
    const std::string body = json{{"tools", tools}, {"tool_choice", choice}, {"temperature", 0}}.dump();
    auto checked = check_request(path, body);
    EXPECT_TRUE(checked.ok()) << body << (checked.ok() ? "" : checked.error().message());
    Made result;
    if (!checked.ok()) return result;
    const json sent = json::parse(checked->body.value_or(body));
    EXPECT_EQ(sent["temperature"], 0);
    result.must_call = checked->must_call;
    result.choice = sent.value("tool_choice", json());
    for (const json& tool : sent.value("tools", json::array()))
        result.tools.push_back(tool.value("function", tool)["name"]);
    return result;
}

void expect_refused_choice(const std::string& path, const json& tools, const json& choice, const std::string& field) {
    expect_refused(path, json{{"tools", tools}, {"tool_choice", choice}}.dump(), field);
}

using Names = std::vector<std::string>;
const Names kAll = {"a", "b", "c"};

TEST(ToolChoice, a_named_tool_is_left_alone_and_required) {
    for (const char* name : {"a", "b", "c"}) {
        for (const json& form : {json{{"type", "function"}, {"function", {{"name", name}}}},
                                 json{{"type", "function"}, {"name", name}}, json{{"type", "tool"}, {"name", name}}}) {
            for (const char* path : {kChatPath, kResponsesPath}) {
                const Made result = made(path, path == kChatPath ? chat_tools() : flat_tools(true), form);
                EXPECT_EQ(result.tools, Names{name}) << path << form;
                EXPECT_EQ(result.choice, "required") << path << form;
                EXPECT_TRUE(result.must_call);
            }
        }
        const Made result = made(kMessagesPath, flat_tools(false), {{"type", "tool"}, {"name", name}});
        EXPECT_EQ(result.tools, Names{name});
        EXPECT_TRUE(result.must_call);
    }
}

TEST(ToolChoice, a_name_that_is_no_tools_is_refused_with_those_that_are) {
    expect_refused_choice(kChatPath, chat_tools(), {{"type", "function"}, {"function", {{"name", "d"}}}},
                          "tool_choice.function.name': expected one of the tools, 'a', 'b', 'c', found 'd'");
    expect_refused_choice(kResponsesPath, flat_tools(true), {{"type", "function"}, {"name", "d"}},
                          "tool_choice.name': expected one of the tools, 'a', 'b', 'c', found 'd'");
    expect_refused_choice(kMessagesPath, flat_tools(false), {{"type", "tool"}, {"name", "d"}},
                          "tool_choice.name': expected one of the tools");
    expect_refused_choice(kMessagesPath, flat_tools(false), {{"type", "tool"}}, "tool_choice.name'");
    expect_refused_choice(kChatPath, chat_tools(), {{"type", "function"}}, "tool_choice.function.name'");
    // many tools do not make a long message
    json many = json::array();
    for (int i = 0; i < 1000; i++) many.push_back({{"name", std::string(200, 'n') + std::to_string(i)}});
    auto checked =
        check_request(kMessagesPath, json{{"tools", many}, {"tool_choice", {{"type", "tool"}, {"name", "d"}}}}.dump());
    ASSERT_FALSE(checked.ok());
    EXPECT_LT(checked.error().message().size(), 1200u);
}

TEST(ToolChoice, words_become_those_of_the_engine) {
    for (const json& any : {json("any"), json("required"), json{{"type", "any"}}, json{{"type", "required"}}}) {
        const Made result = made(kChatPath, chat_tools(), any);
        EXPECT_EQ(result.choice, "required") << any;
        EXPECT_EQ(result.tools, kAll);
        EXPECT_TRUE(result.must_call);
    }
    for (const char* word : {"auto", "none"}) {
        for (const json& form : {json(word), json{{"type", word}}}) {
            const Made result = made(kChatPath, chat_tools(), form);
            EXPECT_EQ(result.choice, word);
            EXPECT_EQ(result.tools, kAll);
            EXPECT_FALSE(result.must_call);
        }
    }
    EXPECT_EQ(made(kMessagesPath, flat_tools(false), {{"type", "auto"}}).tools, kAll);
    EXPECT_TRUE(made(kMessagesPath, flat_tools(false), {{"type", "any"}}).must_call);
    const Made none = made(kMessagesPath, flat_tools(false), {{"type", "none"}});
    EXPECT_EQ(none.tools, Names{});
    EXPECT_EQ(none.choice, json());
    expect_same(kChatPath, json{{"tools", chat_tools()}, {"tool_choice", "required"}}.dump());
    expect_same(kChatPath, json{{"tools", chat_tools()}, {"tool_choice", "none"}}.dump());
}

TEST(ToolChoice, allowed_tools_leave_those_alone) {
    const json chosen = {{{"type", "function"}, {"function", {{"name", "c"}}}},
                         {{"type", "function"}, {"function", {{"name", "a"}}}}};
    for (const char* mode : {"auto", "required"}) {
        const Made chat = made(kChatPath, chat_tools(),
                               {{"type", "allowed_tools"}, {"allowed_tools", {{"mode", mode}, {"tools", chosen}}}});
        EXPECT_EQ(chat.tools, (Names{"a", "c"}));
        EXPECT_EQ(chat.choice, mode);
        EXPECT_EQ(chat.must_call, chat.choice == "required");
        const Made flat =
            made(kResponsesPath, flat_tools(true),
                 {{"type", "allowed_tools"}, {"mode", mode}, {"tools", {{{"type", "function"}, {"name", "b"}}}}});
        EXPECT_EQ(flat.tools, Names{"b"});
        EXPECT_EQ(flat.choice, mode);
    }
    expect_refused_choice(kResponsesPath, flat_tools(true), {{"type", "allowed_tools"}, {"tools", json::array()}},
                          "tool_choice.mode'");
    expect_refused_choice(kResponsesPath, flat_tools(true),
                          {{"type", "allowed_tools"}, {"mode", "auto"}, {"tools", json::array()}},
                          "tool_choice.tools': expected a list of functions");
    expect_refused_choice(kResponsesPath, flat_tools(true),
                          {{"type", "allowed_tools"}, {"mode", "auto"}, {"tools", {{{"type", "web_search_preview"}}}}},
                          "tool_choice.tools[0]'");
}

// Each name looked for in the whole other list would take minutes.
TEST(ToolChoice, lists_as_long_as_a_body_are_gone_through_once) {
    constexpr int kCount = 100'000;
    json tools = json::array(), wanted = json::array();
    for (int i = 0; i < kCount; i++) {
        tools.push_back({{"type", "function"}, {"name", "tool-" + std::to_string(i)}});
        wanted.push_back({{"type", "function"}, {"name", "tool-" + std::to_string(kCount - 1)}});
    }
    const Made one = made(kResponsesPath, tools, {{"type", "allowed_tools"}, {"mode", "required"}, {"tools", wanted}});
    EXPECT_EQ(one.tools, std::vector<std::string>{"tool-" + std::to_string(kCount - 1)});
    EXPECT_TRUE(one.must_call);
}

TEST(ToolChoice, what_no_engine_obeys_is_refused) {
    for (const json& choice : {json(7), json("x"), json::array(), json::object(), json{{"type", 7}},
                               json{{"type", "web_search_preview"}}, json{{"type", "custom"}, {"name", "a"}}})
        expect_refused_choice(kChatPath, chat_tools(), choice, "tool_choice");
    expect_refused_choice(kMessagesPath, flat_tools(false), "any", "tool_choice'");
    expect_refused_choice(kMessagesPath, flat_tools(false), {{"type", "required"}}, "tool_choice.type'");
    for (const json& tools : {json(), json::array(), json{{{"type", "web_search"}}}})
        for (const json& choice : {json("required"), json{{"type", "function"}, {"name", "a"}}})
            expect_refused_choice(kResponsesPath, tools, choice, "tool_choice': expected auto or none without tools");
}

TEST(ToolChoice, only_an_answer_can_be_a_call) {
    const std::string body = json{{"tools", flat_tools(false)}, {"tool_choice", {{"type", "any"}}}}.dump();
    auto counted = check_request("/v1/messages/count_tokens", body);
    ASSERT_TRUE(counted.ok());
    EXPECT_FALSE(counted->must_call);
}

// nulls inside of what is kept are left out as well
TEST(ToolChoice, the_tool_that_is_kept_is_read_like_any) {
    expect_sent(kChatPath,
                R"({"tools":[{"type":"function","function":{"name":"a","description":null}},)"
                R"({"type":"function","function":{"name":"b","description":null}}],)"
                R"("tool_choice":{"type":"function","function":{"name":"b","x":null}},"user":null})",
                R"({"tools":[{"type":"function","function":{"name":"b"}}],"tool_choice":"required"})");
}

}  // namespace
}  // namespace onebit
