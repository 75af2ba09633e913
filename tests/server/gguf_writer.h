// Writes GGUF files for tests: right ones, small whole models, and any kind of wrong one. Header only, needs nothing.
#pragma once

#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace onebit::test {

// Numbers of GGUF's value types and of the tensor types that tests need.
enum : uint32_t { kU8, kI8, kU16, kI16, kU32, kI32, kF32, kBool, kString, kArray, kU64, kI64, kF64 };
enum : uint32_t { kTypeF32 = 0, kTypeF16 = 1, kTypeQ4_0 = 2, kTypeQ4_K = 12, kTypeI8 = 24 };

template <typename T>
std::string raw(T value) {
    static_assert(std::is_trivially_copyable_v<T>);
    return {reinterpret_cast<const char*>(&value), sizeof value};
}
inline std::string raw_text(std::string_view text) { return raw<uint64_t>(text.size()) + std::string(text); }

class GgufWriter {
public:
    // What the header says; counts that are not set are the true ones.
    std::string magic = "GGUF";
    uint32_t version = 3;
    std::optional<uint64_t> key_count, tensor_count;
    uint64_t alignment = 32;  // of the layout; write the key general.alignment yourself

    // A key whose value is these bytes, whatever its type. Replaces the value of a key that is there.
    GgufWriter& value(const std::string& key, uint32_t type, std::string bytes) {
        for (Key& known : keys_)
            if (known.name == key) {
                known = {key, type, std::move(bytes)};
                return *this;
            }
        return another(key, type, std::move(bytes));
    }
    // The same, but a second key of that name is possible.
    GgufWriter& another(const std::string& key, uint32_t type, std::string bytes) {
        keys_.push_back({key, type, std::move(bytes)});
        return *this;
    }
    GgufWriter& u16(const std::string& key, uint16_t number) { return value(key, kU16, raw(number)); }
    GgufWriter& u32(const std::string& key, uint32_t number) { return value(key, kU32, raw(number)); }
    GgufWriter& i32(const std::string& key, int32_t number) { return value(key, kI32, raw(number)); }
    GgufWriter& u64(const std::string& key, uint64_t number) { return value(key, kU64, raw(number)); }
    GgufWriter& f32(const std::string& key, float number) { return value(key, kF32, raw(number)); }
    GgufWriter& boolean(const std::string& key, bool truth) { return value(key, kBool, raw<uint8_t>(truth)); }
    GgufWriter& text(const std::string& key, std::string_view text) { return value(key, kString, raw_text(text)); }
    GgufWriter& array(const std::string& key, uint32_t type, uint64_t length, const std::string& bytes) {
        return value(key, kArray, raw(type) + raw(length) + bytes);
    }
    GgufWriter& texts(const std::string& key, const std::vector<std::string>& all) {
        std::string bytes;
        for (const std::string& one : all) bytes += raw_text(one);
        return array(key, kString, all.size(), bytes);
    }
    GgufWriter& without(const std::string& key) {
        std::erase_if(keys_, [&](const Key& known) { return known.name == key; });
        return *this;
    }

    // offset: where the entry says that it lies; not set: where it does lie.
    GgufWriter& tensor(const std::string& name, std::vector<uint64_t> shape, uint32_t type, std::string data,
                       std::optional<uint64_t> offset = std::nullopt) {
        tensors_.push_back({name, std::move(shape), type, std::move(data), offset});
        return *this;
    }
    GgufWriter& f32_tensor(const std::string& name, std::vector<uint64_t> shape) {
        uint64_t elements = 1;
        for (uint64_t length : shape) elements *= length;
        std::string data;
        for (uint64_t i = 0; i < elements; ++i) data += raw(0.01f * static_cast<float>(i % 7) - 0.03f);
        return tensor(name, std::move(shape), kTypeF32, std::move(data));
    }
    GgufWriter& without_last_tensor() {
        tensors_.pop_back();
        return *this;
    }
    // The same model as this many shards, each with its part of the tensors; all keys are in the first.
    std::vector<GgufWriter> shards(uint16_t count) const {
        std::vector<GgufWriter> parts(count);
        parts[0].keys_ = keys_;
        for (uint16_t number = 0; number < count; ++number) {
            parts[number].u16("split.no", number).u16("split.count", count);
            parts[number].i32("split.tensors.count", static_cast<int32_t>(tensors_.size()));
        }
        for (size_t i = 0; i < tensors_.size(); ++i) parts[i * count / tensors_.size()].tensors_.push_back(tensors_[i]);
        return parts;
    }
    size_t tensors() const { return tensors_.size(); }
    uint64_t data_bytes() const {
        uint64_t bytes = 0;
        for (const Tensor& tensor : tensors_) bytes = padded(bytes + tensor.data.size());
        return bytes;
    }

