// Operands and modifiers of vector instructions: VOP1, VOP2, VOP3, VOP3P, VOPC, DPP and dual (VOPD) forms.
#include <string>

#include "hrx/emulator/vector_core.h"

namespace onebit::emulator {
namespace {

struct Signature {
    char result;
    bool carry;
    std::string_view sources;
};

Signature parse_signature(const char* text) {
    const std::string_view view(text);
    const auto colon = view.find(':');
    return {view[0], colon == 2, view.substr(colon + 1)};
}

bool is_packed(const Signature& signature) {
    return signature.sources.find_first_of("pPx") != std::string_view::npos || signature.result == 'p' ||
           signature.result == 'P';
}

// op_sel, op_sel_hi, neg_lo, neg_hi: one bit a source.
std::string bind_selects(BindContext& context, const Signature& signature) {
    const bool packed = is_packed(signature);
    const bool mixed = signature.sources.find('x') != std::string_view::npos;
    Instruction& out = context.out;
    for (int k = 0; k < out.sources; ++k) {
        const ValueType type = out.source[k].type;
        out.source[k].select_high =
            packed && !mixed && (type == ValueType::packed_f16 || type == ValueType::packed_i16);
    }
    for (const auto& [name, value] : context.text.modifiers) {
        const bool low = name == "op_sel";
        const bool high = name == "op_sel_hi";
        const bool negate_low = name == "neg_lo";
        const bool negate_high = name == "neg_hi";
        if (!low && !high && !negate_low && !negate_high) continue;
        auto bits = parse_list(value);
        if (!bits) return "modifier " + name + ":" + value;
        for (std::size_t k = 0; k < bits->size(); ++k) {
            const bool on = (*bits)[k] != 0;
            if (k >= out.sources || signature.sources[k] == 'a') {
                // the bit behind the sources is the destination's
                if (low && !packed && on && k + 1 == bits->size()) out.half = Half::high;
                continue;
            }
            Operand& source = out.source[k];
            const bool single = source.type == ValueType::f32 || source.type == ValueType::bits32;
            if (low && single && on) return "op_sel on a 32-bit source";
            if (low) source.select = on;
            if (high && !single) source.select_high = on;
            if (negate_low && on) source.negate = !source.negate;
            if (negate_high && on && single) return "neg_hi on a 32-bit source";
            if (negate_high) source.negate_high = on;
            const bool integer = source.type == ValueType::packed_i16 || source.type == ValueType::bits32;
            if ((negate_low || negate_high) && on && integer) return "negation of an integer";
        }
    }
    return {};
}

std::string bind_output_modifiers(BindContext& context, char result) {
    Instruction& out = context.out;
    const bool real = result == 'f' || result == 'h' || result == 'd' || result == 'p';
    out.clamp = context.text.has("clamp");
    if (context.text.has("mul") || context.text.has("div"))
        return "omod, which hardware ignores while denormals are kept";
    if (!real && out.clamp) return "clamp on an integer result";
    return {};
}

// The operands behind `first`, by the signature; sets sources.
std::string bind_sources(BindContext& context, const AsmInstruction& text, std::size_t first, std::string_view letters,
                         char result, const Operand& destination, Operand* sources, u8& count) {
    std::size_t next = first;
    count = static_cast<u8>(letters.size());
    for (std::size_t k = 0; k < letters.size(); ++k) {
        Operand& source = sources[k];
        if (letters[k] == 'a') {
            source = destination;
            source.type = value_type(result);
            source.words = value_words(result);
            note_read(context, source);
        } else if (letters[k] == 'm' && next >= text.operands.size()) {
            source = scalar_register(kVcc);
            source.type = ValueType::mask;
            note_read(context, source);
        } else {
            if (next >= text.operands.size()) return "too few operands";
            if (auto problem = bind_source(context, text.operands[next++], letters[k], source); !problem.empty())
                return problem;
        }
    }
    if (next != text.operands.size()) return "too many operands";
    return {};
}

}  // namespace

std::string bind_vector(BindContext& context, const Operation& operation) {
    const Signature signature = parse_signature(operation.signature);
    const AsmInstruction& text = context.text;
    Instruction& out = context.out;
    if (auto unknown = unknown_modifier(text, {"op_sel",   "op_sel_hi",  "neg_lo",          "neg_hi",    "clamp",
                                               "mul",      "div",        "quad_perm",       "row_shl",   "row_shr",
                                               "row_ror",  "row_mirror", "row_half_mirror", "row_share", "row_xmask",
                                               "row_mask", "bank_mask",  "bound_ctrl",      "fi",        "dpp8"});
        !unknown.empty())
        return unknown;
    if (text.operands.empty()) return "no operands";
    out.run.lanes = operation.lanes;
    const u8 words = value_words(signature.result);
    if (auto problem = bind_destination(context, text.operands[0], words, true, out.destination); !problem.empty())
        return problem;
    out.destination.type = value_type(signature.result);
    if (signature.result == 'h' || signature.result == 'w') out.half = Half::low;
    if (operation.value == 1) out.half = Half::high;

    std::size_t first = 1;
    if (signature.carry) {
        if (text.operands.size() < 2) return "no carry destination";
        if (auto problem = bind_destination(context, text.operands[1], 1, false, out.destination2); !problem.empty())
            return problem;
        first = 2;
    }
    if (auto problem = bind_sources(context, text, first, signature.sources, signature.result, out.destination,
                                    out.source, out.sources);
        !problem.empty())
        return problem;
    if (auto problem = bind_selects(context, signature); !problem.empty()) return problem;
    if (auto problem = bind_output_modifiers(context, signature.result); !problem.empty()) return problem;
    if (signature.carry && out.clamp) return "clamp on a carry instruction";
    for (int k = 0; k < out.sources; ++k) finish_source(context, out.source[k]);

    out.direct = words == 1 && !out.clamp && out.half == Half::whole;
    out.handler = operation.handler != nullptr ? operation.handler : signature.carry ? execute_carry : execute_vector;
    if (!text.dpp) return {};
    if (out.handler != static_cast<Handler>(execute_vector)) return "DPP on this instruction";
    if (out.source[0].kind != OperandKind::vgpr || words != 1 || out.source[0].words != 1) return "DPP operands";
    if (auto problem = bind_dpp(text, out.dpp); !problem.empty()) return problem;
    out.handler = execute_vector_dpp;
    for (RegisterUse& use : context.details.reads)
        if (use.vector && use.index == out.source[0].index) {
            use.checked_by_handler = true;
            break;
        }
    // the handler knows which lanes are written
    for (RegisterUse& use : context.details.writes) use.checked_by_handler = true;
    return {};
}

std::string bind_dpp(const AsmInstruction& text, Dpp& out) {
    auto number = [&](std::string_view name, i64 absent) {
        const std::string* value = text.modifier(name);
        return value == nullptr ? absent : parse_number(*value).value_or(-1);
    };
    if (const std::string* selectors = text.modifier("dpp8")) {
        auto list = parse_list(*selectors);
        if (!list || list->size() != 8) return "dpp8:" + *selectors;
        out.control = 0x200;
        for (int k = 0; k < 8; ++k) out.selectors |= static_cast<u32>((*list)[k] & 7) << 3 * k;
    } else if (const std::string* quads = text.modifier("quad_perm")) {
        auto list = parse_list(*quads);
        if (!list || list->size() != 4) return "quad_perm:" + *quads;
        for (int k = 0; k < 4; ++k) out.control |= static_cast<u16>(((*list)[k] & 3) << 2 * k);
    } else if (text.has("row_mirror")) {
        out.control = 0x140;
    } else if (text.has("row_half_mirror")) {
        out.control = 0x141;
    } else {
        struct Form {
            const char* name;
            u16 base;
        };
        bool found = false;
        for (const Form form : {Form{"row_shl", 0x100}, Form{"row_shr", 0x110}, Form{"row_ror", 0x120},
                                Form{"row_share", 0x150}, Form{"row_xmask", 0x160}}) {
            if (!text.has(form.name)) continue;
            const i64 amount = number(form.name, -1);
            if (amount < 0 || amount > 15) return std::string("modifier ") + form.name;
            out.control = static_cast<u16>(form.base + amount);
            found = true;
        }
        if (!found) return "DPP control";
    }
    out.row_mask = static_cast<u8>(number("row_mask", 0xf));
    out.bank_mask = static_cast<u8>(number("bank_mask", 0xf));
    // eight-lane permutations always give 0 for lanes that they must not read
    out.bound_control = text.has("bound_ctrl") || out.control == 0x200;
    out.fetch_inactive = number("fi", 0) == 1;
    return {};
}

std::string bind_dual(BindContext& context, const AsmInstruction& x, const AsmInstruction& y) {
    Instruction& out = context.out;
    for (int half = 0; half < 2; ++half) {
        const AsmInstruction& text = half == 0 ? x : y;
        if (!text.mnemonic.starts_with("v_dual_")) return "mnemonic " + text.mnemonic;
        const std::string name = "v_" + text.mnemonic.substr(7);
        const Operation* operation = find_operation(name);
        if (operation == nullptr || operation->lanes == nullptr) return "dual half " + name;
        if (!text.modifiers.empty()) return "modifier " + text.modifiers[0].first;
        const Signature signature = parse_signature(operation->signature);
        Operand& destination = half == 0 ? out.destination : out.destination2;
        Operand* sources = out.source + 3 * half;
        u8& count = half == 0 ? out.sources : out.sources_y;
        if (text.operands.empty() || value_words(signature.result) != 1 || signature.carry) return "dual half " + name;
        if (auto problem = bind_destination(context, text.operands[0], 1, true, destination); !problem.empty())
            return problem;
        if (auto problem =
                bind_sources(context, text, 1, signature.sources, signature.result, destination, sources, count);
            !problem.empty())
            return problem;
        for (int k = 0; k < count; ++k) {
            if (sources[k].type == ValueType::packed_f16 || sources[k].type == ValueType::packed_i16)
                sources[k].select_high = true;
            finish_source(context, sources[k]);
        }
        (half == 0 ? out.run.lanes : out.lanes_y) = operation->lanes;
    }
    out.handler = execute_dual;
    return {};
}

}  // namespace onebit::emulator
