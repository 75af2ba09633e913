// Breaks when the items that clients of the Responses API send back are refused, or lost without a word.
#include "server/supervisor/input_items.h"

#include "rewrite_testing.h"

namespace onebit {
namespace {

std::string input(const std::string& items) { return R"({"input":[)" + items + "]}"; }

constexpr const char* kQuestion = R"({"role":"user","content":"x"})";

TEST(InputItems, reasoning_without_text_is_left_out) {
    for (const char* reasoning :
         {R"({"type":"reasoning","id":"r","summary":[],"encrypted_content":"abc"})",
          R"({"type":"reasoning","id":"r","summary":[{"type":"summary_text","text":"s"}],"content":null})",
          R"({"type":"reasoning","summary":[],"content":[]})", R"({"type":"reasoning","content":[{"text":null}]})"}) {
        expect_sent(kResponsesPath, input(std::string(reasoning) + "," + kQuestion), input(kQuestion));
        expect_sent(kResponsesPath, input(std::string(kQuestion) + "," + reasoning), input(kQuestion));
        expect_refused(kResponsesPath, input(reasoning), "input': expected at least one item");
    }
    const std::string whole =
        R"({"type":"reasoning","summary":[],"content":[{"type":"reasoning_text","text":"hm"}],"status":"completed"})";
    expect_same(kResponsesPath, input(whole + "," + kQuestion));
    const nlohmann::json item =
        sent(kResponsesPath, input(R"({"type":"reasoning","summary":null,"content":[{"text":"a\n"},{"text":"b"}]},)" +
                                   std::string(kQuestion)))["input"][0];
    EXPECT_EQ(item["summary"], nlohmann::json::array());
    EXPECT_EQ(item["content"][0]["text"], "a\nb");
}

TEST(InputItems, references_to_what_is_not_kept_are_refused) {
    for (const char* reference :
         {R"({"type":"item_reference","id":"msg_1"})", R"({"type":null,"id":"msg_1"})", R"({"id":"msg_1"})"})
        expect_refused(kResponsesPath, input(std::string(kQuestion) + "," + reference),
                       "input[1]': expected the item itself, found a reference to one");
}

TEST(InputItems, an_assistants_message_needs_no_type) {
    expect_sent(kResponsesPath, input(R"({"role":"assistant","content":"hello"})"),
                input(R"({"type":"message","role":"assistant","content":"hello"})"));
    expect_sent(kResponsesPath, input(R"({"type":null,"role":"assistant","content":"hello"})"),
                input(R"({"type":"message","role":"assistant","content":"hello"})"));
    expect_sent(
        kResponsesPath,
        input(R"({"type":"message","role":"assistant","status":null,"content":[{"type":"refusal","refusal":"no"},)"
              R"({"type":"output_text","text":"x","annotations":null}]})"),
        input(R"({"type":"message","role":"assistant","content":[{"type":"output_text","text":"no"},)"
              R"({"type":"output_text","text":"x"}]})"));
}

TEST(InputItems, nulls_are_as_if_absent) {
    expect_sent(
        kResponsesPath,
        input(
            R"({"type":"message","role":"user","id":null,"content":[{"type":"input_text","text":"x","detail":null}]},)"
            R"({"type":"function_call","id":null,"status":null,"call_id":"c","name":"f","arguments":"{}"},)"
            R"({"type":"function_call_output","id":null,"call_id":"c","output":"x"})"),
        input(R"({"type":"message","role":"user","content":[{"type":"input_text","text":"x"}]},)"
              R"({"type":"function_call","call_id":"c","name":"f","arguments":"{}"},)"
              R"({"type":"function_call_output","call_id":"c","output":"x"})"));
}

TEST(InputItems, what_is_needed_is_named) {
    expect_refused(kResponsesPath, input(R"({"type":"function_call","call_id":"c","name":null,"arguments":"{}"})"),
                   "input[0].name': expected a string, found none");
    expect_refused(kResponsesPath, input(R"({"type":"function_call_output","call_id":null,"output":"x"})"),
                   "input[0].call_id'");
    expect_refused(kResponsesPath, input(R"({"type":"function_call_output","call_id":"c","output":null})"),
                   "input[0].output'");
    expect_refused(kResponsesPath, input(R"({"role":"user","content":null})"), "input[0].content'");
    expect_refused(kResponsesPath, input(R"({"role":null,"content":"x"})"), "input[0].role'");
    expect_refused(kResponsesPath, input(R"({"role":"user","content":[{"type":"input_text","text":null}]})"),
                   "input[0].content[0].text'");
    expect_refused(kResponsesPath, input(std::string(kQuestion) + R"(,{"type":"web_search_call","id":"w"})"),
                   "input[1].type': expected message, function_call");
}

TEST(InputItems, what_is_no_list_of_objects_is_left_to_the_engine) {
    expect_same(kResponsesPath, R"({"input":"x"})");
    expect_same(kResponsesPath, R"({"input":[7]})");
}

}  // namespace
}  // namespace onebit
