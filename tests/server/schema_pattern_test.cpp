// Breaks when a pattern that llama.cpp takes for any string goes through, or one that it obeys is refused.
#include "server/supervisor/schema_pattern.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <random>

#include "base/unique_fd.h"
#include "json-schema-to-grammar.h"

namespace onebit {
namespace {

// What llama.cpp itself makes of a pattern: its converter warns on standard error of what it leaves out.
class Converter {
public:
    Converter() : sink_(::memfd_create("warnings", MFD_CLOEXEC)), old_(::dup(STDERR_FILENO)) {
        ::dup2(sink_.get(), STDERR_FILENO);
    }
    ~Converter() { ::dup2(old_.get(), STDERR_FILENO); }
    bool obeys(const std::string& pattern) {
        const off_t before = ::lseek(sink_.get(), 0, SEEK_END);
        try {
            common_json schema = common_json::object();
            schema["type"] = "string";
            schema["pattern"] = pattern;
            json_schema_to_grammar(schema);
        } catch (const std::exception&) {
            return false;
        }
        std::fflush(stderr);
        return ::lseek(sink_.get(), 0, SEEK_END) == before;
    }

private:
    UniqueFd sink_, old_;
};

// API06
TEST(SchemaPattern, API06_agrees_with_the_converter_of_the_pinned_llama) {
    std::vector<std::string> patterns = {"",
                                         "^$",
                                         "^",
                                         "$",
                                         "a",
                                         "^a",
                                         "a$",
                                         "^a\\!$",
                                         "^\\d+$",
                                         "^\\w$",
                                         "^\\s*$",
                                         "^a\\/b$",
                                         "^[a-z]+$",
                                         "^[\\d]$",
                                         "^[\\w.]$",
                                         "^(a|b)$",
                                         "^(?:a)$",
                                         "^(?=a)$",
                                         "^(?!a).*$",
                                         "^(?<n>a)$",
                                         "^a^b$",
                                         "^a$b$",
                                         "^a{2}$",
                                         "^a{2,}$",
                                         "^a{,3}$",
                                         "^a{2,3}$",
                                         "^a{x}$",
                                         "^a{}$",
                                         "^a{,}$",
                                         "^a{1,2,3}$",
                                         "^a{2$",
                                         "^{2}$",
                                         "^*a$",
                                         "^(*a)$",
                                         "^a|b$",
                                         "^[a$",
                                         "^[$",
                                         "^(a$",
                                         "^a)$",
                                         "^a]$",
                                         "^a}$",
                                         "^\\$",
                                         "^\\\\$",
                                         "^\\x41$",
                                         "^\\x4$",
                                         "^\\u0041$",
                                         "^\\u00g1$",
                                         "^\\U00000041$",
                                         "^\"$",
                                         "^a\"b$",
                                         "^\\\"$",
                                         "^\\-$",
                                         "^[\\-a]$",
                                         "^[\\]]$",
                                         "^\\t\\r\\n$",
                                         "^\\b$",
                                         "^.+@.+$",
                                         "^a{99999999999}$",
                                         "^a{ 2}$",
                                         "^a{2x}$",
                                         "^a{-1}$",
                                         "^ab*$",
                                         "^[^\"]*$",
                                         "^é+$",
                                         "^" + std::string(100, '(') + std::string(100, ')') + "$",
                                         "^" + std::string(101, '(') + std::string(101, ')') + "$"};
    std::mt19937 random(7);
    const std::string letters = "abd019 -,:!/uUx\"\\\\\\^$..((()))[[]]{}*+?||";
    for (int i = 0; i < 20000; i++) {
        std::string text = "^";
        for (size_t length = random() % 9; length > 0; length--) text += letters[random() % letters.size()];
        patterns.push_back(text + "$");
    }
    std::vector<std::string> wrong;
    {
        Converter converter;
        for (const std::string& pattern : patterns)
            if (converter.obeys(pattern) == pattern_fault(pattern).has_value()) wrong.push_back(pattern);
    }
    EXPECT_TRUE(wrong.empty()) << wrong.size() << " of " << patterns.size() << ", the first is " << wrong.front();
}

// API06
TEST(SchemaPattern, API06_the_fault_names_the_place_the_escape_and_the_known_ones) {
    auto fault = pattern_fault("^a\\!$");
    ASSERT_TRUE(fault);
    EXPECT_EQ(fault->found, "the escape '\\!' at character 3");
    EXPECT_NE(fault->expected.find("\\^ \\$ \\."), std::string::npos);
    EXPECT_EQ(fault->remedy, "write ! without the backslash");
    EXPECT_EQ(pattern_fault("^\\d{4}$")->remedy, "write [0-9]");
    EXPECT_EQ(pattern_fault("^[\\w]$")->remedy, "write [A-Za-z0-9_]");
    EXPECT_NE(pattern_fault("^[\\w]$")->expected.find("character class"), std::string::npos);
    EXPECT_EQ(pattern_fault("abc")->found, "one without both");
    EXPECT_NE(pattern_fault("^(?=a)$")->found.find("'(?='"), std::string::npos);
}

TEST(SchemaPattern, long_patterns_take_no_stack) {
    EXPECT_TRUE(pattern_fault("^" + std::string(1000000, '(') + "$"));
    EXPECT_FALSE(pattern_fault("^" + std::string(1000000, 'a') + "$"));
    EXPECT_TRUE(pattern_fault("^" + std::string(999999, '\\') + "$"));
}

}  // namespace
}  // namespace onebit
