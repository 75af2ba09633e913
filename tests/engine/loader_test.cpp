// Breaks if a hostile model file can end the engine: a file on which llama.cpp's own loader dies has to be refused by
// read_gguf_head before. Worth most in the build with AddressSanitizer, where llama.cpp is instrumented too.
#include <ggml-backend.h>
#include <ggml.h>
#include <gguf.h>
#include <gtest/gtest.h>
#include <llama.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <iostream>
#include <random>
#include <string>
#include <vector>

#include "llama-hparams.h"
#include "server/catalog/catalog.h"
#include "server/catalog/gguf_file.h"
#include "server/catalog/gguf_rules.h"
#include "server/catalog/gguf_types.h"
#include "tests/base/scratch.h"
#include "tests/server/gguf_writer.h"
#include "tests/server/hostile_gguf.h"

namespace onebit {
namespace {

namespace fs = std::filesystem;
using test::GgufWriter;
using test::ScratchFolder;

const fs::path kBuiltin = ONEBIT_BUILTIN_FILE;

enum class Outcome { refused, loaded, died };
constexpr int kRefused = 40, kLoaded = 41;  // exit codes that no sanitizer uses

// Only the processor: no GPU driver is part of what is tested here.
class Quiet : public ::testing::Environment {
public:
    void SetUp() override {
        ::setenv("GGML_NO_BACKTRACE", "1", 1);  // an abort would start a debugger, which takes seconds
        ::setenv("VK_DRIVER_FILES", "/nonexistent", 1);
        ::setenv("VK_ICD_FILENAMES", "/nonexistent", 1);
        llama_log_set([](ggml_log_level, const char*, void*) {}, nullptr);
        llama_backend_init();
    }
};
const auto* const kQuiet = ::testing::AddGlobalTestEnvironment(new Quiet);

struct Death {
    Outcome outcome;
    std::string how;
};

// In a child, since llama.cpp ends the process on some input. A hang counts as a death.
Death in_child(const std::function<bool()>& load) {
    const pid_t child = ::fork();
    if (child == 0) {
        ::alarm(100);
        const struct rlimit no_core {};
        ::setrlimit(RLIMIT_CORE, &no_core);
#ifndef __SANITIZE_ADDRESS__
        const struct rlimit memory { 8ull << 30, 8ull << 30 };
        ::setrlimit(RLIMIT_AS, &memory);
#endif
        // what an abort prints belongs to no failure of this test
        if (!::freopen("/dev/null", "w", stderr)) ::_exit(1);
        ::_exit(load() ? kLoaded : kRefused);
    }
    int status = 0;
    if (child < 0 || ::waitpid(child, &status, 0) != child) return {Outcome::died, "no child"};
    if (WIFEXITED(status) && WEXITSTATUS(status) == kLoaded) return {Outcome::loaded, ""};
    if (WIFEXITED(status) && WEXITSTATUS(status) == kRefused) return {Outcome::refused, ""};
    return {Outcome::died, WIFSIGNALED(status) ? std::string("signal ") + ::strsignal(WTERMSIG(status))
                                               : "exit code " + std::to_string(WEXITSTATUS(status))};
}

bool load_gguf(const fs::path& file, bool with_data) {
    struct ggml_context* tensors = nullptr;
    gguf_init_params params{};
    params.no_alloc = !with_data;
    params.ctx = &tensors;
    gguf_context* context = gguf_init_from_file(file.c_str(), params);
    if (!context) return false;
    gguf_free(context);
    ggml_free(tensors);
    return true;
}

bool load_model(const fs::path& file, bool vocabulary_only, llama_load_mode mode) {
    llama_model_params params = llama_model_default_params();
    params.n_gpu_layers = 0;
    params.vocab_only = vocabulary_only;
    params.load_mode = mode;
    llama_model* model = llama_model_load_from_file(file.c_str(), params);
    if (!model) return false;
    llama_model_free(model);
    return true;
}

struct Loader {
    const char* name;
    std::function<bool(const fs::path&)> load;
};
const std::vector<Loader> kLoaders = {
    {"gguf_init_from_file without data", [](const fs::path& file) { return load_gguf(file, false); }},
    {"gguf_init_from_file", [](const fs::path& file) { return load_gguf(file, true); }},
    {"llama.cpp's vocabulary", [](const fs::path& file) { return load_model(file, true, LLAMA_LOAD_MODE_NONE); }},
    {"llama.cpp, mapped", [](const fs::path& file) { return load_model(file, false, LLAMA_LOAD_MODE_MMAP); }},
    {"llama.cpp, read", [](const fs::path& file) { return load_model(file, false, LLAMA_LOAD_MODE_NONE); }},
};

// Each loader refuses or loads the file, or ours refuses it first. Returns the worst that llama.cpp did.
Outcome expect_no_death(const std::string& name, const fs::path& file) {
    const auto head = read_gguf_head(file);
    Outcome worst = Outcome::refused;
    for (const Loader& loader : kLoaders) {
        const Death death = in_child([&] { return loader.load(file); });
        if (death.outcome == Outcome::died) {
            EXPECT_FALSE(head.ok()) << loader.name << " dies on " << name << " (" << death.how
                                    << ") and read_gguf_head lets it pass";
            ::testing::Test::RecordProperty(name, loader.name);
        }
        worst = std::max(worst, death.outcome);
    }
    return worst;
}

// In parts, so that they run beside each other.
constexpr size_t kParts = 4;
class HostileFiles : public ::testing::TestWithParam<size_t> {};
INSTANTIATE_TEST_SUITE_P(Part, HostileFiles, ::testing::Range<size_t>(0, kParts));

// MF13 MF14 MF15 MF17 MF18
TEST_P(HostileFiles, NoneReachesADeath) {
    const ScratchFolder folder;
    const fs::path file = folder / "x.gguf";
    std::string deaths;
    const auto files = test::hostile_files();
    for (size_t i = GetParam(); i < files.size(); i += kParts) {
        const auto& hostile = files[i];
        GgufWriter::write_bytes(file, hostile.bytes);
#ifdef __SANITIZE_ADDRESS__
        // would take all memory of the machine, where no limit of memory can be set
        if (hostile.name == "vocabulary-dummy-2^32") {
            EXPECT_FALSE(read_gguf_head(file));
            continue;
        }
#endif
        if (expect_no_death(hostile.name, file) == Outcome::died) deaths += " " + hostile.name;
    }
    std::cout << "llama.cpp dies on, and read_gguf_head refuses first:" << deaths << "\n";
}

// MF01: every cut of the built-in model is refused by ours and by llama.cpp
TEST(Loader, RefusesTheBuiltinModelCut) {
    const ScratchFolder folder;
    const fs::path file = folder / "cut.gguf";
    const auto head = read_gguf_head(kBuiltin);
    ASSERT_TRUE(head) << head.error().message();
    const std::string whole = test::read_file(kBuiltin);
    const auto inside = [&](const char* text) { return whole.find(text) + 3; };
    const std::vector<size_t> lengths = {0,
                                         1,
                                         3,
                                         4,
                                         23,
                                         24,
                                         25,
                                         inside("general.architecture"),
                                         inside("tokenizer.ggml.tokens"),
                                         inside("tokenizer.ggml.tokens") + 5000,
                                         inside("tokenizer.chat_template"),
                                         inside("token_embd.weight"),
                                         static_cast<size_t>(head->data_offset),
                                         whole.size() / 2,
                                         whole.size() - 1};
    for (size_t length : lengths) {
        SCOPED_TRACE(length);
        GgufWriter::write_bytes(file, std::string_view(whole).substr(0, length));
        EXPECT_FALSE(read_gguf_head(file));
        const Death death = in_child([&] { return load_model(file, false, LLAMA_LOAD_MODE_MMAP); });
        EXPECT_EQ(death.outcome, Outcome::refused) << death.how;
    }
}

// MF02: no run with a tensor that is not there
TEST(Loader, RefusesAModelWithoutItsLastTensor) {
    const ScratchFolder folder;
    const auto file = test::tiny_llama().without_last_tensor().write(folder / "x.gguf");
    EXPECT_EQ(in_child([&] { return load_model(file, false, LLAMA_LOAD_MODE_MMAP); }).outcome, Outcome::refused);
    const std::string whole = test::tiny_llama().bytes();
    GgufWriter::write_bytes(file, whole.substr(0, whole.size() - 64 * 32 * 4));
    EXPECT_EQ(in_child([&] { return load_model(file, false, LLAMA_LOAD_MODE_MMAP); }).outcome, Outcome::refused);
}

// MF03, and that the files of the other tests are refused for their fault and not for their base
TEST(Loader, LoadsWholeModels) {
    const ScratchFolder folder;
    for (const auto& [name, writer] : {std::pair("llama", test::tiny_llama()), std::pair("moe", test::tiny_qwen3moe())})
        EXPECT_EQ(expect_no_death(name, writer.write(folder / name)), Outcome::loaded) << name;
    EXPECT_TRUE(load_model(kBuiltin, false, LLAMA_LOAD_MODE_MMAP));
}

// MF07: any shard's name opens the set
TEST(Loader, LoadsASetByAnyShard) {
    const ScratchFolder folder;
    const auto shards = test::tiny_llama().shards(3);
    const std::vector<std::string> names = {"a-00001-of-00003.gguf", "a-00002-of-00003.gguf", "a-00003-of-00003.gguf"};
    for (size_t i = 0; i < 3; ++i) shards[i].write(folder / names[i]);
    for (const std::string& name : names) {
        const auto found = find_model((folder / name).string(), {});
        ASSERT_TRUE(found) << found.error().message();
        ASSERT_EQ(found->files.size(), 3u);
        EXPECT_TRUE(load_model(found->files.front(), false, LLAMA_LOAD_MODE_MMAP)) << name;
    }
}

// MF18: what ours lets pass of mutated heads may be refused or loaded by llama.cpp, but never ends it
TEST(Loader, SurvivesMutatedHeads) {
    const ScratchFolder folder;
    const fs::path file = folder / "mutated.gguf";
    const std::vector<GgufWriter> models = {test::tiny_llama(), test::tiny_qwen3moe()};
    std::mt19937_64 random(20261129);
    constexpr int kRounds = 400;
    int passed = 0;
    for (int round = 0; round < kRounds; ++round) {
        std::string bytes = models[round % 2].bytes();
        const std::string head = models[round % 2].head();
        for (uint64_t changes = 1 + random() % 3; changes-- > 0;) {
            const size_t at = 24 + random() % (head.size() - 24);
            if (random() % 2)
                bytes[at] = static_cast<char>(random());
            else
                bytes[at] = static_cast<char>(bytes[at] ^ 1 << random() % 8);
        }
        GgufWriter::write_bytes(file, bytes);
        if (!read_gguf_head(file)) continue;
        ++passed;
        const Death death = in_child([&] { return load_model(file, false, LLAMA_LOAD_MODE_MMAP); });
        if (death.outcome != Outcome::died) continue;
        ADD_FAILURE() << "round " << round << ": " << death.how;
        fs::copy_file(file, fs::temp_directory_path() / ("mutated-" + std::to_string(round) + ".gguf"),
                      fs::copy_options::overwrite_existing);
    }
    EXPECT_GT(passed, kRounds / 10);
}

// The tables of server/catalog follow the pinned llama.cpp.
TEST(Loader, TablesAreThoseOfThePin) {
    ASSERT_EQ(kGgufTypeCount, static_cast<uint32_t>(GGML_TYPE_COUNT));
    for (uint32_t i = 0; i < kGgufTypeCount; ++i) {
        const auto type = static_cast<ggml_type>(i);
        EXPECT_EQ(gguf_type(i)->block, ggml_blck_size(type)) << i;
        EXPECT_EQ(gguf_type(i)->bytes, ggml_type_size(type)) << i;
        EXPECT_EQ(gguf_type(i)->remedy != nullptr, ggml_blck_size(type) == 0) << i;
        if (ggml_blck_size(type) != 0) {
            EXPECT_STRCASEEQ(gguf_type(i)->name, ggml_type_name(type)) << i;
        }
    }
    EXPECT_EQ(kGgufValueTypes, static_cast<uint32_t>(GGUF_TYPE_COUNT));
    EXPECT_EQ(kMaxModelLayers, LLAMA_MAX_LAYERS);
    EXPECT_EQ(kMaxModelExperts, LLAMA_MAX_EXPERTS);
    for (uint32_t i = 0; i < 64; ++i) {
        const std::string name = llama_ftype_name(static_cast<llama_ftype>(i));
        EXPECT_EQ(gguf_file_type_name(i).empty(), name.find("unknown") != std::string::npos) << i << " " << name;
    }
    EXPECT_EQ(std::string(llama_version()).find(llama_release() + 1), 0u) << llama_version();
}

}  // namespace
}  // namespace onebit
