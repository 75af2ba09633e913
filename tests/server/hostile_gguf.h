// Files under a .gguf name that are damaged, hostile or something else, each with what the reader has to say of it.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "tests/server/gguf_writer.h"

namespace onebit::test {

struct HostileFile {
    std::string name;
    std::string bytes;
    std::string says;  // part of the message; empty: the head is well-formed, only llama.cpp can refuse it
};

inline std::vector<HostileFile> hostile_files() {
    std::vector<HostileFile> files;
    const auto add = [&](std::string name, std::string bytes, std::string says) {
        files.push_back({std::move(name), std::move(bytes), std::move(says)});
    };
    const auto change = [&](std::string name, const std::function<void(GgufWriter&)>& how, std::string says) {
        GgufWriter writer = tiny_llama();
        how(writer);
        add(std::move(name), writer.bytes(), std::move(says));
    };
    const std::string whole = tiny_llama().bytes();
    const std::string zeros(4096, '\0');

    // what is no GGUF at all
    add("empty", "", "an empty file");
    add("one-byte", "G", "only the first 1 byte of one");
    add("three-bytes", "GGU", "only the first 3 bytes of one");
    add("magic-alone", "GGUF", "only the first 4 bytes of one");
    add("header-minus-one", whole.substr(0, 23), "only the first 23 bytes of one");
    add("header-alone", whole.substr(0, 24), "cut off or damaged");
    add("header-plus-one", whole.substr(0, 25), "cut off or damaged");
    add("nothing-in-it", GgufWriter().bytes(), "");
    add("lfs-pointer",  // MF05
        "version https://git-lfs.github.com/spec/v1\noid sha256:" + std::string(64, 'a') + "\nsize 4920734016\n",
        "a Git LFS pointer, not the model of 4920734016 bytes");
    add("html", "<!DOCTYPE html>\n<html><title>Sign in</title></html>", "a web page (HTML)");
    add("html-with-mark", "\xEF\xBB\xBF  <HTML lang=en>", "a web page (HTML)");
    add("json", "{\"error\":\"Invalid credentials\"}", "a JSON text");
    add("xml", "<?xml version='1.0'?><Error><Code>AccessDenied</Code></Error>", "an XML text");
    add("text", "Entry not found", "a text file");
    add("zeros", zeros, "zeros at its start");
    add("safetensors", raw<uint64_t>(64) + "{\"__metadata__\":{}}" + zeros, "a safetensors file");
    add("zip", "PK\x03\x04" + zeros, "a ZIP archive or PyTorch checkpoint");
    add("ggml", "tjgg" + zeros, "the format before GGUF");
    add("gzip", "\x1f\x8b\x08" + zeros, "a compressed archive");
    add("elf",
        "\x7f"
        "ELF\x02\x01" +
            zeros,
        "an unknown format that begins with the bytes 7f 45 4c 46");

    // the header
    const auto version = [&](uint32_t number, const char* says) {
        change(
            "version-" + std::to_string(number), [=](GgufWriter& w) { w.version = number; }, says);
    };
    version(0, "version 0, unknown to this build");
    version(1, "version 1, given up");
    version(4, "version 4, unknown to this build");
    version(0x03000000, "big-endian");
    version(0xFFFFFFFF, "unknown to this build");
    change(
        "keys-2^63", [](GgufWriter& w) { w.key_count = 1ull << 63; }, "at most 65536 keys");
    change(
        "keys-60000", [](GgufWriter& w) { w.key_count = 60'000; }, "its header promises 60000 keys");
    change(
        "keys-one-more", [](GgufWriter& w) { w.key_count = 21; }, "cut off or damaged");
    change(
        "tensors-2^64-1", [](GgufWriter& w) { w.tensor_count = UINT64_MAX; }, "at most 131072 tensors");
    change(
        "tensors-100000", [](GgufWriter& w) { w.tensor_count = 100'000; }, "its header promises 100000 tensors");
    change(
        "tensors-one-more", [](GgufWriter& w) { w.tensor_count = w.tensors() + 1; }, "the name of tensor 12 of 12");
    change(
        "tensors-one-less", [](GgufWriter& w) { w.tensor_count = w.tensors() - 1; }, "");

    // keys
    const auto key = [&](std::string name, const std::string& key, uint32_t type, std::string value, std::string says) {
        change(
            std::move(name), [&](GgufWriter& w) { w.another(key, type, value); }, std::move(says));
    };
    key("key-empty", "", kU8, "x", "a name for key");
    key("key-twice", "general.name", kU8, "x", "key 'general.name' twice");
    key("key-with-zero", std::string("general.alignment\0x", 19), kU32, raw<uint32_t>(8), "zero byte");
    key("key-of-70000", std::string(70'000, 'k'), kU8, "x", "at most 65535 bytes");
    key("value-type-13", "a", 13, "x", "type 13");
    key("value-type-2^32-1", "a", 0xFFFFFFFF, "x", "type 4294967295");
    key("text-2^64-1", "a", kString, raw<uint64_t>(UINT64_MAX), "cut off or damaged");
    key("text-past-the-end", "a", kString, raw<uint64_t>(1u << 30), "cut off or damaged");
    key("array-in-array", "a", kArray, raw<uint32_t>(kArray) + raw<uint64_t>(1), "elements of type 9");
    key("array-of-99", "a", kArray, raw<uint32_t>(99) + raw<uint64_t>(1), "elements of type 99");
    key("array-2^61-u64", "a", kArray, raw<uint32_t>(kU64) + raw<uint64_t>(1ull << 61), "cut off or damaged");
    key("array-2^60-texts", "a", kArray, raw<uint32_t>(kString) + raw<uint64_t>(1ull << 60), "cut off or damaged");
    key("array-past-the-end", "a", kArray, raw<uint32_t>(kU8) + raw<uint64_t>(1u << 20), "cut off or damaged");
    {
        GgufWriter writer;
        writer.value("a", kString, raw<uint64_t>(5) + "four");
        add("text-one-too-long", writer.bytes(), "key 'a' needs 5 bytes");
    }

    // alignment, MF15
    const auto alignment = [&](std::string name, uint32_t type, std::string value, std::string says) {
        key("alignment-" + name, "general.alignment", type, std::move(value), std::move(says));
    };
    alignment("i32", kI32, raw<int32_t>(32), "'general.alignment' to be a u32, found i32");
    alignment("u64", kU64, raw<uint64_t>(32), "'general.alignment' to be a u32, found u64");
    alignment("text", kString, raw_text("32"), "'general.alignment' to be a u32, found string");
    alignment("2^31", kU32, raw<uint32_t>(0x80000000), "power of two from 32");
    alignment("3", kU32, raw<uint32_t>(3), "power of two from 32");
    alignment("0", kU32, raw<uint32_t>(0), "power of two from 32");
    for (uint32_t small : {1u, 8u, 16u})
        change(
            "alignment-" + std::to_string(small),
            [=](GgufWriter& w) {
                w.alignment = small;
                w.u32("general.alignment", small);
            },
            "power of two from 32");

    // tensors
    const auto tensor = [&](std::string name, std::vector<uint64_t> shape, uint32_t type, std::string says) {
        change(
            "tensor-" + name,
            [&](GgufWriter& w) { w.tensor("extra", shape, type, std::string(128, 'x')).f32_tensor("small", {4}); },
            std::move(says));
    };
    tensor("five-dimensions", {1, 1, 1, 1, 1}, kTypeF32, "at most 4 dimensions");
    tensor("type-46", {32}, 46, "uses tensor type 46, unknown to this build (llama.cpp v");  // MF10
    tensor("type-1000", {32}, 1000, "uses tensor type 1000, unknown to this build");
    tensor("type-2^32-1", {32}, 0xFFFFFFFF, "uses tensor type 4294967295, unknown to this build");
    tensor("type-36", {32}, 36, "the removed type 36 (IQ4_NL_4_4)");  // MF11
    tensor("type-31", {32}, 31, "the removed type 31 (Q4_0_4_4)");
    tensor("type-4", {32}, 4, "the removed type 4 (Q4_2)");
    tensor("size-max/4", {SIZE_MAX / 4}, kTypeF32, "a size that exists");              // MF13
    tensor("size-max/4+1", {SIZE_MAX / 4 + 1}, kTypeF32, "a size that exists");        // MF13
    tensor("int64-max-times-2", {INT64_MAX, 2, 1, 1}, kTypeI8, "a size that exists");  // MF14
    tensor("int64-max", {INT64_MAX}, kTypeI8, "a size that exists");                   // MF14
    tensor("2^63", {1ull << 63}, kTypeI8, "a size that exists");
    tensor("2^32-squared", {1ull << 32, 1ull << 32}, kTypeI8, "a size that exists");
    tensor("2^62-bytes", {1ull << 62}, kTypeI8, "at offset 46116860184274");
    change(
        "tensors-of-2^63-bytes",
        [](GgufWriter& w) {
            const uint64_t end = w.data_bytes(), huge = 1ull << 62;
            w.tensor("one", {huge}, kTypeI8, "", end).tensor("two", {huge}, kTypeI8, "", end + huge);
        },
        "too much at tensor 'two'");
    tensor("overflow-beside-0", {1ull << 40, 1ull << 40, 0}, kTypeI8, "a size that exists");
    tensor("rows-of-100", {100}, kTypeQ4_K, "rows of a multiple of 256 elements");
    change(
        "tensor-past-the-end", [](GgufWriter& w) { w.tensor("extra", {1 << 20}, kTypeF32, "x"); },
        "cut off, the first tensor past the end is 'extra'");
    const auto named = [&](std::string name, const std::string& tensor_name, std::string says) {
        change(
            "tensor-name-" + name, [&](GgufWriter& w) { w.f32_tensor(tensor_name, {4}); }, std::move(says));
    };
    named("empty", "", "a name for tensor");
    named("twice", "output_norm.weight", "tensor 'output_norm.weight' twice");
    named("of-64", std::string(64, 'n'), "at most 63 bytes");
    named("of-63", std::string(63, 'n'), "");
    named("with-zero", std::string("a\0b", 3), "zero byte");
    const auto offset = [&](std::string name, uint64_t at, std::string says) {
        change(
            "tensor-offset-" + name, [=](GgufWriter& w) { w.tensor("extra", {4}, kTypeF32, std::string(16, 'x'), at); },
            std::move(says));
    };
    offset("0", 0, "inside the tensor before it");
    offset("1", 1, "not aligned");
    offset("2^63", 1ull << 63, "a gap before it");
    offset("2^64-32", UINT64_MAX - 31, "a gap before it");

    // cut off, MF01 and MF02
    add("half", whole.substr(0, whole.size() / 2), "cut off, the first tensor past the end is 'blk.");
    add("minus-one", whole.substr(0, whole.size() - 1),
        "cut off, the first tensor past the end is 'blk.0.ffn_down.weight'");
    add("without-last-data", whole.substr(0, whole.size() - 64 * 32 * 4), "'blk.0.ffn_down.weight'");
    add("head-only", tiny_llama().head(), "cut off");
    change(
        "without-last-tensor", [](GgufWriter& w) { w.without_last_tensor(); }, "");

    // the vocabulary, MF17
    const auto vocabulary = [&](std::string name, const std::function<void(GgufWriter&)>& how, std::string says) {
        change("vocabulary-" + name, how, std::move(says));
    };
    const std::string scores = "tokenizer.ggml.scores", tokens = "tokenizer.ggml.tokens";
    vocabulary(
        "scores-u8", [&](GgufWriter& w) { w.array(scores, kU8, 257, std::string(257, 'x')); },
        "'tokenizer.ggml.scores' to be an array of f32 or i32, found an array of u8");
    vocabulary(
        "scores-short", [&](GgufWriter& w) { w.array(scores, kF32, 1, raw(1.0f)); }, "for each of the 257 tokens");
    vocabulary(
        "scores-scalar", [&](GgufWriter& w) { w.f32(scores, 1); }, "found a single f32");
    vocabulary(
        "types-f32", [](GgufWriter& w) { w.array("tokenizer.ggml.token_type", kF32, 257, std::string(257 * 4, '\0')); },
        "'tokenizer.ggml.token_type' to be an array of i32");
    vocabulary(
        "types-wild",
        [](GgufWriter& w) { w.array("tokenizer.ggml.token_type", kI32, 257, std::string(257 * 4, '\x7f')); }, "");
    vocabulary(
        "tokens-u32", [&](GgufWriter& w) { w.array(tokens, kU32, 257, std::string(257 * 4, '\0')); },
        "'tokenizer.ggml.tokens' to be an array of string");
    vocabulary(
        "tokens-scalar", [&](GgufWriter& w) { w.text(tokens, "a"); }, "'tokenizer.ggml.tokens' to be an array");
    vocabulary(
        "tokens-none", [&](GgufWriter& w) { w.texts(tokens, {}); }, "at least one token");
    const auto with_tokens = [&](std::string name, const std::function<void(std::vector<std::string>&)>& how,
                                 std::string says) {
        vocabulary(
            std::move(name),
            [&](GgufWriter& w) {
                auto all = byte_tokens();
                how(all);
                w.texts(tokens, all);
            },
            std::move(says));
    };
    with_tokens(
        "token-twice", [](auto& all) { all[7] = all[8]; }, "a token that occurs twice");
    with_tokens(
        "token-twice-to-zero",
        [](auto& all) {
            all[7] = std::string("ab\0c", 4);
            all[8] = std::string("ab\0d", 4);
        },
        "a token that occurs twice");
    with_tokens(
        "token-empty-twice", [](auto& all) { all[7] = all[8] = ""; }, "");
    with_tokens(
        "token-named-empty",
        [](auto& all) {
            all[7] = "";
            all[8] = "[EMPTY_7]";
        },
        "a token that occurs twice");
    with_tokens(
        "token-bad-utf8", [](auto& all) { all[7] = "\xff\xfe\xc3"; }, "");
    with_tokens(
        "token-of-100000", [](auto& all) { all[7] = std::string(100'000, 'x'); }, "");
    with_tokens(
        "token-of-2-MiB", [](auto& all) { all[7] = std::string(2 << 20, 'x'); }, "at most 1048576 bytes");
    vocabulary(
        "merges-u32", [](GgufWriter& w) { w.array("tokenizer.ggml.merges", kU32, 1, raw(1u)); },
        "'tokenizer.ggml.merges' to be an array of string");
    vocabulary(
        "merges-odd",
        [](GgufWriter& w) {
            w.texts("tokenizer.ggml.merges", {"", " ", "ab", "a b c", std::string("a\0b", 3), "\xff \xff"});
        },
        "");
    vocabulary(
        "merges-missing", [](GgufWriter& w) { w.without("tokenizer.ggml.merges"); }, "");
    vocabulary(
        "suppress-f32", [](GgufWriter& w) { w.array("tokenizer.ggml.suppress_tokens", kF32, 1, raw(1.0f)); },
        "'tokenizer.ggml.suppress_tokens'");
    vocabulary(
        "suppress-outside",
        [](GgufWriter& w) {
            w.array("tokenizer.ggml.suppress_tokens", kI32, 2, raw<int32_t>(-5) + raw<int32_t>(INT32_MAX));
        },
        "");
    vocabulary(
        "bos-outside", [](GgufWriter& w) { w.u32("tokenizer.ggml.bos_token_id", UINT32_MAX); }, "");
    vocabulary(
        "charsmap-u32",
        [](GgufWriter& w) {
            w.text("tokenizer.ggml.model", "t5").array("tokenizer.ggml.precompiled_charsmap", kU32, 1, raw(1u));
        },
        "'tokenizer.ggml.precompiled_charsmap'");
    vocabulary(
        "charsmap-outside",
        [](GgufWriter& w) {
            w.text("tokenizer.ggml.model", "t5");
            w.array("tokenizer.ggml.precompiled_charsmap", kU8, 8, raw(UINT32_MAX) + "abcd");
        },
        "");
    vocabulary(
        "model-unknown", [](GgufWriter& w) { w.text("tokenizer.ggml.model", "nonsense"); }, "");
    vocabulary(
        "model-number", [](GgufWriter& w) { w.u32("tokenizer.ggml.model", 7); }, "");
    vocabulary(
        "dummy-2^32", [](GgufWriter& w) { w.text("tokenizer.ggml.model", "none").u32("llama.vocab_size", UINT32_MAX); },
        "'llama.vocab_size' to be from 0 to 4194304");

    for (const char* model : {"llama", "bert", "t5", "rwkv", "plamo2", "gemma4", "hybriddna", "whitespace", "test"})
        vocabulary(
            std::string("kind-") + model, [=](GgufWriter& w) { w.text("tokenizer.ggml.model", model); }, "");
    vocabulary(
        "bert-bytes",
        [](GgufWriter& w) {
            std::string types;
            for (int i = 0; i < 257; ++i) types += raw<int32_t>(6);
            w.text("tokenizer.ggml.model", "bert").array("tokenizer.ggml.token_type", kI32, 257, types);
        },
        "no byte tokens");

    // sizes that llama.cpp asserts, divides by or multiplies
    for (const char* architecture : {"olmo2", "phimoe"}) {
        GgufWriter writer = with_vocabulary(architecture);
        writer.u32(std::string(architecture) + ".block_count", 1).f32_tensor("token_embd.weight", {32, 257});
        writer.u32(std::string(architecture) + ".attention.head_count", 0);
        add(std::string("no-heads-") + architecture, writer.bytes(), ".attention.head_count' to be from 1");
    }
    for (const char* architecture : {"bailingmoe2", "glm4moe", "grovemoe", "llada-moe", "smallthinker"}) {
        GgufWriter writer = with_vocabulary(architecture);
        writer.u32(std::string(architecture) + ".block_count", 1).f32_tensor("token_embd.weight", {32, 257});
        add(std::string("no-experts-") + architecture, writer.bytes(), ".expert_count' of a model of experts");
    }
    const auto size = [&](const std::string& name, uint32_t number, std::string says) {
        change(
            name + "-" + std::to_string(number), [&](GgufWriter& w) { w.u32("llama." + name, number); },
            std::move(says));
    };
    size("block_count", 0, "'llama.block_count' to be from 1 to 512, found 0");
    size("block_count", 2, "");
    size("block_count", 512, "");
    size("block_count", 513, "'llama.block_count' to be from 1 to 512, found 513");
    size("block_count", UINT32_MAX, "'llama.block_count' to be from 1 to 512");
    change(
        "block_count-text", [](GgufWriter& w) { w.text("llama.block_count", "one"); },
        "'llama.block_count' to be a u32, found string");
    size("nextn_predict_layers", 2, "'llama.nextn_predict_layers' to be from 0 to 1");
    size("embedding_length", 0, "'llama.embedding_length' to be from 1");
    size("embedding_length", 16, "");
    size("embedding_length", UINT32_MAX, "'llama.embedding_length' to be from 1");
    size("context_length", 0, "");
    size("context_length", UINT32_MAX, "");
    size("feed_forward_length", 0, "");
    size("feed_forward_length", UINT32_MAX, "");
    size("attention.head_count", 0, "");
    size("attention.head_count", 7, "");
    size("attention.head_count", UINT32_MAX, "'llama.attention.head_count' to be from 0 to 1048576");
    size("attention.head_count_kv", 0, "");
    size("attention.head_count_kv", UINT32_MAX, "");
    size("attention.key_length", UINT32_MAX, "");
    size("rope.dimension_count", 0, "");
    size("rope.dimension_count", UINT32_MAX, "");
    size("pooling_type", 100, "'llama.pooling_type' to be from 0 to 4");
    size("expert_count", 4, "key 'llama.expert_used_count' beside 4 experts");
    size("expert_count", 1025, "'llama.expert_count' to be from 0 to 1024");
    size("expert_used_count", 2, "'llama.expert_used_count' to be from 0 to 0");
    size("expert_group_count", 2, "'llama.expert_group_count' to be from 0 to 0");
    change(
        "experts-more-used", [](GgufWriter& w) { w.u32("llama.expert_count", 4).u32("llama.expert_used_count", 5); },
        "'llama.expert_used_count' to be from 1 to 4, found 5");
    change(
        "experts-odd-groups",
        [](GgufWriter& w) {
            w.u32("llama.expert_count", 4).u32("llama.expert_used_count", 2).u32("llama.expert_group_count", 3);
        },
        "divide evenly");
    change(
        "file_type-2^32-1", [](GgufWriter& w) { w.u32("general.file_type", UINT32_MAX); }, "'general.file_type'");
    change(
        "rope-scaling-unknown", [](GgufWriter& w) { w.text("llama.rope.scaling.type", "spiral"); },
        "to be none, linear, yarn or longrope, found 'spiral'");
    change(
        "architecture-unknown", [](GgufWriter& w) { w.text("general.architecture", "perceptron"); }, "");
    change(
        "architecture-number", [](GgufWriter& w) { w.u32("general.architecture", 7); }, "");
    change(
        "architecture-missing", [](GgufWriter& w) { w.without("general.architecture"); }, "");
    change(
        "wrong-shape",
        [](GgufWriter& w) {
            w.without_last_tensor().f32_tensor("blk.0.ffn_down.weight", {32, 64});
        },
        "");
    change(
        "projector-as-model", [](GgufWriter& w) { w.text("general.architecture", "clip"); }, "");

    // splits, MF06
    change(
        "split-count-u32", [](GgufWriter& w) { w.u32("split.count", 2).u16("split.no", 0); },
        "'split.count' to be a u16, found u32");
    change(
        "split-no-missing", [](GgufWriter& w) { w.u16("split.count", 2); }, "'split.no' from 0 to 1");
    change(
        "split-no-outside", [](GgufWriter& w) { w.u16("split.count", 2).u16("split.no", 2); }, "found 2");
    change(
        "split-0", [](GgufWriter& w) { w.u16("split.count", 0).u16("split.no", 9); }, "");
    change(
        "split-65535-alone", [](GgufWriter& w) { w.u16("split.count", 65535).u16("split.no", 0); }, "");
    add("joined", listed_shard(0, 2).bytes() + listed_shard(1, 2).bytes(), "shard 1 of 2 with");
    add("joined-backwards", listed_shard(1, 2).bytes() + listed_shard(0, 2).bytes(), "shard 2 of 2 with");
    return files;
}

}  // namespace onebit::test