    // The header, the keys and the tensors' entries, without padding.
    std::string head() const {
        std::string out = magic + raw(version) + raw<uint64_t>(tensor_count.value_or(tensors_.size())) +
                          raw<uint64_t>(key_count.value_or(keys_.size()));
        for (const Key& key : keys_) out += raw_text(key.name) + raw(key.type) + key.bytes;
        uint64_t offset = 0;
        for (const Tensor& tensor : tensors_) {
            out += raw_text(tensor.name) + raw<uint32_t>(static_cast<uint32_t>(tensor.shape.size()));
            for (uint64_t length : tensor.shape) out += raw(length);
            out += raw(tensor.type) + raw(tensor.offset.value_or(offset));
            offset = padded(offset + tensor.data.size());
        }
        return out;
    }
    std::string bytes() const {
        std::string out = head();
        if (tensors_.empty()) return out;
        out.resize(padded(out.size()));
        for (const Tensor& tensor : tensors_) {
            out += tensor.data;
            out.resize(padded(out.size()));
        }
        return out;
    }
    std::filesystem::path write(const std::filesystem::path& file) const {
        write_bytes(file, bytes());
        return file;
    }
    static void write_bytes(const std::filesystem::path& file, std::string_view bytes) {
        std::filesystem::create_directories(file.parent_path());
        std::ofstream(file, std::ios::binary).write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    }

private:
    struct Key {
        std::string name;
        uint32_t type;
        std::string bytes;
    };
    struct Tensor {
        std::string name;
        std::vector<uint64_t> shape;
        uint32_t type;
        std::string data;
        std::optional<uint64_t> offset;
    };
    uint64_t padded(uint64_t size) const { return (size + alignment - 1) / alignment * alignment; }

    std::vector<Key> keys_;
    std::vector<Tensor> tensors_;
};

// One token for each byte, as byte-level BPE writes them, and one that ends a text: 257 in all.
inline std::vector<std::string> byte_tokens() {
    std::vector<std::string> tokens;
    unsigned next = 256;
    for (unsigned byte = 0; byte < 256; ++byte) {
        const bool plain = (byte >= 33 && byte <= 126) || (byte >= 161 && byte <= 172) || byte >= 174;
        const unsigned point = plain ? byte : next++;
        std::string text;
        if (point < 128) {
            text += static_cast<char>(point);
        } else {
            text += static_cast<char>(0xC0 | point >> 6);
            text += static_cast<char>(0x80 | (point & 63));
        }
        tokens.push_back(text);
    }
    tokens.push_back("<|endoftext|>");
    return tokens;
}

inline GgufWriter with_vocabulary(const std::string& architecture) {
    GgufWriter writer;
    writer.text("general.architecture", architecture).text("general.name", "Test").u32("general.file_type", 0);
    std::string types;
    for (int i = 0; i < 256; ++i) types += raw<int32_t>(1);
    types += raw<int32_t>(3);
    writer.text("tokenizer.ggml.model", "gpt2").text("tokenizer.ggml.pre", "gpt-2");
    writer.texts("tokenizer.ggml.tokens", byte_tokens()).array("tokenizer.ggml.token_type", kI32, 257, types);
    writer.texts("tokenizer.ggml.merges", {"a b", "c d"});
    writer.u32("tokenizer.ggml.bos_token_id", 256).u32("tokenizer.ggml.eos_token_id", 256);
    const auto key = [&](const char* name) { return architecture + "." + name; };
    writer.u32(key("context_length"), 128).u32(key("embedding_length"), 32).u32(key("feed_forward_length"), 64);
    writer.u32(key("attention.head_count"), 2).u32(key("attention.head_count_kv"), 2);
    writer.f32(key("attention.layer_norm_rms_epsilon"), 1e-5f);
    return writer;
}

