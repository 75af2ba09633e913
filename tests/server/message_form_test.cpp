// Breaks when messages and tools as client programs send them are refused by the engine, or misread without a word.
#include "server/supervisor/message_form.h"

#include "rewrite_testing.h"

namespace onebit {
namespace {

std::string chat(const std::string& message) { return R"({"messages":[)" + message + "]}"; }

TEST(MessageForm, nulls_of_messages_are_as_if_absent) {
    expect_sent(
        kChatPath,
        chat(R"({"role":"user","content":"null","name":null},)"
             R"({"role":"assistant","content":null,"refusal":null,"audio":null,"function_call":null,)"
             R"("reasoning_content":null,"tool_calls":[{"id":null,"index":null,"type":"function","function":)"
             R"({"name":"f","arguments":"{\"a\":null}","description":null}}]},)"
             R"({"role":"tool","tool_call_id":null,"content":[{"type":"text","text":"x","cache_control":null}]})"),
        chat(R"({"role":"user","content":"null"},)"
             R"({"role":"assistant","content":null,"tool_calls":[{"type":"function","function":)"
             R"({"name":"f","arguments":"{\"a\":null}"}}]},)"
             R"({"role":"tool","content":[{"type":"text","text":"x"}]})"));
    expect_sent(kChatPath, chat(R"({"role":"assistant","content":"x","tool_calls":null})"),
                chat(R"({"role":"assistant","content":"x"})"));
    expect_sent(kMessagesPath, chat(R"({"role":"user","content":null,"name":null})"),
                chat(R"({"role":"user","content":null})"));
}

TEST(MessageForm, calls_that_are_null_stand_for_no_text) {
    expect_sent(kChatPath, R"({"messages":[{"role":"assistant","tool_calls":null,"name":null}]})",
                R"({"messages":[{"content":null,"role":"assistant"}]})");
    expect_sent(kChatPath, R"({"messages":[{"tool_calls":null,"role":"assistant","refusal":"no"}]})",
                R"({"messages":[{"content":"no","role":"assistant","refusal":"no"}]})");
    expect_sent(kChatPath, R"({"messages":[{"tool_calls":null,"role":"assistant","content":"x"}]})",
                R"({"messages":[{"role":"assistant","content":"x"}]})");
}

TEST(MessageForm, nulls_of_tools_are_as_if_absent_but_for_those_of_schemas) {
    expect_sent(kChatPath,
                R"({"tools":[{"type":"function","strict":null,"function":{"name":"f","description":null,"strict":null,)"
                R"("parameters":{"type":"object","properties":{"a":{"default":null,"enum":[null,"x"]}}}}},)"
                R"({"type":"function","function":{"name":"g","parameters":null}}]})",
                R"({"tools":[{"type":"function","function":{"name":"f",)"
                R"("parameters":{"type":"object","properties":{"a":{"default":null,"enum":[null,"x"]}}}}},)"
                R"({"type":"function","function":{"name":"g"}}]})");
    expect_sent(kResponsesPath, R"({"tools":[{"type":"function","name":"f","description":null,"parameters":null}]})",
                R"({"tools":[{"type":"function","name":"f"}]})");
    expect_sent(kMessagesPath, R"({"tools":[{"name":"f","type":null,"cache_control":null,"input_schema":null}]})",
                R"({"tools":[{"name":"f"}]})");
    expect_sent(kResponsesPath, R"({"input":"x","tools":null,"instructions":null,"reasoning":null,"text":null})",
                R"({"input":"x"})");
}

TEST(MessageForm, what_is_needed_is_named) {
    expect_refused(kChatPath, chat(R"({"role":null,"content":"x"})"), "messages[0].role': expected system");
    expect_refused(kChatPath, chat(R"({"role":"user","content":"x"},{"content":"x"})"), "messages[1].role'");
    expect_refused(kMessagesPath, chat(R"({"role":null,"content":"x"})"), "messages[0].role'");
    expect_refused(kChatPath, chat(R"({"role":"user","content":[{"type":null,"text":"x"}]})"),
                   "messages[0].content[0].type'");
    expect_refused(kChatPath, chat(R"({"role":"user","content":[{"type":"text","text":null}]})"),
                   "messages[0].content[0].text': expected a string, found none");
    expect_refused(kChatPath, chat(R"({"role":"user","content":[{"type":"text","text":7}]})"),
                   "messages[0].content[0].text': expected a string, found 7");
    const auto call = [](const std::string& one) {
        return chat(R"({"role":"assistant","content":null,"tool_calls":[)" + one + "]}");
    };
    expect_refused(kChatPath, call(R"({"type":null,"function":{"name":"f","arguments":"{}"}})"),
                   "messages[0].tool_calls[0].type'");
    expect_refused(kChatPath, call(R"({"type":"function","function":null})"), "messages[0].tool_calls[0].function'");
    expect_refused(kChatPath, call(R"({"type":"function","function":{"name":null,"arguments":"{}"}})"),
                   "messages[0].tool_calls[0].function.name'");
    expect_refused(kChatPath, call(R"({"type":"function","function":{"name":"f","arguments":null}})"),
                   "messages[0].tool_calls[0].function.arguments'");
    expect_refused(kChatPath, R"({"tools":[{"type":"function","function":{"name":null}}]})", "tools[0].function.name'");
    expect_refused(kChatPath, R"({"tools":[{"type":null,"function":{"name":"f"}}]})", "tools[0].type'");
    expect_refused(kResponsesPath, R"({"input":"x","tools":[{"type":"function","name":null}]})", "tools[0].name'");
}

