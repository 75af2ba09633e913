// Breaks if a model on disk is not listed, listed twice or as what it is not, or if a name opens the wrong one.
#include "server/catalog/catalog.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <thread>

#include "server/catalog/catalog_names.h"
#include "server/catalog/head_cache.h"
#include "tests/base/scratch.h"
#include "tests/server/gguf_writer.h"

namespace onebit {
namespace {

namespace fs = std::filesystem;
using test::GgufWriter;
using test::listed_model;
using test::ScratchFolder;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::UnorderedElementsAre;

std::vector<std::string> ids(const std::vector<ModelEntry>& models) {
    std::vector<std::string> all;
    for (const ModelEntry& model : models) all.push_back(model.id);
    return all;
}

class Catalog : public testing::Test {
protected:
    CatalogFolders folders() const {
        CatalogFolders all;
        all.ours = root_ / "ours";
        all.hugging_face = root_ / "hub";
        all.lm_studio = root_ / "lm";
        all.ollama = root_ / "ollama";
        return all;
    }
    std::vector<ModelEntry> list() const { return list_models(folders()); }
    Result<ModelEntry> find(const std::string& name) const { return find_model(name, folders()); }
    std::string failure(const std::string& name) const {
        const auto found = find(name);
        return found ? "found " + found->id : found.error().message();
    }
    fs::path model(const fs::path& place, const std::string& name = "Test") const {
        return listed_model(name).write(root_ / place.string());
    }
    void shards(const fs::path& prefix, uint16_t count) const {
        for (uint16_t i = 0; i < count; ++i)
            test::listed_shard(i, count).write(root_ / shard_file_name({prefix.string(), i + 1u, count}));
    }
    const ScratchFolder root_;
};

TEST_F(Catalog, IsEmptyWithoutFolders) {
    EXPECT_THAT(list(), IsEmpty());
    EXPECT_THAT(list_models({}), IsEmpty());
    fs::create_directories(root_ / "ours");
    EXPECT_THAT(list(), IsEmpty());
    EXPECT_EQ(find("any").error().code, ErrorCode::not_found);
}

TEST_F(Catalog, TellsWhatAHeadSays) {
    const auto file = model("ours/org/repo/Fine-Q4_K_M.gguf", "Fine");
    const auto models = list();
    ASSERT_THAT(ids(models), ElementsAre("org/repo:Q4_K_M"));
    EXPECT_EQ(models[0].origin, ModelOrigin::ours);
    EXPECT_THAT(models[0].files, ElementsAre(file));
    EXPECT_EQ(models[0].bytes, fs::file_size(file));
    EXPECT_EQ(models[0].architecture, "llama");
    EXPECT_EQ(models[0].quantization, "Q4_K_M");
    EXPECT_EQ(models[0].name, "Fine");
    EXPECT_EQ(models[0].context_length, 4096u);
    EXPECT_EQ(models[0].parameters, 32u);
    EXPECT_EQ(models[0].problem, "");
}

TEST_F(Catalog, ListsEveryPlaceOfAFolder) {
    model("ours/top.gguf");
    model("ours/sub/inner.GGUF");
    model("ours/org/repo/name-Q8_0.gguf");
    model("ours/org/repo/deep/other-Q8_0.gguf");
    model("ours/org/plain/model.gguf");
    EXPECT_THAT(ids(list()),
                ElementsAre("inner", "org/plain:Q4_K_M", "org/repo:Q8_0", "org/repo:deep/other-Q8_0", "top"));
    EXPECT_EQ(find("org/repo:deep/other-Q8_0")->files[0].filename(), "other-Q8_0.gguf");
}

// MF07
TEST_F(Catalog, ListsShardsAsOneAndOpensThemByAnyName) {
    shards("ours/a", 3);
    const auto models = list();
    ASSERT_THAT(ids(models), ElementsAre("a"));
    uint64_t bytes = 0;
    for (const auto& file : models[0].files) bytes += fs::file_size(file);
    EXPECT_EQ(models[0].bytes, bytes);
    EXPECT_EQ(models[0].parameters, 3 * 32u);
    ASSERT_EQ(models[0].files.size(), 3u);
    for (unsigned i = 1; i <= 3; ++i) {
        const auto found = find((root_ / shard_file_name({"ours/a", i, 3})).string());
        ASSERT_TRUE(found) << found.error().message();
        EXPECT_EQ(found->files, models[0].files);
    }
}

TEST_F(Catalog, SaysWhichShardIsMissing) {
    shards("ours/a", 4);
    fs::remove(root_ / "ours/a-00002-of-00004.gguf");
    const auto models = list();
    ASSERT_THAT(ids(models), ElementsAre("a"));
    EXPECT_THAT(models[0].problem, HasSubstr("a-00002-of-00004.gguf"));
    EXPECT_THAT(models[0].problem, HasSubstr("1 missing"));
    EXPECT_EQ(models[0].files.size(), 3u);
    EXPECT_EQ(find("a").error().code, ErrorCode::invalid);
    EXPECT_THAT(failure((root_ / "ours/a-00003-of-00004.gguf").string()), HasSubstr("a-00002-of-00004.gguf"));

    fs::remove(root_ / "ours/a-00001-of-00004.gguf");
    EXPECT_THAT(list()[0].problem, HasSubstr("2 missing, first shard 1"));
}

TEST_F(Catalog, SaysWhichShardIsDamaged) {
    shards("ours/a", 2);
    GgufWriter::write_bytes(root_ / "ours/a-00002-of-00002.gguf", "<html>");
    ASSERT_THAT(ids(list()), ElementsAre("a"));
    EXPECT_THAT(list()[0].problem, HasSubstr("a-00002-of-00002.gguf: expected a GGUF model, found a web page"));
}

TEST_F(Catalog, SaysThatShardsLackTensors) {
    const auto parts = test::tiny_llama().shards(2);
    parts[0].write(root_ / "ours/a-00001-of-00002.gguf");
    GgufWriter(parts[1]).without_last_tensor().write(root_ / "ours/a-00002-of-00002.gguf");
    EXPECT_THAT(list()[0].problem, HasSubstr("expected 11 tensors in all shards, found 10"));
}

// MF09
TEST_F(Catalog, TakesSplitsFromMetadataAndNotFromNames) {
    model("ours/m-00001-of-00013/x.gguf");
    model("ours/m-00001-of-00013-copy.gguf");
    model("ours/y-00002-of-00013.gguf");
    test::listed_shard(0, 2).write(root_ / "ours/renamed.gguf");
    const auto models = list();
    ASSERT_THAT(ids(models), ElementsAre("m-00001-of-00013-copy", "renamed", "x", "y-00002-of-00013"));
    EXPECT_EQ(models[0].problem, "");
    EXPECT_THAT(models[1].problem, HasSubstr("the name 'renamed-00001-of-00002.gguf'"));
    EXPECT_EQ(models[2].problem, "");
    EXPECT_EQ(models[3].problem, "");
    EXPECT_TRUE(find((root_ / "ours/m-00001-of-00013/x.gguf").string()));
}

// MF05
TEST_F(Catalog, ListsDamagedFilesWithTheirProblem) {
    GgufWriter::write_bytes(root_ / "ours/pointer.gguf", "version https://git-lfs.github.com/spec/v1\nsize 9\n");
    GgufWriter::write_bytes(root_ / "ours/lone-00001-of-00002.gguf", "");
    ASSERT_EQ(::mkfifo((root_ / "ours/pipe.gguf").c_str(), 0600), 0);
    fs::create_symlink("nowhere.gguf", root_ / "ours/dangling.gguf");
    fs::create_symlink("self.gguf", root_ / "ours/self.gguf");
    const auto models = list();
    ASSERT_THAT(ids(models), ElementsAre("dangling", "lone-00001-of-00002", "pipe", "pointer", "self"));
    EXPECT_THAT(models[0].problem, HasSubstr("expected a file behind this link"));
    EXPECT_THAT(models[1].problem, HasSubstr("an empty file"));
    EXPECT_THAT(models[2].problem, HasSubstr("no regular file"));
    EXPECT_THAT(models[3].problem, HasSubstr("a Git LFS pointer, not the model"));
    EXPECT_FALSE(models[4].problem.empty());
    EXPECT_EQ(find("pointer").error().code, ErrorCode::invalid);
    EXPECT_THAT(failure("pointer"), HasSubstr("git lfs pull"));
}

TEST_F(Catalog, LeavesOutWhatIsNoModel) {
    GgufWriter adapter, matrix, vocabulary;
    adapter.text("general.type", "adapter").text("general.architecture", "llama").f32_tensor("a", {4});
    adapter.write(root_ / "ours/lora.gguf");
    matrix.text("general.type", "imatrix").f32_tensor("a", {4}).write(root_ / "ours/imatrix.gguf");
    vocabulary.text("general.architecture", "llama").write(root_ / "ours/vocab.gguf");
    GgufWriter::write_bytes(root_ / "ours/readme.md", "text");
    GgufWriter::write_bytes(root_ / "ours/part.gguf.incomplete", "GGUF");
    GgufWriter::write_bytes(root_ / "ours/.hidden.gguf", "GGUF");
    GgufWriter::write_bytes(root_ / "ours/mmproj-damaged.gguf", "GGUF");
    fs::create_directories(root_ / "ours/folder.gguf");
    EXPECT_THAT(ids(list()), IsEmpty());
    EXPECT_THAT(failure((root_ / "ours/lora.gguf").string()), HasSubstr("such as an adapter"));
}

TEST_F(Catalog, GivesProjectorsToTheirModels) {
    model("ours/org/repo/Seer-Q4_K_M.gguf");
    test::listed_projector().write(root_ / "ours/org/repo/mmproj-Seer-F32.gguf");
    test::listed_projector().write(root_ / "ours/org/repo/mmproj-Seer-F16.gguf");
    // loose files: only the name tells
    model("ours/gemma-3-4b-it-Q4_K_M.gguf");
    model("ours/other-Q4_K_M.gguf");
    test::listed_projector().write(root_ / "ours/mmproj-gemma-3-4b-it-f16.gguf");
    // known by its metadata, whatever its name
    test::listed_projector().write(root_ / "ours/solo/vision.gguf");
    const auto models = list();
    ASSERT_THAT(ids(models), ElementsAre("gemma-3-4b-it-Q4_K_M", "org/repo:Q4_K_M", "other-Q4_K_M"));
    EXPECT_EQ(models[0].projector, root_ / "ours/mmproj-gemma-3-4b-it-f16.gguf");
    EXPECT_EQ(models[1].projector, root_ / "ours/org/repo/mmproj-Seer-F16.gguf");
    EXPECT_EQ(models[2].projector, "");
    EXPECT_EQ(find((root_ / "ours/gemma-3-4b-it-Q4_K_M.gguf").string())->projector, models[0].projector);
    EXPECT_THAT(failure((root_ / "ours/solo/vision.gguf").string()), HasSubstr("the projector of one"));
}

TEST_F(Catalog, ReadsTheHuggingFaceCache) {
    const fs::path repository = root_ / "hub/models--org--repo--x";
    const auto add = [&](const std::string& snapshot, const std::string& name, const std::string& blob) {
        listed_model(blob).write(repository / "blobs" / blob);
        fs::create_directories(repository / "snapshots" / snapshot);
        fs::create_symlink("../../blobs/" + blob, repository / "snapshots" / snapshot / name);
    };
    add("aaaa", "m-Q4_K_M.gguf", "b1");
    add("bbbb", "m-Q8_0.gguf", "b2");
    GgufWriter::write_bytes(repository / "refs/main", "aaaa\n");
    GgufWriter::write_bytes(root_ / "hub/datasets--org--set/snapshots/cccc/x.gguf", listed_model().bytes());
    fs::create_directories(root_ / "hub/models--empty--repo/snapshots");
    auto models = list();
    ASSERT_THAT(ids(models), ElementsAre("org/repo--x:Q4_K_M"));
    EXPECT_EQ(models[0].origin, ModelOrigin::hugging_face);
    EXPECT_EQ(models[0].files[0], repository / "snapshots/aaaa/m-Q4_K_M.gguf") << "shards find each other by this name";

    GgufWriter::write_bytes(repository / "refs/main", "bbbb");
    EXPECT_THAT(ids(list()), ElementsAre("org/repo--x:Q8_0"));
    // a name that leads out of the folder, and one that is not there
    for (const char* wrong : {"../../../elsewhere", "dddd", ""}) {
        GgufWriter::write_bytes(repository / "refs/main", wrong);
        EXPECT_EQ(list().size(), 1u) << wrong;
    }
    // a download that was broken off leaves the link without its blob
    GgufWriter::write_bytes(repository / "refs/main", "aaaa");
    fs::remove(repository / "blobs/b1");
    EXPECT_THAT(list()[0].problem, HasSubstr("expected a file behind this link"));
}

TEST_F(Catalog, ReadsLmStudiosFolder) {
    model("lm/org/Model-GGUF/Model-IQ4_XS.gguf");
    const auto models = list();
    ASSERT_THAT(ids(models), ElementsAre("org/Model-GGUF:IQ4_XS"));
    EXPECT_EQ(models[0].origin, ModelOrigin::lm_studio);
}

class Ollama : public Catalog {
protected:
    fs::path blob(char digit, const std::string& bytes) const {
        const fs::path file = root_ / "ollama/blobs" / ("sha256-" + std::string(64, digit));
        GgufWriter::write_bytes(file, bytes);
        return file;
    }
    void manifest(const std::string& place, const std::string& text) const {
        GgufWriter::write_bytes(root_ / "ollama/manifests" / place, text);
    }
    static std::string layer(const std::string& kind, const std::string& digest) {
        return R"({"mediaType":"application/vnd.ollama.image.)" + kind + R"(","digest":")" + digest + R"(","size":1})";
    }
    static std::string digest(char digit) { return "sha256:" + std::string(64, digit); }
};

TEST_F(Ollama, ReadsManifests) {
    const auto first = blob('a', listed_model("A").bytes()), eye = blob('b', test::listed_projector().bytes());
    blob('c', listed_model("C").bytes());
    const std::string layers = "{\"layers\":[" + layer("license", digest('f')) + "," + layer("model", digest('a')) +
                               "," + layer("projector", digest('b')) + "]}";
    manifest("registry.ollama.ai/library/seer/3b", layers);
    manifest("registry.ollama.ai/library/seer/latest", layers);
    manifest("registry.ollama.ai/user/mine/v1", "{\"layers\":[" + layer("model", digest('c')) + "]}");
    manifest("hub.example/user/gone/v1", "{\"layers\":[" + layer("model", digest('d')) + "]}");
    const auto models = list();
    ASSERT_THAT(ids(models), ElementsAre("hub.example/user/gone:v1", "seer:3b", "user/mine:v1"));
    EXPECT_THAT(models[0].problem, HasSubstr("expected a file behind this link"));
    EXPECT_THAT(models[1].files, ElementsAre(first));
    EXPECT_EQ(models[1].projector, eye);
    EXPECT_EQ(models[1].quantization, "Q4_K_M");
    EXPECT_THAT(models[1].aliases, ElementsAre("seer:latest"));
    EXPECT_EQ(find("seer:latest")->id, "seer:3b");
}

TEST_F(Ollama, SurvivesHostileManifests) {
    listed_model().write(root_ / "outside.gguf");
    int number = 0;
    for (const std::string& text :
         {std::string(), std::string("{"), std::string("[]"), std::string("null"), std::string("{\"layers\":7}"),
          std::string("{\"layers\":[7,null,{}]}"), std::string("{\"layers\":[{\"mediaType\":7,\"digest\":[]}]}"),
          "{\"layers\":[" + layer("model", "sha256:../../outside.gguf") + "]}",
          "{\"layers\":[" + layer("model", "sha256:" + std::string(63, 'a') + "/") + "]}",
          "{\"layers\":[" + layer("model", "") + "]}", std::string(2 << 20, '['), std::string(100'000, '['),
          std::string("\xff\xfe{}")})
        manifest("registry.ollama.ai/library/bad/" + std::to_string(number++), text);
    manifest("too/deep/for/a/manifest", "{}");
    manifest("flat", "{}");
    fs::create_symlink("..", root_ / "ollama/manifests/registry.ollama.ai/loop");
    EXPECT_THAT(ids(list()), IsEmpty());
}

TEST_F(Catalog, ListsOneFileOnce) {
    const auto file = model("ours/real.gguf");
    fs::create_hard_link(file, root_ / "ours/twin.gguf");
    fs::create_directories(root_ / "lm/org/repo");
    fs::create_symlink(file, root_ / "lm/org/repo/linked-Q4_K_M.gguf");
    const auto models = list();
    ASSERT_THAT(ids(models), ElementsAre("real"));
    EXPECT_THAT(models[0].aliases, UnorderedElementsAre("twin", "org/repo:Q4_K_M"));
    EXPECT_EQ(find("twin")->id, "real");
    EXPECT_EQ(find("org/repo")->id, "real");
}

TEST_F(Catalog, KeepsIdsApart) {
    model("ours/org/repo/a-Q4_K_M.gguf");
    model("lm/org/repo/a-Q4_K_M.gguf");
    model("ours/x.gguf");
    model("ours/sub/x.gguf");
    const auto models = list();
    EXPECT_THAT(ids(models), ElementsAre("org/repo:Q4_K_M", "org/repo:a-Q4_K_M", "sub/x", "x"));
    EXPECT_EQ(models[0].origin, ModelOrigin::ours);
    EXPECT_EQ(models[1].origin, ModelOrigin::lm_studio);
    EXPECT_EQ(find("org/repo:Q4_K_M")->origin, ModelOrigin::ours);
    EXPECT_EQ(find("x")->files[0], root_ / "ours/x.gguf") << "an exact id is never ambiguous";
}

// A folder that holds /proc, such as "/", must not be searched through it: it leads everywhere again.
TEST_F(Catalog, WhatTheKernelShowsOfItselfIsNotSearched) {
    model("ours/mine.gguf");
    model("elsewhere/other.gguf");
    const fs::path before = fs::current_path();
    fs::current_path(root_ / "elsewhere");
    fs::create_directory_symlink("/proc/self", root_ / "ours/process");
    const bool reachable = fs::exists(root_ / "ours/process/cwd/other.gguf");
    const auto found = ids(list());
    fs::current_path(before);
    ASSERT_TRUE(reachable);
    EXPECT_THAT(found, ElementsAre("mine"));
}

TEST_F(Catalog, SurvivesLoopsAndClosedFolders) {
    model("ours/a/one.gguf");
    fs::create_directory_symlink("..", root_ / "ours/a/up");
    fs::create_directory_symlink(root_ / "ours", root_ / "ours/again");
    model("ours/closed/hidden.gguf");
    fs::permissions(root_ / "ours/closed", fs::perms::none);
    std::string deep = "ours";
    for (int i = 0; i < 30; ++i) deep += "/d";
    model(deep + "/deep.gguf");
    const auto models = ids(list());
    fs::permissions(root_ / "ours/closed", fs::perms::owner_all);
    EXPECT_EQ(std::count(models.begin(), models.end(), "one"), 1);
    // root reads what is closed to others
    EXPECT_LE(models.size(), 2u);
}

TEST_F(Catalog, TakesOddNames) {
    const std::vector<std::string> names = {"with space",    "größe-模型",    "line\nbreak",
                                            "tab\there",     "quote\"'`$(x)", "\xff\xfe raw",
                                            "-leading-dash", "percent%s%n",   "back\\slash"};
    for (const auto& name : names) model("ours/" + name + ".gguf");
    const auto models = list();
    ASSERT_EQ(models.size(), names.size());
    for (const auto& entry : models) {
        EXPECT_EQ(entry.problem, "") << entry.id;
        EXPECT_EQ(entry.id.find('\n'), std::string::npos);
        EXPECT_EQ(entry.id, printable(entry.id));
        EXPECT_EQ(find(entry.id)->files, entry.files) << entry.id;
        EXPECT_EQ(find(entry.files[0].string())->files, entry.files) << "by path: " << entry.id;
    }
}

TEST_F(Catalog, FindsByIdPartRepositoryAndPath) {
    const auto q4 = model("ours/org/Alpha-GGUF/alpha-Q4_K_M.gguf");
    model("ours/org/Alpha-GGUF/alpha-Q8_0.gguf");
    model("ours/org/Beta-GGUF/beta-Q8_0.gguf");
    EXPECT_EQ(find("org/Alpha-GGUF:Q4_K_M")->files[0], q4);
    EXPECT_EQ(find("ORG/alpha-gguf:q4_k_m")->files[0], q4);
    EXPECT_EQ(find("Q4_K_M")->files[0], q4);
    EXPECT_EQ(find("beta")->id, "org/Beta-GGUF:Q8_0");
    EXPECT_EQ(find("org/Beta-GGUF")->id, "org/Beta-GGUF:Q8_0");
    EXPECT_EQ(find(q4.string())->files[0], q4);
    EXPECT_EQ(find(q4.string())->origin, ModelOrigin::path);
    EXPECT_EQ(find(q4.string())->id, "alpha-Q4_K_M");
    EXPECT_EQ(find((root_ / "ours/org/Beta-GGUF").string())->files[0].filename(), "beta-Q8_0.gguf");

    EXPECT_EQ(find("org/Alpha-GGUF").error().code, ErrorCode::usage);
    EXPECT_THAT(failure("alpha"), HasSubstr("say which: org/Alpha-GGUF:Q4_K_M, org/Alpha-GGUF:Q8_0"));
    EXPECT_EQ(find((root_ / "ours/org/Alpha-GGUF").string()).error().code, ErrorCode::usage);
    EXPECT_THAT(failure("alpha-gguf:q4_m"), HasSubstr("did you mean org/Alpha-GGUF:Q4_K_M"));
    EXPECT_EQ(find("alpha-gguf:q4_m").error().code, ErrorCode::not_found);
    EXPECT_THAT(failure("nothing-of-the-kind-at-all"), HasSubstr("1bit pull"));
    EXPECT_EQ(find("").error().code, ErrorCode::usage);
    EXPECT_EQ(find(std::string("a\0b", 3)).error().code, ErrorCode::usage);
    EXPECT_EQ(find(std::string(100'000, 'x')).error().code, ErrorCode::not_found);
    EXPECT_EQ(find("/no/such/file.gguf").error().code, ErrorCode::not_found);
    fs::create_directories(root_ / "void");
    EXPECT_EQ(find((root_ / "void").string()).error().code, ErrorCode::not_found);
}

TEST_F(Catalog, NamesNoFilesToRequests) {
    const auto file = model("elsewhere/secret.gguf");
    model("ours/mine.gguf");
    EXPECT_TRUE(find(file.string()));
    EXPECT_EQ(find_listed_model(file.string(), folders()).error().code, ErrorCode::not_found);
    EXPECT_EQ(find_listed_model("mine", folders())->id, "mine");
}

TEST_F(Catalog, PutsTheBuiltinModelFirst) {
    CatalogFolders all = folders();
    all.builtin = root_ / "builtin";
    model("builtin/small-Q8_0.gguf");
    EXPECT_THAT(ids(list_models(all)), ElementsAre("builtin"));
    model("builtin/onebit-tiny-f16.gguf");
    EXPECT_THAT(ids(list_models(all)), ElementsAre("builtin", "builtin:Q8_0"));
    EXPECT_EQ(find_model("builtin", all)->files[0].filename(), "onebit-tiny-f16.gguf");
    EXPECT_EQ(find_model("builtin", all)->origin, ModelOrigin::builtin);
}

TEST_F(Catalog, ReadsAHeadOnceUntilItsFileChanges) {
    const auto file = model("ours/a.gguf", "First");
    const uint64_t before = head_reads();
    EXPECT_EQ(list()[0].name, "First");
    EXPECT_EQ(head_reads(), before + 1);
    EXPECT_EQ(list()[0].name, "First");
    EXPECT_EQ(find("a")->name, "First");
    EXPECT_EQ(head_reads(), before + 1);
    model("ours/a.gguf", "Second longer");
    EXPECT_EQ(list()[0].name, "Second longer");
    // damaged heads are kept too
    GgufWriter::write_bytes(file, "text");
    const uint64_t then = head_reads();
    EXPECT_NE(list()[0].problem, "");
    EXPECT_NE(list()[0].problem, "");
    EXPECT_EQ(head_reads(), then + 1);
}

TEST_F(Catalog, ListsTenThousandFiles) {
    const std::string bytes = listed_model().bytes();
    fs::create_directories(root_ / "ours");
    for (int i = 0; i < 10'000; ++i) GgufWriter::write_bytes(root_ / ("ours/m" + std::to_string(i) + ".gguf"), bytes);
    EXPECT_EQ(list().size(), 10'000u);
    const uint64_t before = head_reads();
    EXPECT_EQ(list().size(), 10'000u);
    EXPECT_EQ(head_reads(), before);
}

TEST_F(Catalog, ListsFromManyThreadsWhileFilesChange) {
    for (int i = 0; i < 20; ++i) model("ours/m" + std::to_string(i) + ".gguf");
    std::atomic<bool> stop{false};
    std::thread writer([&] {
        for (int i = 0; !stop; ++i) model("ours/m3.gguf", std::string(static_cast<size_t>(i % 50), 'x'));
    });
    std::vector<std::thread> readers;
    std::atomic<int> wrong{0};
    for (int t = 0; t < 4; ++t)
        readers.emplace_back([&] {
            for (int i = 0; i < 50; ++i) wrong += list().size() != 20;
        });
    for (auto& reader : readers) reader.join();
    stop = true;
    writer.join();
    EXPECT_EQ(wrong, 0);
}

TEST(CatalogFoldersOfUser, FollowTheEnvironment) {
    const ScratchFolder home;
    for (const char* name : {"HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE", "HF_HOME", "XDG_CACHE_HOME", "OLLAMA_MODELS",
                             "LMSTUDIO_HOME", "ONEBIT_MODELS", "XDG_DATA_HOME"})
        ::unsetenv(name);
    ::setenv("HOME", home.path().c_str(), 1);
    EXPECT_EQ(CatalogFolders::of_this_user().hugging_face, home / ".cache/huggingface/hub");
    EXPECT_EQ(CatalogFolders::of_this_user().lm_studio, "");
    fs::create_directories(home / ".cache/lm-studio/models");
    EXPECT_EQ(CatalogFolders::of_this_user().lm_studio, home / ".cache/lm-studio/models");
    fs::create_directories(home / ".lmstudio/models");
    EXPECT_EQ(CatalogFolders::of_this_user().lm_studio, home / ".lmstudio/models");
    fs::create_directories(home / ".ollama/models");
    EXPECT_EQ(CatalogFolders::of_this_user().ollama, home / ".ollama/models");
    ::setenv("XDG_CACHE_HOME", "/x", 1);
    EXPECT_EQ(CatalogFolders::of_this_user().hugging_face, "/x/huggingface/hub");
    ::setenv("HF_HOME", "/h", 1);
    EXPECT_EQ(CatalogFolders::of_this_user().hugging_face, "/h/hub");
    ::setenv("HF_HUB_CACHE", "/hub", 1);
    EXPECT_EQ(CatalogFolders::of_this_user().hugging_face, "/hub");
    ::setenv("OLLAMA_MODELS", "/o", 1);
    ::setenv("LMSTUDIO_HOME", "/l", 1);
    ::setenv("ONEBIT_MODELS", "/m", 1);
    EXPECT_EQ(CatalogFolders::of_this_user().ollama, "/o");
    EXPECT_EQ(CatalogFolders::of_this_user().lm_studio, "/l/models");
    EXPECT_EQ(CatalogFolders::of_this_user().ours, "/m");
}

TEST(CatalogNames, ReadsQuantizations) {
    EXPECT_EQ(quantization_in_name("Qwen3-0.6B-Q4_K_M"), "Q4_K_M");
    EXPECT_EQ(quantization_in_name("model.q8_0"), "Q8_0");
    EXPECT_EQ(quantization_in_name("x-UD-Q2_K_XL"), "UD-Q2_K_XL");
    EXPECT_EQ(quantization_in_name("x-iq3_xxs"), "IQ3_XXS");
    EXPECT_EQ(quantization_in_name("x-TQ1_0"), "TQ1_0");
    EXPECT_EQ(quantization_in_name("onebit-tiny-f16"), "F16");
    EXPECT_EQ(quantization_in_name("x-BF16"), "BF16");
    EXPECT_EQ(quantization_in_name("gpt-oss-20b-MXFP4"), "MXFP4");
    EXPECT_EQ(quantization_in_name("Q4_K_M"), "Q4_K_M");
    EXPECT_EQ(quantization_in_name("Qwen3-4B"), "");
    EXPECT_EQ(quantization_in_name("plain"), "");
    EXPECT_EQ(quantization_in_name(""), "");
}

TEST(CatalogNames, ReadsShards) {
    EXPECT_EQ(parse_shard_name("a-b-00002-of-00010.gguf")->prefix, "a-b");
    EXPECT_EQ(parse_shard_name("a-b-00002-of-00010.gguf")->number, 2u);
    EXPECT_EQ(parse_shard_name("a-b-00002-of-00010.gguf")->count, 10u);
    EXPECT_EQ(shard_file_name({"a", 1, 3}), "a-00001-of-00003.gguf");
    for (const char* wrong : {"", ".gguf", "-00001-of-00002.gguf", "a-00000-of-00002.gguf", "a-00003-of-00002.gguf",
                              "a-1-of-2.gguf", "a-00001-of-00002.GGUF", "a-00001-of-00002", "a-0000x-of-00002.gguf"})
        EXPECT_FALSE(parse_shard_name(wrong)) << wrong;
}

}  // namespace
}  // namespace onebit
