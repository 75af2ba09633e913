// Names the file that lies under a .gguf name but is no GGUF file: the answer a user needs most often.
#include <algorithm>
#include <cctype>

#include "server/catalog/gguf_rules.h"

namespace onebit {
namespace {

constexpr const char* kAgain = "download the model again, such as with '1bit pull'";
constexpr const char* kConvert = "convert the original weights with llama.cpp's convert_hf_to_gguf.py";

std::string lower(std::string_view text) {
    std::string out(text);
    for (char& c : out) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    return out;
}

std::string hex(std::string_view bytes) {
    static constexpr char kDigits[] = "0123456789abcdef";
    std::string out;
    for (unsigned char byte : bytes) {
        if (!out.empty()) out += ' ';
        out += kDigits[byte >> 4];
        out += kDigits[byte & 15];
    }
    return out;
}

// the size of the model that a pointer stands for, as its line "size N" says; "" when there is none
std::string lfs_size(std::string_view text) {
    const size_t at = text.find("\nsize ");
    if (at == std::string_view::npos) return "";
    text.remove_prefix(at + 6);
    const size_t digits = std::min(text.find_first_not_of("0123456789"), text.size());
    return digits > 0 && digits < 20 ? std::string(text.substr(0, digits)) : "";
}

uint64_t little_endian(std::string_view bytes) {
    uint64_t value = 0;
    for (size_t i = 8; i-- > 0;) value = value << 8 | static_cast<unsigned char>(bytes[i]);
    return value;
}

bool is_text(std::string_view bytes) {
    return std::all_of(bytes.begin(), bytes.end(), [](unsigned char c) {
        return c >= 0x80 || std::isprint(c) || c == '\n' || c == '\r' || c == '\t';
    });
}

}  // namespace

GgufFault name_foreign_file(std::string_view start, uint64_t file_bytes) {
    const std::string expected = "a GGUF model",
                      size = std::to_string(file_bytes) + (file_bytes == 1 ? " byte" : " bytes");
    start = start.substr(0, 512);
    const auto begins = [&](std::string_view with) { return start.substr(0, with.size()) == with; };
    const auto is = [&](std::string found, std::string remedy) {
        return GgufFault{expected, std::move(found), std::move(remedy)};
    };

    if (file_bytes == 0) return is("an empty file", kAgain);
    if (std::string_view("GGUF").substr(0, start.size()) == start)
        return is("only the first " + size + " of one", kAgain);
    if (begins("version https://git-lfs")) {
        const std::string model = lfs_size(start);
        return is("a Git LFS pointer, not the model" + (model.empty() ? "" : " of " + model + " bytes"),
                  "run 'git lfs pull' in that repository, or download the model with '1bit pull'");
    }
    if (begins("FUGG"))
        return is("a big-endian GGUF file", "take the little-endian file of the model, or convert it again here");
    if (begins("tjgg") || begins("lmgg") || begins("fmgg") || begins("algg"))
        return is("a model of the format before GGUF (GGML, given up in 2023)", kConvert);
    if (begins("PK\x03\x04")) return is("a ZIP archive or PyTorch checkpoint", kConvert);
    if (start.size() > 8 && start[8] == '{' && little_endian(start) < file_bytes)
        return is("a safetensors file", kConvert);
    if (begins("\x1f\x8b") || begins("\x28\xb5\x2f\xfd") ||
        begins("\xfd"
               "7zXZ") ||
        begins("7z\xbc\xaf") || begins("Rar!"))
        return is("a compressed archive", "unpack it first");

    std::string_view text = start;
    if (text.substr(0, 3) == "\xef\xbb\xbf") text.remove_prefix(3);
    text.remove_prefix(std::min(text.find_first_not_of(" \t\r\n"), text.size()));
    const std::string head = lower(text.substr(0, 64));
    if (head.rfind("<!doctype html", 0) == 0 || head.rfind("<html", 0) == 0)
        return is("a web page (HTML) of " + size,
                  "the link led to a page, such as a log-in: use the link of the file itself, or '1bit pull'");
    if (head.rfind("<?xml", 0) == 0 || head.rfind("<error", 0) == 0)
        return is("an XML text of " + size + ", such as a server's error answer", kAgain);
    if ((begins("{") || begins("[")) && is_text(start))
        return is("a JSON text of " + size + ", such as a server's error answer", kAgain);
    if (std::all_of(start.begin(), start.end(), [](char c) { return c == 0; }))
        return is("zeros at its start: space that a download reserved and never filled", kAgain);
    if (is_text(start)) return is("a text file of " + size, kAgain);
    return is("an unknown format that begins with the bytes " + hex(start.substr(0, 8)), kAgain);
}

}  // namespace onebit
