// Breaks when a grammar that ends or blocks the engine goes through, or one that it follows with ease is refused.
#include "server/supervisor/grammar_check.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <random>
#include <sstream>

#include "json-schema-to-grammar.h"
#include "llama-grammar.h"
#include "server/supervisor/schema_pattern.h"

namespace onebit {
namespace {

std::string repeated(const std::string& text, size_t n) {
    std::string all;
    for (size_t i = 0; i < n; i++) all += text;
    return all;
}

std::string refusal(const std::string& grammar) {
    Result<void> checked = check_grammar(grammar);
    return checked.ok() ? "" : checked.error().message();
}

// What llama.cpp's own parser makes of it, which writes what is wrong to standard error.
bool llama_reads(const std::string& grammar) {
    llama_grammar_parser parser;
    return parser.parse(grammar.c_str()) && !parser.rules.empty() && parser.symbol_ids.contains("root");
}

TEST(GrammarCheck, grammars_that_come_with_llama_go_through) {
    size_t n = 0;
    for (const auto& file : std::filesystem::directory_iterator(LLAMA_GRAMMARS)) {
        if (file.path().extension() != ".gbnf") continue;
        std::stringstream text;
        text << std::ifstream(file.path()).rdbuf();
        EXPECT_EQ(refusal(text.str()), "") << file.path();
        n++;
    }
    EXPECT_GE(n, 5u);
}

TEST(GrammarCheck, grammars_that_the_engine_makes_of_schemas_go_through) {
    common_json wide = common_json::object();
    wide["type"] = "object";
    wide["properties"] = common_json::object();
    for (int i = 0; i < 300; i++)
        wide["properties"]["property" + std::to_string(i)] = common_json::object({{"type", "string"}});
    const common_json schemas[] = {
        common_json::object({{"type", "object"}}),
        common_json::parse(R"({"type":"array","items":{"type":"number"},"minItems":2,"maxItems":100})"),
        common_json::parse(R"({"type":"string","minLength":1,"maxLength":1000})"),
        common_json::parse(R"({"type":"string","format":"date-time"})"),
        common_json::parse(R"({"type":"integer","minimum":-5,"maximum":123456})"),
        common_json::parse(R"({"anyOf":[{"type":"null"},{"enum":["a","b",3]},{"const":{"x":1}}]})"),
        common_json::parse(R"({"type":"object","properties":{"a":{"$ref":"#/$defs/t"}},"$defs":{"t":{"type":"object",
            "properties":{"left":{"$ref":"#/$defs/t"},"v":{"type":"integer"}}}},"additionalProperties":{"type":"string"}})"),
        wide,
    };
    for (const common_json& schema : schemas) EXPECT_EQ(refusal(json_schema_to_grammar(schema)), "") << schema.dump();
}

TEST(GrammarCheck, grammars_of_every_form_go_through) {
    for (const char* grammar : {
             "root ::= \"a\"",
             "root ::= \"a\" | \"b\" \"c\"*\n",
             "# a comment\nroot ::= ws list ws\nlist ::= \"[\" (item (\",\" item)*)? \"]\"\nitem ::= [0-9]+\nws ::= [ "
             "\\t\\n]*",
             "root ::= [^\"\\\\\\x7F\\x00-\\x1F]{0,200}",
             "root ::= (\"yes\" | \"no\") \".\"? (\" \" [a-z]{1,12}){3,40}",
             "root ::= expr\nexpr ::= term ([-+*/] term)*\nterm ::= \"(\" expr \")\" | [0-9]+",
             "root ::= <[7]> !<think>* [🥐日-語]+",
             "root ::= (ws)*\nws ::= [ ]*",
             "root ::= .{3}",
             "root ::= \"\"",
         })
        EXPECT_EQ(refusal(grammar), "") << grammar;
    EXPECT_EQ(refusal("root ::= " + repeated("\"a\"? ", 10)), "");
    // a list of words
    std::string words = "root ::= \"w0\"";
    for (int i = 1; i < 3000; i++) words += " | \"w" + std::to_string(i) + "\"";
    EXPECT_EQ(refusal(words), "");
    EXPECT_EQ(refusal("root ::= " + repeated("(", 256) + "\"a\"" + repeated(")", 256)), "");
}

