#include "server/catalog/gguf_rules.h"

#include <algorithm>
#include <array>

namespace onebit {
namespace {

using Fault = std::optional<GgufFault>;

constexpr const char* kConvertAgain = "the file is damaged or was converted wrongly: take another copy";

GgufFault wrong(std::string expected, std::string found) {
    return {std::move(expected), std::move(found), kConvertAgain};
}

std::string in_quotes(const std::string& text) { return "'" + text + "'"; }

class Rules {
public:
    Rules(const GgufHead& head, const GgufKeyTypes& types) : head_(head), types_(types) {}

    Fault tokenizer(VocabularyNotes& notes) const;
    Fault experts(const std::string& architecture) const;
    Fault sizes() const;

private:
    const GgufArray* array(const std::string& key) const {
        auto found = head_.values.find(key);
        return found == head_.values.end() ? nullptr : std::get_if<GgufArray>(&found->second);
    }
    bool has(const std::string& key) const { return head_.values.count(key) != 0; }

    Fault array_of(const std::string& key, std::initializer_list<uint32_t> allowed) const;
    Fault scalar_range(const std::string& key, uint64_t least, uint64_t most) const;

    const GgufHead& head_;
    const GgufKeyTypes& types_;
};

Fault Rules::array_of(const std::string& key, std::initializer_list<uint32_t> allowed) const {
    if (!has(key)) return std::nullopt;
    std::string names;
    for (uint32_t type : allowed) names += (names.empty() ? "" : " or ") + std::string(gguf_value_name(type));
    const GgufArray* found = array(key);
    if (found && std::find(allowed.begin(), allowed.end(), found->type) != allowed.end()) return std::nullopt;
    std::string what = found ? "an array of " + std::string(gguf_value_name(found->type))
                             : "a single " + std::string(gguf_value_name(types_.at(key)));
    return wrong("key " + in_quotes(key) + " to be an array of " + names, std::move(what));
}

Fault Rules::scalar_range(const std::string& key, uint64_t least, uint64_t most) const {
    auto value = head_.values.find(key);
    if (value == head_.values.end() || std::holds_alternative<GgufArray>(value->second)) return std::nullopt;
    const std::string range = std::to_string(least) + " to " + std::to_string(most);
    if (types_.at(key) != kGgufU32)
        return wrong("key " + in_quotes(key) + " to be a u32", gguf_value_name(types_.at(key)));
    const uint64_t number = std::get<uint64_t>(value->second);
    if (number >= least && number <= most) return std::nullopt;
    return wrong("key " + in_quotes(key) + " to be from " + range, std::to_string(number));
}

// llama.cpp reads these arrays as raw memory of the type it expects
Fault Rules::tokenizer(VocabularyNotes& notes) const {
    static const std::string kTokens = "tokenizer.ggml.tokens";
    if (auto fault = array_of(kTokens, {kGgufString})) return fault;
    if (auto fault = array_of("tokenizer.ggml.merges", {kGgufString})) return fault;
    if (auto fault = array_of("tokenizer.ggml.scores", {kGgufF32, kGgufI32})) return fault;
    if (auto fault = array_of("tokenizer.ggml.token_type", {kGgufI32})) return fault;
    if (auto fault = array_of("tokenizer.ggml.suppress_tokens", {kGgufI32})) return fault;
    if (auto fault = array_of("tokenizer.ggml.precompiled_charsmap", {kGgufI8, kGgufU8})) return fault;

    const GgufArray* tokens = array(kTokens);
    if (!tokens) return std::nullopt;
    for (const char* key : {"tokenizer.ggml.scores", "tokenizer.ggml.token_type"}) {
        const GgufArray* other = array(key);
        if (other && other->length < tokens->length)
            return wrong("key " + in_quotes(key) + " to have an entry for each of the " +
                             std::to_string(tokens->length) + " tokens",
                         std::to_string(other->length));
    }
    if (tokens->length == 0) return wrong("at least one token in key " + in_quotes(kTokens), "none");
    if (notes.byte_tokens && head_.text("tokenizer.ggml.model") == "bert")
        return wrong("no byte tokens in a vocabulary of the kind 'bert'", "some");
    std::sort(notes.token_hashes.begin(), notes.token_hashes.end());
    if (std::adjacent_find(notes.token_hashes.begin(), notes.token_hashes.end()) != notes.token_hashes.end())
        return wrong("every token of " + in_quotes(kTokens) + " once", "a token that occurs twice");
    return std::nullopt;
}

Fault Rules::experts(const std::string& architecture) const {
    const auto key = [&](const char* name) { return architecture + "." + name; };
    if (auto fault = scalar_range(key("expert_count"), 0, kMaxModelExperts)) return fault;
    const uint64_t experts = head_.number(key("expert_count"), 0);
    static constexpr std::array kOnlyWithExperts = {"bailingmoe2", "glm4moe", "grovemoe", "llada-moe", "smallthinker"};
    if (experts == 0 &&
        std::find(kOnlyWithExperts.begin(), kOnlyWithExperts.end(), architecture) != kOnlyWithExperts.end())
        return wrong("key " + in_quotes(key("expert_count")) + " of a model of experts", "none");
    const bool may_be_dense = experts <= 1 && architecture.rfind("hunyuan", 0) == 0 && architecture != "hunyuan-moe";
    if (!may_be_dense) {
        if (auto fault = scalar_range(key("expert_used_count"), experts > 0, experts)) return fault;
        if (experts > 0 && !has(key("expert_used_count")))
            return wrong(
                "key " + in_quotes(key("expert_used_count")) + " beside " + std::to_string(experts) + " experts",
                "none");
        const uint64_t most_groups = experts > 0 ? experts - 1 : 0;
        if (auto fault = scalar_range(key("expert_group_count"), 0, most_groups)) return fault;
        const uint64_t groups = head_.number(key("expert_group_count"), 0);
        if (groups > 1) {
            if (experts % groups != 0)
                return wrong("the " + std::to_string(experts) + " experts to divide evenly into the groups of " +
                                 in_quotes(key("expert_group_count")),
                             std::to_string(groups) + " groups");
            if (!has(key("expert_group_used_count")))
                return wrong("key " + in_quotes(key("expert_group_used_count")), "none");
            if (auto fault = scalar_range(key("expert_group_used_count"), 1, groups - 1)) return fault;
        }
    }
    return std::nullopt;
}

Fault Rules::sizes() const {
    if (auto fault = scalar_range("general.file_type", 0, 2047)) return fault;

    const std::string type = head_.text("general.type"), architecture = head_.text("general.architecture");
    if (architecture.empty() || architecture == "clip" || !(type.empty() || type == "model")) return std::nullopt;
    const auto key = [&](const char* name) { return architecture + "." + name; };

    if (auto fault = scalar_range(key("block_count"), 1, kMaxModelLayers)) return fault;
    if (auto fault = scalar_range(key("embedding_length"), 1, 1u << 24)) return fault;
    if (auto fault = scalar_range(key("vocab_size"), 0, kMostModelTokens)) return fault;
    const uint64_t layers = head_.number(key("block_count"), kMaxModelLayers);
    if (auto fault = scalar_range(key("nextn_predict_layers"), 0, layers)) return fault;
    if (head_.number(key("pooling_type"), 0) != UINT32_MAX)
        if (auto fault = scalar_range(key("pooling_type"), 0, 4)) return fault;

    if (auto fault = experts(architecture)) return fault;
    // these two divide by it; models without attention say 0
    const bool divides = architecture == "olmo2" || architecture == "phimoe";
    if (auto fault = scalar_range(key("attention.head_count"), divides ? 1 : 0, 1u << 20)) return fault;

    const std::string scaling = key("rope.scaling.type");
    if (types_.count(scaling) && types_.at(scaling) == kGgufString) {
        static constexpr std::array kKnown = {"none", "linear", "yarn", "longrope"};
        // llama.cpp reads the text up to its first zero byte
        const std::string whole = head_.text(scaling), text = whole.substr(0, whole.find('\0'));
        if (std::find(kKnown.begin(), kKnown.end(), text) == kKnown.end())
            return GgufFault{"key " + in_quotes(scaling) + " to be none, linear, yarn or longrope", in_quotes(text),
                             "the model needs a newer 1bit, or the file is damaged"};
    }
    return std::nullopt;
}

}  // namespace

uint32_t gguf_value_bytes(uint32_t type) {
    static constexpr uint32_t kBytes[kGgufValueTypes] = {1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};
    return type < kGgufValueTypes ? kBytes[type] : 0;
}

const char* gguf_value_name(uint32_t type) {
    static constexpr const char* kNames[kGgufValueTypes] = {"u8",   "i8",     "u16",   "i16", "u32", "i32", "f32",
                                                            "bool", "string", "array", "u64", "i64", "f64"};
    return type < kGgufValueTypes ? kNames[type] : "unknown type";
}

Fault check_gguf_rules(const GgufHead& head, const GgufKeyTypes& types, VocabularyNotes& notes) {
    const Rules rules(head, types);
    if (auto fault = rules.tokenizer(notes)) return fault;
    return rules.sizes();
}

}  // namespace onebit
