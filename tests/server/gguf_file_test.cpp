// Breaks if a damaged, foreign or hostile model file crashes the reader, passes it, or gets a message of no use.
#include "server/catalog/gguf_file.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <random>

#include "base/unique_fd.h"
#include "server/catalog/gguf_types.h"
#include "tests/base/scratch.h"
#include "tests/server/gguf_writer.h"
#include "tests/server/hostile_gguf.h"

namespace onebit {
namespace {

using test::GgufWriter;
using test::raw;
using test::ScratchFolder;

const std::filesystem::path kBuiltin = ONEBIT_BUILTIN_FILE;

Result<GgufHead> read(const ScratchFolder& folder, std::string_view bytes) {
    GgufWriter::write_bytes(folder / "x.gguf", bytes);
    return read_gguf_head(folder / "x.gguf");
}

// The first bytes of the built-in model.
std::string builtin_start(size_t length) {
    std::string bytes(length, '\0');
    std::ifstream(kBuiltin, std::ios::binary).read(bytes.data(), static_cast<std::streamsize>(length));
    return bytes;
}

std::string message(const Result<GgufHead>& result) { return result ? "" : result.error().message(); }

// MF01 MF02 MF05 MF06 MF10 MF11 MF13 MF14 MF15 MF17 MF18
TEST(GgufFile, NamesWhatEachHostileFileIs) {
    const ScratchFolder folder;
    const auto files = test::hostile_files();
    EXPECT_GE(files.size(), 100u);
    for (const auto& file : files) {
        SCOPED_TRACE(file.name);
        const auto head = read(folder, file.bytes);
        EXPECT_EQ(head.ok(), file.says.empty()) << message(head);
        if (head) continue;
        EXPECT_EQ(head.error().code, ErrorCode::invalid);
        EXPECT_EQ(head.error().subject, (folder / "x.gguf").string());
        EXPECT_NE(message(head).find(file.says), std::string::npos) << message(head);
        EXPECT_FALSE(head.error().remedy.empty());
        EXPECT_EQ(message(head).find('\n'), std::string::npos);
    }
}

TEST(GgufFile, ReadsEveryValueAndTensor) {
    const ScratchFolder folder;
    GgufWriter writer = test::tiny_llama();
    writer.value("a.u8", test::kU8, raw<uint8_t>(200)).value("a.i8", test::kI8, raw<int8_t>(-3));
    writer.value("a.i16", test::kI16, raw<int16_t>(-300)).u64("a.u64", UINT64_MAX);
    writer.value("a.i64", test::kI64, raw<int64_t>(INT64_MIN)).value("a.f64", test::kF64, raw(0.5));
    writer.boolean("a.yes", true).text("a.text", "größer\nzwei").array("a.list", test::kU16, 3, "abcdef");
    const auto head = read(folder, writer.bytes());
    ASSERT_TRUE(head) << message(head);
    EXPECT_EQ(head->version, 3u);
    EXPECT_EQ(head->text("general.architecture"), "llama");
    EXPECT_EQ(head->text("a.text"), "größer\nzwei");
    EXPECT_EQ(head->text("a.u8"), "");
    EXPECT_EQ(head->text("missing"), "");
    EXPECT_EQ(head->number("a.u8", 1), 200u);
    EXPECT_EQ(head->number("a.u64", 1), UINT64_MAX);
    EXPECT_EQ(head->number("a.i8", 1), 1u) << "a negative number is not one";
    EXPECT_EQ(head->number("a.text", 9), 9u);
    EXPECT_EQ(std::get<int64_t>(head->values.at("a.i16")), -300);
    EXPECT_EQ(std::get<int64_t>(head->values.at("a.i64")), INT64_MIN);
    EXPECT_EQ(std::get<double>(head->values.at("a.f64")), 0.5);
    EXPECT_TRUE(std::get<bool>(head->values.at("a.yes")));
    EXPECT_EQ(std::get<GgufArray>(head->values.at("a.list")).length, 3u);
    EXPECT_EQ(std::get<GgufArray>(head->values.at("tokenizer.ggml.tokens")).length, 257u);
    ASSERT_EQ(head->tensors.size(), writer.tensors());
    EXPECT_EQ(head->tensors[0].name, "token_embd.weight");
    EXPECT_EQ(head->tensors[0].shape, (std::vector<uint64_t>{32, 257}));
    EXPECT_EQ(head->tensors[0].bytes, 32u * 257 * 4);
    EXPECT_EQ(head->tensors[1].offset, 32u * 257 * 4);
    EXPECT_EQ(head->data_offset % 32, 0u);
    EXPECT_EQ(head->file_bytes, writer.bytes().size());
    EXPECT_LE(head->expected_bytes, head->file_bytes);
    EXPECT_EQ(head->split_count, 1);
}

// MF03: whatever the tensors are called, a file that holds all their bytes is whole
TEST(GgufFile, TakesModelsOfExperts) {
    const ScratchFolder folder;
    const auto head = read(folder, test::tiny_qwen3moe().bytes());
    ASSERT_TRUE(head) << message(head);
    EXPECT_EQ(head->number("qwen3moe.expert_count", 0), 4u);
}

TEST(GgufFile, TakesEdgesOfTheFormat) {
    const ScratchFolder folder;
    GgufWriter writer;
    writer.u32("general.alignment", 4096).alignment = 4096;
    writer.version = 2;
    writer.tensor("scalar", {}, test::kTypeF32, "abcd").tensor("nothing", {0, 4}, test::kTypeF32, "");
    writer.tensor("blocks", {256, 2}, test::kTypeQ4_K, std::string(288, 'q'));
    const auto head = read(folder, writer.bytes());
    ASSERT_TRUE(head) << message(head);
    EXPECT_EQ(head->alignment, 4096u);
    EXPECT_EQ(head->data_offset, 4096u);
    EXPECT_EQ(head->tensors[0].shape, std::vector<uint64_t>{1});
    EXPECT_EQ(head->tensors[1].bytes, 0u);
    EXPECT_EQ(head->tensors[2].bytes, 288u);
    EXPECT_EQ(head->expected_bytes, 4096u + 4096 + 288);
    // the padding of the last tensor may be missing
    EXPECT_TRUE(read(folder, writer.bytes().substr(0, head->expected_bytes)));
    EXPECT_FALSE(read(folder, writer.bytes().substr(0, head->expected_bytes - 1)));
}

// MF06: bytes behind the last tensor are only wrong when they are another shard
TEST(GgufFile, TakesBytesBehindTheLastTensor) {
    const ScratchFolder folder;
    EXPECT_TRUE(read(folder, test::tiny_llama().bytes() + "signature"));
    EXPECT_TRUE(read(folder, test::listed_shard(0, 2).bytes() + std::string(100, '\0')));
    EXPECT_EQ(read(folder, test::listed_shard(1, 2).bytes())->split_no, 1);
}

// MF09: the name has no say in whether a file is a shard
TEST(GgufFile, DecidesSplitsByMetadata) {
    const ScratchFolder folder;
    const auto path = folder / "m-00001-of-00013" / "m-00001-of-00013.gguf";
    test::tiny_llama().write(path);
    const auto head = read_gguf_head(path);
    ASSERT_TRUE(head) << message(head);
    EXPECT_EQ(head->split_count, 1);
}

TEST(GgufFile, RefusesWhatIsNoFile) {
    const ScratchFolder folder;
    EXPECT_EQ(read_gguf_head(folder / "none.gguf").error().code, ErrorCode::not_found);
    EXPECT_NE(message(read_gguf_head(folder.path())).find("a folder"), std::string::npos);
    ASSERT_EQ(::mkfifo((folder / "pipe.gguf").c_str(), 0600), 0);
    EXPECT_NE(message(read_gguf_head(folder / "pipe.gguf")).find("no regular file"), std::string::npos);
    std::filesystem::create_symlink("loop.gguf", folder / "loop.gguf");
    EXPECT_EQ(read_gguf_head(folder / "loop.gguf").error().code, ErrorCode::io);
}

// MF01: both sizes and the first tensor past the end
TEST(GgufFile, SaysWhatACutModelLacks) {
    const ScratchFolder folder;
    const auto file = folder / "cut.gguf";
    std::filesystem::copy_file(kBuiltin, file);
    std::filesystem::permissions(file, std::filesystem::perms::owner_all);
    const uint64_t whole = std::filesystem::file_size(kBuiltin);
    const auto head = read_gguf_head(file);
    ASSERT_TRUE(head) << message(head);

    std::filesystem::resize_file(file, whole - 1);
    const auto one_less = message(read_gguf_head(file));
    EXPECT_NE(one_less.find("'" + head->tensors.back().name + "'"), std::string::npos) << one_less;

    std::filesystem::resize_file(file, whole / 2);
    const auto cut = message(read_gguf_head(file));
    EXPECT_NE(cut.find("a file of " + std::to_string(whole) + " bytes"), std::string::npos) << cut;
    EXPECT_NE(cut.find("found " + std::to_string(whole / 2) + " bytes"), std::string::npos) << cut;
    std::string first;
    for (const auto& tensor : head->tensors)
        if (first.empty() && head->data_offset + tensor.offset + tensor.bytes > whole / 2) first = tensor.name;
    EXPECT_NE(cut.find("first tensor past the end is '" + first + "'"), std::string::npos) << cut;
}

// MF01: a cut anywhere is refused, and nothing but an Error comes of it
TEST(GgufFile, RefusesTheBuiltinModelCutAnywhere) {
    const ScratchFolder folder;
    const auto head = read_gguf_head(kBuiltin);
    ASSERT_TRUE(head);
    const std::string whole = builtin_start(head->data_offset + 64);
    std::vector<size_t> lengths = {0, 1, 3, 4, 5, 7, 8, 15, 16, 23, 24, 25, 31, 32, 33, 40};
    for (size_t at = 41; at < head->data_offset; at += 1997) lengths.push_back(at);
    for (const char* inside : {"general.architecture", "tokenizer.ggml.tokens", "tokenizer.ggml.merges",
                               "tokenizer.chat_template", "token_embd.weight", "blk.0.attn_q.weight"}) {
        const size_t at = whole.find(inside);
        ASSERT_NE(at, std::string::npos) << inside;
        for (size_t more : {0, 1, 5}) lengths.push_back(at - 1 + more);
        lengths.push_back(at + std::string_view(inside).size());
        lengths.push_back(at + std::string_view(inside).size() + 5);
    }
    for (size_t at : {head->data_offset - 1, head->data_offset, head->data_offset + 1}) lengths.push_back(at);
    for (size_t length : lengths) {
        const auto cut = read(folder, std::string_view(whole).substr(0, length));
        ASSERT_FALSE(cut) << length;
        EXPECT_EQ(cut.error().code, ErrorCode::invalid) << length;
        EXPECT_FALSE(cut.error().found.empty()) << length;
    }
}

// In parts, so that they run beside each other.
class MutatedHeads : public ::testing::TestWithParam<unsigned> {};
INSTANTIATE_TEST_SUITE_P(Part, MutatedHeads, ::testing::Range(0u, 4u));

// MF18: 2,000 copies with a few wrong bytes each. What comes back is a head or an error, and the head is consistent.
TEST_P(MutatedHeads, GiveAHeadOrAnError) {
    const UniqueFd memory(::memfd_create("mutated", MFD_CLOEXEC));
    ASSERT_TRUE(memory);
    const std::string start = builtin_start(200'000);
    const uint64_t size = std::filesystem::file_size(kBuiltin);
    std::mt19937_64 random(20261129 + GetParam());
    size_t refused = 0;
    for (int round = 0; round < 500; ++round) {
        std::string bytes = start;
        // most of the head are texts, where a wrong byte does little: aim at its numbers too
        const size_t range = round % 2 ? bytes.size() : 4096;
        for (uint64_t changes = 1 + random() % 8; changes-- > 0;) {
            const size_t at = random() % range;
            switch (random() % 4) {
                case 0:
                    bytes[at] = static_cast<char>(random());
                    break;
                case 1:
                    bytes[at] = static_cast<char>(bytes[at] ^ 1 << random() % 8);
                    break;
                case 2:
                    bytes.replace(at, 8, std::string(8, '\xff'));
                    break;
                case 3:
                    bytes.erase(at, 1 + random() % 16);
                    break;
            }
        }
        ASSERT_EQ(::ftruncate(memory.get(), 0), 0);
        ASSERT_EQ(::pwrite(memory.get(), bytes.data(), bytes.size(), 0), static_cast<ssize_t>(bytes.size()));
        // mostly as large as the whole, so that it is not only refused for its size
        if (round % 4 != 0) {
            ASSERT_EQ(::ftruncate(memory.get(), static_cast<off_t>(size)), 0);
        }
        const auto head = read_gguf_head("/proc/self/fd/" + std::to_string(memory.get()));
        if (!head) {
            ++refused;
            EXPECT_FALSE(head.error().found.empty()) << round;
            continue;
        }
        EXPECT_LE(head->expected_bytes, head->file_bytes) << round;
        uint64_t end = 0;
        for (const auto& tensor : head->tensors) {
            EXPECT_GE(tensor.offset, end) << round;
            end = tensor.offset + tensor.bytes;
        }
        EXPECT_LE(head->data_offset + end, head->file_bytes) << round;
    }
    EXPECT_GT(refused, 250u);
    EXPECT_LT(refused, 500u);
}

// Memory stays within a few times the bytes read, whatever a huge sparse file promises.
TEST(GgufFile, IsNotLuredIntoMemory) {
    const ScratchFolder folder;
    const auto texts = [](uint64_t count) { return raw<uint32_t>(test::kString) + raw(count); };
    std::vector<GgufWriter> writers(5);
    writers[0].value("a", test::kString, raw<uint64_t>(1ull << 38));
    writers[1].value("tokenizer.ggml.tokens", test::kArray, texts(1ull << 22));
    writers[2].value("tokenizer.ggml.merges", test::kArray, texts(1ull << 36));
    writers[3].key_count = 65'536;
    writers[4].tensor_count = 131'072;
    for (const GgufWriter& writer : writers) {
        const auto file = writer.write(folder / "sparse.gguf");
        ASSERT_EQ(::truncate(file.c_str(), 1ll << 40), 0);
        struct rusage before {};
        struct rusage after {};
        ::getrusage(RUSAGE_SELF, &before);
        (void)read_gguf_head(file);
        ::getrusage(RUSAGE_SELF, &after);
        EXPECT_LT(after.ru_maxrss - before.ru_maxrss, 512 << 10) << "KiB";
        std::filesystem::remove(file);
    }
}

TEST(GgufFile, NamesFileTypes) {
    EXPECT_EQ(gguf_file_type_name(0), "F32");
    EXPECT_EQ(gguf_file_type_name(7), "Q8_0");
    EXPECT_EQ(gguf_file_type_name(15), "Q4_K_M");
    EXPECT_EQ(gguf_file_type_name(30), "IQ4_XS");
    EXPECT_EQ(gguf_file_type_name(1024 + 15), "Q4_K_M") << "guessed by llama.cpp, but the same";
    EXPECT_EQ(gguf_file_type_name(5), "");
    EXPECT_EQ(gguf_file_type_name(42), "");
    EXPECT_EQ(gguf_file_type_name(UINT64_MAX), "");
    EXPECT_EQ(gguf_type(kGgufTypeCount), nullptr);
    EXPECT_STREQ(gguf_type(12)->name, "Q4_K");
}

}  // namespace
}  // namespace onebit
