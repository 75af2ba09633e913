#include "server/catalog/catalog_names.h"

#include <algorithm>
#include <cctype>
#include <cstdio>
#include <string_view>
#include <vector>

namespace onebit {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_separator(char c) { return c == '-' || c == '.' || c == ' '; }

// I?Q and TQ types with their suffixes, and the plain floating-point ones
bool is_quantization(std::string_view word) {
    for (std::string_view plain : {"F16", "F32", "BF16", "FP16", "FP32", "MXFP4", "MXFP4_MOE", "NVFP4"})
        if (word == plain) return true;
    if (word.size() > 1 && (word[0] == 'I' || word[0] == 'T')) word.remove_prefix(1);
    if (word.size() < 3 || word[0] != 'Q' || !is_digit(word[1]) || word[2] != '_') return false;
    return std::all_of(word.begin() + 3, word.end(),
                       [](char c) { return is_digit(c) || c == '_' || (c >= 'A' && c <= 'Z'); });
}

struct Word {
    size_t begin, end;
};

std::vector<Word> words_of(const std::string& text) {
    std::vector<Word> words;
    for (size_t i = 0; i < text.size();) {
        if (is_separator(text[i])) {
            ++i;
            continue;
        }
        const size_t begin = i;
        while (i < text.size() && !is_separator(text[i])) ++i;
        words.push_back({begin, i});
    }
    return words;
}

std::string upper_case(std::string text) {
    for (char& c : text) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
    return text;
}

}  // namespace

std::string lower_case(std::string text) {
    for (char& c : text) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    return text;
}

bool has_gguf_extension(const std::string& file_name) {
    return file_name.size() > 5 && lower_case(file_name.substr(file_name.size() - 5)) == ".gguf";
}

std::string stem_of(const std::string& file_name) {
    return has_gguf_extension(file_name) ? file_name.substr(0, file_name.size() - 5) : file_name;
}

std::optional<ShardName> parse_shard_name(const std::string& file_name) {
    constexpr std::string_view kForm = "-00000-of-00000.gguf";
    if (file_name.size() <= kForm.size()) return std::nullopt;
    const size_t at = file_name.size() - kForm.size();
    for (size_t i = 0; i < kForm.size(); ++i) {
        const char c = file_name[at + i];
        if (kForm[i] == '0' ? !is_digit(c) : c != kForm[i]) return std::nullopt;
    }
    ShardName name;
    name.prefix = file_name.substr(0, at);
    name.number = static_cast<unsigned>(std::stoul(file_name.substr(at + 1, 5)));
    name.count = static_cast<unsigned>(std::stoul(file_name.substr(at + 10, 5)));
    if (name.number < 1 || name.number > name.count) return std::nullopt;
    return name;
}

std::string shard_file_name(const ShardName& name) {
    char tail[32];
    std::snprintf(tail, sizeof tail, "-%05u-of-%05u.gguf", name.number, name.count);
    return name.prefix + tail;
}

std::string quantization_in_name(const std::string& stem) {
    const std::string text = upper_case(stem);
    const auto words = words_of(text);
    for (size_t i = words.size(); i-- > 0;) {
        const std::string word = text.substr(words[i].begin, words[i].end - words[i].begin);
        if (!is_quantization(word)) continue;
        const bool dynamic =
            i > 0 && text.compare(words[i - 1].begin, words[i - 1].end - words[i - 1].begin, "UD") == 0;
        return dynamic ? "UD-" + word : word;
    }
    return "";
}

bool names_projector(const std::string& file_name) { return lower_case(file_name).find("mmproj") != std::string::npos; }

std::string base_of_name(const std::string& stem) {
    const std::string text = upper_case(stem);
    std::string base;
    for (const Word& word : words_of(text)) {
        std::string part = text.substr(word.begin, word.end - word.begin);
        if (is_quantization(part) || part == "UD") continue;
        if (const size_t at = part.find("MMPROJ"); at != std::string::npos) part.erase(at, 6);
        std::erase(part, '_');
        base += part;
    }
    return base;
}

}  // namespace onebit