// each of these ended the engine, or kept it busy until it was killed
TEST(GrammarCheck, what_ends_or_blocks_the_engine_is_refused) {
    std::string ways = "root ::= a0\n", chain = "root ::= a0\n", words = "root ::= \"w0\"";
    for (int i = 0; i < 40; i++)
        ways += "a" + std::to_string(i) + " ::= a" + std::to_string(i + 1) + " | a" + std::to_string(i + 1) + "\n";
    for (int i = 0; i < 3000; i++) chain += "a" + std::to_string(i) + " ::= a" + std::to_string(i + 1) + "\n";
    for (int i = 1; i < 5000; i++) words += " | \"w" + std::to_string(i) + "\"";
    const std::pair<std::string, const char*> cases[] = {
        {"root ::= " + repeated("(", 20'000), "at most 256 nested groups"},
        {"root ::= " + repeated("(", 257) + "\"a\"" + repeated(")", 257), "at most 256 nested groups"},
        {"root ::= " + repeated("\"a\"? ", 5000), "ambiguous"},
        {"root ::= \"x\" " + repeated("\"a\"? ", 50), "ambiguous"},
        {"root ::= \"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx\" deep\ndeep ::= \"(\" " + repeated("[a-z]? ", 60) + "\")\"",
         "ambiguous"},
        {"root ::= \"a\" root \"b\" | \"a\" root \"c\" | \"a\"", "ambiguous"},
        {words, "ambiguous"},
        {"root ::= \"a\"{5,2}", "M not below N"},
        {"root ::= \"a\"{99999999999999999999}", "a count"},
        {"root ::= \"a\"{3000}", "2000 repetitions"},
        {"root ::= ((\"a\"){0,500}){500}", "2000 rules"},
        {"root ::= \"" + std::string(100'000, 'a') + "\"{2000}", "200000 parts"},
        {ways + "a40 ::= \"x\"", "100000 ways"},
        {chain + "a3000 ::= \"x\"", "2000 first rules"},
        {"root ::= root \"a\" | \"b\"", "left recursion"},
        {"root ::= | b root \"x\"\nb ::= c\nc ::= \"\"", "without one"},
        {"root ::= [b-a]", "hold a character"},
        {"root ::= \"a\" [^\\U00000000-\\U0010FFFF]", "hold a character"},
        {"root ::= [\\uD800-\\uDFFF]", "hold a character"},
        {"root ::= \"\\x00\"", "characters of text"},
        {"root ::= \"\\U00110000\"", "characters of text"},
        {"root ::= <[2000000000]>", "1048575"},
        {"root ::= \"a\"" + std::string(1, '\0') + "\"b\"", "U+0000"},
        {"%llguidance {}\nstart: \"a\"", "GBNF"},
    };
    for (const auto& [grammar, part] : cases)
        EXPECT_NE(refusal(grammar).find(part), std::string::npos) << grammar.substr(0, 80) << ": " << refusal(grammar);
}

TEST(GrammarCheck, what_is_no_grammar_is_refused_with_its_place) {
    for (const char* grammar :
         {"", "root", "root ::= \"a", "root ::= [a-", "root ::= (\"a\"", "root ::= \"a\")", "root::=\"\\q\"",
          "root ::= other", "other ::= \"a\"", "root ::= *", "root ::= \"a\"{", "root ::= \"a\"{x}", "::= \"a\"",
          "root ::= \"\\x4\"", "root ::= <", "root ::= \"a\"{1,2"})
        EXPECT_NE(refusal(grammar), "") << grammar;
    EXPECT_NE(refusal("root ::= \"a\"\n\nb = \"c\"").find("at byte 16, line 3"), std::string::npos)
        << refusal("root ::= \"a\"\n\nb = \"c\"");
}

// Ours is the stricter one, but never for a small grammar that llama.cpp takes but for the kinds above.
TEST(GrammarCheck, agrees_with_the_parser_of_the_pinned_llama) {
    std::mt19937 random(11);
    const std::string parts[] = {"root", " ::= ", "\"a\"", "\"b\\n\"", "[a-c]",    "[^x]",  "(",    ")",
                                 "|",    "*",     "+",     "?",        "{2}",      "{1,3}", "{2,}", ".",
                                 "\n",   " ",     "# c\n", "b",        "\nb ::= ", "\\",    "\"",   "[",
                                 "]",    "-",     "<[3]>", "{0}",      "\xc3\xa9"};
    std::vector<std::string> ours, theirs;
    for (int i = 0; i < 20'000; i++) {
        std::string grammar = "root ::= ";
        for (size_t length = 1 + random() % 8; length > 0; length--) grammar += parts[random() % std::size(parts)];
        testing::internal::CaptureStderr();
        const bool read = llama_reads(grammar);
        testing::internal::GetCapturedStderr();
        const bool ok = read_grammar(grammar).ok();
        if (ok != read) (ok ? ours : theirs).push_back(grammar);
    }
    EXPECT_TRUE(ours.empty()) << ours.size() << ", the first is " << ours.front();
    EXPECT_TRUE(theirs.empty()) << theirs.size() << ", the first is " << theirs.front();
}

TEST(GrammarCheck, the_grammar_of_a_pattern_is_one_and_takes_its_strings) {
    for (const char* pattern : {"^a{2,3}$", "^(a|b)*c{2}$", "^[a-z]+@[a-z]+\\.com$", "^\"\\.\\\\$", "^(?:ab{1,}|.)?$",
                                "^(a{2}){3}$", "^a{0}b$", "^\\x41é(é){2}$"}) {
        std::string grammar;
        ASSERT_FALSE(pattern_fault(pattern, &grammar)) << pattern;
        EXPECT_EQ(refusal(grammar), "") << pattern << "\n" << grammar;
        EXPECT_TRUE(llama_reads(grammar)) << pattern << "\n" << grammar;
    }
    for (const char* pattern : {"^a{5,2}$", "^a?a?a?a?a?a?a?a?a?a?a?a?a?a?a?a?a?a?a?a?a?a?a?a?a?a?a?a?$", "^[z-a]$"}) {
        std::string grammar;
        ASSERT_FALSE(pattern_fault(pattern, &grammar)) << pattern;
        EXPECT_NE(refusal(grammar), "") << pattern << "\n" << grammar;
    }
}

}  // namespace
}  // namespace onebit
