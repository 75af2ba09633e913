#include "hrx/emulator/asm_text.h"

#include <charconv>
#include <map>

namespace onebit::emulator {
namespace {

std::string_view trim(std::string_view text) {
    while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
    while (!text.empty() && (text.back() == ' ' || text.back() == '\t' || text.back() == '\n')) text.remove_suffix(1);
    return text;
}

bool take_suffix(std::string& text, std::string_view suffix) {
    if (!std::string_view(text).ends_with(suffix)) return false;
    text.resize(text.size() - suffix.size());
    return true;
}

struct NamedRegister {
    u16 index;
    u8 words;
};

const NamedRegister* named_register(std::string_view name) {
    static const std::map<std::string_view, NamedRegister> names = {
        {"vcc_lo", {kVcc, 1}},
        {"vcc_hi", {kVcc + 1, 1}},
        {"vcc", {kVcc, 2}},
        {"m0", {kM0, 1}},
        {"null", {kNull, 1}},
        {"exec_lo", {kExec, 1}},
        {"exec_hi", {kExec + 1, 1}},
        {"exec", {kExec, 2}},
        {"src_shared_base", {kSharedBase, 2}},
        {"src_shared_limit", {kSharedLimit, 2}},
        {"src_private_base", {kPrivateBase, 2}},
        {"src_private_limit", {kPrivateLimit, 2}},
        {"src_vccz", {kVccZero, 1}},
        {"src_execz", {kExecZero, 1}},
        {"src_scc", {kScc, 1}},
        {"vccz", {kVccZero, 1}},
        {"execz", {kExecZero, 1}},
        {"scc", {kScc, 1}},
    };
    auto found = names.find(name);
    return found == names.end() ? nullptr : &found->second;
}

// "7" or "[4:7]" behind the letter of a register file.
std::optional<NamedRegister> register_range(std::string_view text) {
    if (!text.empty() && text.front() == '[' && text.back() == ']') {
        text = text.substr(1, text.size() - 2);
        const auto colon = text.find(':');
        auto first = parse_number(text.substr(0, colon));
        auto last = colon == std::string_view::npos ? first : parse_number(text.substr(colon + 1));
        if (!first || !last || *first < 0 || *last < *first || *last > 255) return std::nullopt;
        return NamedRegister{static_cast<u16>(*first), static_cast<u8>(*last - *first + 1)};
    }
    auto number = parse_number(text);
    if (!number || *number < 0 || *number > 255) return std::nullopt;
    return NamedRegister{static_cast<u16>(*number), 1};
}

AsmOperand parse_operand(std::string_view text) {
    AsmOperand operand;
    operand.text = text;
    auto wrapped = [&](std::string_view open, std::string_view close) {
        if (!text.starts_with(open) || !text.ends_with(close) || text.size() < open.size() + close.size()) return false;
        text = text.substr(open.size(), text.size() - open.size() - close.size());
        return true;
    };
    if (wrapped("neg(", ")")) operand.negate = true;
    if (text.size() > 1 && text[0] == '-' && (text[1] == 'v' || text[1] == 's' || text[1] == '|' || text[1] == 'm')) {
        operand.negate = true;
        text.remove_prefix(1);
    }
    if (wrapped("|", "|") || wrapped("abs(", ")")) operand.absolute = true;

    using Kind = AsmOperand::Kind;
    if (text == "off") {
        operand.kind = Kind::off;
    } else if (const NamedRegister* known = named_register(text)) {
        operand.kind = Kind::sgpr;
        operand.index = known->index;
        operand.words = known->words;
    } else if (text.starts_with("ttmp")) {
        if (auto range = register_range(text.substr(4))) {
            operand.kind = Kind::sgpr;
            operand.index = static_cast<u16>(108 + range->index);
            operand.words = range->words;
        }
    } else if (!text.empty() && (text[0] == 'v' || text[0] == 's') && register_range(text.substr(1))) {
        auto range = register_range(text.substr(1));
        operand.kind = text[0] == 'v' ? Kind::vgpr : Kind::sgpr;
        operand.index = range->index;
        operand.words = range->words;
    } else if (auto number = parse_number(text)) {
        operand.kind = text.find('x') == std::string_view::npos ? Kind::integer : Kind::literal;
        operand.integer = *number;
    } else if (text.find('.') != std::string_view::npos) {
        double value = 0;
        auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
        if (error == std::errc() && end == text.data() + text.size()) {
            operand.kind = Kind::real;
            operand.real = value;
        }
    }
    return operand;
}

// Takes the next piece up to `separator` at bracket depth 0.
std::string_view take_piece(std::string_view& rest, char separator) {
    int depth = 0;
    for (std::size_t i = 0; i < rest.size(); ++i) {
        const char c = rest[i];
        if (c == '[' || c == '(') ++depth;
        if (c == ']' || c == ')') --depth;
        if (c != separator || depth != 0) continue;
        std::string_view piece = rest.substr(0, i);
        rest.remove_prefix(i + 1);
        return piece;
    }
    std::string_view piece = rest;
    rest = {};
    return piece;
}

void add_modifiers(std::string_view text, AsmInstruction& instruction) {
    while (!(text = trim(text)).empty()) {
        std::string_view word = take_piece(text, ' ');
        const auto colon = word.find(':');
        if (colon == std::string_view::npos)
            instruction.modifiers.emplace_back(word, "");
        else
            instruction.modifiers.emplace_back(word.substr(0, colon), word.substr(colon + 1));
    }
}

AsmInstruction parse_one(std::string_view text) {
    AsmInstruction instruction;
    text = trim(text);
    instruction.mnemonic = take_piece(text, ' ');
    for (bool again = true; again;) {
        again = take_suffix(instruction.mnemonic, "_e32") || take_suffix(instruction.mnemonic, "_e64");
        if (take_suffix(instruction.mnemonic, "_dpp")) instruction.dpp = again = true;
    }
    text = trim(text);
    while (!text.empty()) {
        std::string_view piece = trim(take_piece(text, ','));
        // the last operand is followed by modifiers, separated by spaces
        std::string_view operand = text.empty() ? trim(take_piece(piece, ' ')) : piece;
        instruction.operands.push_back(parse_operand(operand));
        if (text.empty()) add_modifiers(piece, instruction);
    }
    return instruction;
}

}  // namespace

const std::string* AsmInstruction::modifier(std::string_view name) const {
    for (const auto& [key, value] : modifiers)
        if (key == name) return &value;
    return nullptr;
}

std::optional<std::vector<AsmInstruction>> parse_assembly(std::string_view text) {
    std::vector<AsmInstruction> parts;
    const auto dual = text.find(" :: ");
    parts.push_back(parse_one(text.substr(0, dual)));
    if (dual != std::string_view::npos) parts.push_back(parse_one(text.substr(dual + 4)));
    for (const AsmInstruction& part : parts)
        if (part.mnemonic.empty()) return std::nullopt;
    return parts;
}

std::optional<std::vector<int>> parse_list(std::string_view text) {
    if (text.size() < 2 || text.front() != '[' || text.back() != ']') return std::nullopt;
    text = text.substr(1, text.size() - 2);
    std::vector<int> values;
    while (!text.empty()) {
        auto number = parse_number(trim(take_piece(text, ',')));
        if (!number) return std::nullopt;
        values.push_back(static_cast<int>(*number));
    }
    return values;
}

std::optional<i64> parse_number(std::string_view text) {
    const bool negative = text.starts_with('-');
    if (negative) text.remove_prefix(1);
    const bool hexadecimal = text.starts_with("0x");
    if (hexadecimal) text.remove_prefix(2);
    u64 value = 0;
    auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, hexadecimal ? 16 : 10);
    if (text.empty() || error != std::errc() || end != text.data() + text.size()) return std::nullopt;
    return negative ? -static_cast<i64>(value) : static_cast<i64>(value);
}

}  // namespace onebit::emulator