inline void add_attention(GgufWriter& writer, const std::string& block) {
    writer.f32_tensor(block + "attn_norm.weight", {32});
    for (const char* name : {"attn_q", "attn_k", "attn_v", "attn_output"})
        writer.f32_tensor(block + name + ".weight", {32, 32});
    writer.f32_tensor(block + "ffn_norm.weight", {32});
}

// A whole model of one layer that llama.cpp loads: 32 wide, 257 tokens, its weights without meaning. About 60 KB.
inline GgufWriter tiny_llama() {
    GgufWriter writer = with_vocabulary("llama");
    writer.u32("llama.block_count", 1).u32("llama.rope.dimension_count", 16);
    writer.f32_tensor("token_embd.weight", {32, 257}).f32_tensor("output_norm.weight", {32});
    add_attention(writer, "blk.0.");
    writer.f32_tensor("blk.0.ffn_gate.weight", {32, 64}).f32_tensor("blk.0.ffn_up.weight", {32, 64});
    writer.f32_tensor("blk.0.ffn_down.weight", {64, 32});
    return writer;
}

// Two layers of four experts, of which two are used.
inline GgufWriter tiny_qwen3moe() {
    GgufWriter writer = with_vocabulary("qwen3moe");
    const auto key = [](const char* name) { return std::string("qwen3moe.") + name; };
    writer.u32(key("block_count"), 2).u32(key("expert_count"), 4).u32(key("expert_used_count"), 2);
    writer.u32(key("expert_feed_forward_length"), 16);
    writer.u32(key("attention.key_length"), 16).u32(key("attention.value_length"), 16);
    writer.f32_tensor("token_embd.weight", {32, 257}).f32_tensor("output_norm.weight", {32});
    for (const char* block : {"blk.0.", "blk.1."}) {
        const std::string name = block;
        add_attention(writer, name);
        writer.f32_tensor(name + "attn_q_norm.weight", {16}).f32_tensor(name + "attn_k_norm.weight", {16});
        writer.f32_tensor(name + "ffn_gate_inp.weight", {32, 4}).f32_tensor(name + "ffn_gate_exps.weight", {32, 16, 4});
        writer.f32_tensor(name + "ffn_up_exps.weight", {32, 16, 4});
        writer.f32_tensor(name + "ffn_down_exps.weight", {16, 32, 4});
    }
    return writer;
}

// Just enough to be a model in a list; llama.cpp would not load it.
inline GgufWriter listed_model(const std::string& name = "Test") {
    GgufWriter writer;
    writer.text("general.architecture", "llama").text("general.name", name).u32("general.file_type", 15);
    writer.u32("llama.context_length", 4096).f32_tensor("token_embd.weight", {8, 4});
    return writer;
}

inline GgufWriter listed_projector() {
    GgufWriter writer;
    writer.text("general.type", "mmproj").text("general.architecture", "clip").f32_tensor("mm.0.weight", {8, 4});
    return writer;
}

// Shard `number` (from 0) of `count`: one tensor each, the metadata in the first.
inline GgufWriter listed_shard(uint16_t number, uint16_t count) {
    GgufWriter writer;
    if (number == 0) {
        writer.text("general.architecture", "llama").text("general.name", "Sharded").u32("general.file_type", 15);
        writer.u32("llama.context_length", 4096);
    }
    writer.u16("split.no", number).u16("split.count", count).i32("split.tensors.count", count);
    writer.f32_tensor("blk." + std::to_string(number) + ".weight", {8, 4});
    return writer;
}

}  // namespace onebit::test