TEST(MessageForm, refusals_are_what_the_assistant_said) {
    expect_sent(kChatPath, chat(R"({"role":"assistant","content":[{"type":"refusal","refusal":"no \"way\""}]})"),
                chat(R"({"role":"assistant","content":[{"type":"text","text":"no \"way\""}]})"));
    expect_sent(kChatPath, chat(R"({"role":"assistant","content":null,"refusal":"no"})"),
                chat(R"({"role":"assistant","content":"no","refusal":"no"})"));
    EXPECT_EQ(sent(kChatPath, chat(R"({"role":"assistant","refusal":"no"})"))["messages"][0]["content"], "no");
    expect_same(kChatPath, chat(R"({"role":"assistant","content":"x","refusal":"no"})"));
}

TEST(MessageForm, calls_of_functions_before_tools_are_refused) {
    expect_refused(kChatPath,
                   chat(R"({"role":"assistant","content":null,"function_call":{"name":"f","arguments":"{}"}})"),
                   "messages[0].function_call': expected tool_calls");
}

TEST(MessageForm, what_messages_of_anthropic_would_lose_is_refused) {
    const auto blocks = [](const std::string& list) { return chat(R"({"role":"user","content":[)" + list + "]}"); };
    expect_same(
        kMessagesPath,
        blocks(R"({"type":"text","text":"x","citations":null,"cache_control":null},)"
               R"({"type":"image","source":{"type":"url","url":"http://x"}},{"type":"redacted_thinking","data":"x"},)"
               R"({"type":"thinking","thinking":"x"},{"type":"tool_use","id":"a","name":"f","input":{"x":null}},)"
               R"({"type":"tool_result","tool_use_id":"a","content":[{"type":"text","text":"x"}]},)"
               R"({"type":"tool_result","tool_use_id":"a","content":"x"},{"type":"tool_result","tool_use_id":"a"})"));
    expect_refused(kMessagesPath, blocks(R"({"type":"document","source":{"type":"text","data":"x"}})"),
                   "messages[0].content[0].type': expected text, image");
    expect_refused(kMessagesPath, blocks(R"({"type":"server_tool_use"})"), "messages[0].content[0].type'");
    expect_refused(kMessagesPath, blocks(R"({"type":"text","text":null})"), "messages[0].content[0].text'");
    expect_refused(kMessagesPath, blocks(R"({"type":"image","source":{"type":"file","file_id":"x"}})"),
                   "messages[0].content[0].source.type'");
    expect_refused(
        kMessagesPath,
        blocks(
            R"({"type":"text","text":"x"},{"type":"tool_result","tool_use_id":"a","content":[{"type":"document"}]})"),
        "messages[0].content[1].content[0].type'");
    expect_same(kMessagesPath, R"({"tools":[{"type":"custom","name":"f","input_schema":{}}]})");
    expect_refused(kMessagesPath, R"({"tools":[{"type":"web_search_20250305","name":"web_search"}]})",
                   "tools[0].type': expected custom, found 'web_search_20250305'");
}

TEST(MessageForm, messages_without_a_fault_stay_as_they_are) {
    expect_same(kChatPath, chat(R"( {"role" : "user", "content":"is null a value? {\"a\":null}"} )"));
    expect_same(kChatPath, chat("7,null,{\"role\":\"user\",\"content\":[7,\"x\"]}"));
    expect_same(kChatPath, R"({"messages":[{"role":"user","content":"x"}],"metadata":{"a":null}})");
}

}  // namespace
}  // namespace onebit
