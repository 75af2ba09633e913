// If this fails, models are downloaded again although they are here, half replaced, or lost when an update fails.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/file.h>

#include <thread>

#include "base/unique_fd.h"
#include "tests/server/pull_fixture.h"

namespace onebit::test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// How often a part occurs in what a call wrote to the log.
int occurrences(const std::string& text, const std::string& part) {
    int count = 0;
    for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
    return count;
}

TEST_F(PullTest, BringsAModelAndTellsItsProgress) {
    const std::string model = small_model(20000);
    hub.add(kFile, model);
    hub.add("README.md", "text");
    std::vector<uint64_t> done;
    const auto caller = std::this_thread::get_id();
    options.progress = [&](const std::string& file, uint64_t bytes, uint64_t total) {
        EXPECT_EQ(file, kFile);
        EXPECT_EQ(total, model.size());
        EXPECT_EQ(std::this_thread::get_id(), caller);
        done.push_back(bytes);
    };
    const auto entry = pull();
    ASSERT_TRUE(entry.ok()) << entry.error().message();
    EXPECT_EQ(entry->id, "org/repo:Q4_K_M");
    EXPECT_EQ(entry->origin, ModelOrigin::ours);
    EXPECT_THAT(entry->files, ElementsAre(target()));
    EXPECT_TRUE(entry->projector.empty());
    EXPECT_EQ(read_file(target()), model);
    EXPECT_EQ(left(), whole());
    EXPECT_TRUE(std::is_sorted(done.begin(), done.end()));
    ASSERT_FALSE(done.empty());
    EXPECT_EQ(done.back(), model.size());
}

TEST_F(PullTest, WithoutAQuantAndByFile) {
    hub.add(kFile, small_model(10));
    hub.add("Model-F16.gguf", small_model(20));
    ASSERT_TRUE(pull("org/repo").ok());
    EXPECT_TRUE(fs::exists(target()));
    EXPECT_FALSE(fs::exists(target("Model-F16.gguf")));
    ASSERT_TRUE(pull("org/repo/Model-F16.gguf").ok());
    EXPECT_TRUE(fs::exists(target("Model-F16.gguf")));
}

TEST_F(PullTest, AnotherCaseOfTheNameLandsInTheHubsFolder) {
    hub.id = "Org/Repo";
    hub.add(kFile, small_model(10));
    hub.fault = [&](const HubCall& call, int) -> std::optional<HubAnswer> {
        HubCall exact = call;
        for (const char* wrong : {"/org/repo"})
            if (const size_t at = exact.path.find(wrong); at != std::string::npos)
                exact.path.replace(at, 9, "/Org/Repo");
        return hub.right_answer(exact);
    };
    const auto entry = pull("org/repo:q4_k_m");
    ASSERT_TRUE(entry.ok()) << entry.error().message();
    EXPECT_EQ(entry->files.front(), folders.ours / "Org/Repo" / kFile);
    const size_t calls = hub.calls().size();
    EXPECT_TRUE(pull("ORG/REPO:Q4_K_M").ok());
    EXPECT_EQ(hub.calls().size(), calls);
}

// MF23
TEST_F(PullTest, MF23_ACopyOnDiskNeedsNoNetwork) {
    hub.add(kFile, small_model(10));
    ASSERT_TRUE(pull().ok());
    hub.stop();
    options.timing.first_delay = options.timing.longest_delay = std::chrono::hours(1);  // any retry would hang the test
    for (const bool update : {false, true}) {
        for (const bool offline : {false, true}) {
            options.update = update;
            options.offline = offline;
            for (const char* name : {"org/repo", "org/repo:Q4_K_M", "org/repo/Model-Q4_K_M.gguf"}) {
                const auto entry = pull(name);
                ASSERT_TRUE(entry.ok()) << name << ": " << entry.error().message();
                EXPECT_EQ(entry->files.front(), target());
            }
        }
    }
}

TEST_F(PullTest, OfflineWithoutACopyIsNotFoundAndAsksNobody) {
    hub.add(kFile, small_model(10));
    options.offline = true;
    const auto entry = pull();
    EXPECT_ERROR(entry, ErrorCode::not_found);
    EXPECT_THAT(entry.error().message(), HasSubstr("--offline"));
    EXPECT_THAT(hub.calls(), IsEmpty());
    EXPECT_FALSE(fs::exists(folders.ours));
}

TEST_F(PullTest, ACopyOfASimilarNameIsNoCopy) {
    hub.add(kFile, small_model(10));
    write_file(folders.ours / "org/repo-large/Model-Q4_K_M.gguf", small_model(10));
    write_file(folders.ours / "org/repo/Model-Q4_K_S.gguf", small_model(10));
    options.offline = true;
    EXPECT_ERROR(pull(), ErrorCode::not_found);
}

TEST_F(PullTest, SeveralCopiesWithoutAQuantAreTheDefaultOrAQuestion) {
    for (const char* quant : {"F16", "Q3_K_S"})
        write_file(target(std::string("Model-") + quant + ".gguf"), small_model(10));
    options.offline = true;
    const auto entry = pull("org/repo");
    EXPECT_ERROR(entry, ErrorCode::usage);
    EXPECT_THAT(entry.error().message(), HasSubstr("org/repo:F16, org/repo:Q3_K_S"));
    write_file(target("Model-Q8_0.gguf"), small_model(10));
    const auto chosen = pull("org/repo");
    ASSERT_TRUE(chosen.ok()) << chosen.error().message();
    EXPECT_EQ(chosen->id, "org/repo:Q8_0");
}

TEST_F(PullTest, TwoModelsOfOneQuantInOneRepositoryAreToldApart) {
    hub.add("A-1b-Q8_0.gguf", small_model(10, 'a'));
    hub.add("A-3b-Q8_0.gguf", small_model(20, 'b'));
    for (const char* name : {"A-1b-Q8_0.gguf", "A-3b-Q8_0.gguf", "A-1b-Q8_0.gguf"}) {
        const auto entry = pull(std::string("org/repo/") + name);
        ASSERT_TRUE(entry.ok()) << entry.error().message();
        EXPECT_EQ(entry->files.front(), target(name));
    }
    EXPECT_EQ(hub.file_calls().size(), 2u);
}

TEST_F(PullTest, TakesTheCopyOfTheHuggingFaceCache) {
    const std::string model = small_model(100), digest = to_hex(sha256(std::string_view(model)));
    folders.hugging_face = root / "hf";
    const fs::path repo = folders.hugging_face / "models--org--repo";
    write_file(repo / "blobs" / digest, model);
    write_file(repo / "refs/main", hub.revision);
    fs::create_directories(repo / "snapshots" / hub.revision);
    fs::create_symlink("../../blobs/" + digest, repo / "snapshots" / hub.revision / kFile);
    hub.add(kFile, model);
    auto entry = pull();
    ASSERT_TRUE(entry.ok()) << entry.error().message();
    EXPECT_EQ(entry->origin, ModelOrigin::hugging_face);
    EXPECT_THAT(hub.calls(), IsEmpty());
    options.update = true;
    entry = pull();
    ASSERT_TRUE(entry.ok()) << entry.error().message();
    EXPECT_EQ(entry->origin, ModelOrigin::hugging_face);
    EXPECT_THAT(hub.file_calls(), IsEmpty());
}

// MF21
TEST_F(PullTest, MF21_AHubWithATroubleIsOneWarningWhileACopyExists) {
    const std::string model = small_model(10);
    hub.add(kFile, model);
    ASSERT_TRUE(pull().ok());
    options.update = true;
    options.timing.read_timeout = std::chrono::milliseconds(100);
    for (const int status : {429, 500, 502, 503, 504, 0}) {
        hub.fault = [&](const HubCall&, int) {
            // 0: the answer never comes
            if (status == 0)
                return std::optional(HubAnswer{.body = "[]", .before_piece = [&](size_t) {
                                                   while (!hub.stopping() && hub.calls().size() < 1000)
                                                       std::this_thread::sleep_for(std::chrono::milliseconds(5));
                                               }});
            return std::optional(HubAnswer{.status = status});
        };
        if (status == 0) options.timing.read_timeout = std::chrono::milliseconds(100);
        testing::internal::CaptureStderr();
        const auto entry = pull();
        const std::string log = testing::internal::GetCapturedStderr();
        ASSERT_TRUE(entry.ok()) << status << ": " << entry.error().message();
        EXPECT_EQ(read_file(entry->files.front()), model);
        EXPECT_EQ(occurrences(log, "\n"), 1) << log;
        EXPECT_THAT(log, HasSubstr("warning"));
    }
}

TEST_F(PullTest, AnUpdateOfTheSameVersionDownloadsNothing) {
    hub.add(kFile, small_model(10));
    ASSERT_TRUE(pull().ok());
    options.update = true;
    ASSERT_TRUE(pull().ok());
    EXPECT_EQ(hub.file_calls().size(), 1u);
}

TEST_F(PullTest, AFileThatThePersonPutThereIsTakenByItsDigest) {
    const std::string model = small_model(10);
    hub.add(kFile, model);
    write_file(target(), model);
    options.update = true;
    ASSERT_TRUE(pull().ok());
    EXPECT_THAT(hub.file_calls(), IsEmpty());
    hub.files[0].bytes = small_model(10, 'y');
    ASSERT_TRUE(pull().ok());
    EXPECT_EQ(read_file(target()), hub.files[0].bytes);
}

TEST_F(PullTest, ADamagedCopyIsReplaced) {
    const std::string model = small_model(1000);
    hub.add(kFile, model);
    ASSERT_TRUE(pull().ok());
    fs::resize_file(target(), model.size() / 2);
    const auto entry = pull();
    ASSERT_TRUE(entry.ok()) << entry.error().message();
    EXPECT_EQ(read_file(target()), model);
}

// MF22
TEST_F(PullTest, MF22_TheOldCopyStaysUntilTheNewOneIsVerified) {
    const std::string old_model = small_model(20000, 'o'), new_model = small_model(20000, 'n');
    hub.add(kFile, old_model);
    ASSERT_TRUE(pull().ok());
    hub.files[0].bytes = new_model;
    hub.revision = std::string(40, 'b');
    options.update = true;
    bool seen = false;
    options.progress = [&](const std::string&, uint64_t, uint64_t) {
        seen = true;
        EXPECT_EQ(read_file(target()), old_model);
    };
    ASSERT_TRUE(pull().ok());
    EXPECT_TRUE(seen);
    EXPECT_EQ(read_file(target()), new_model);
    EXPECT_EQ(left(), whole());
}

// MF22
TEST_F(PullTest, MF22_TheOldCopyStaysWhenAnUpdateFails) {
    const std::string old_model = small_model(20000, 'o'), new_model = small_model(20000, 'n');
    hub.add(kFile, old_model);
    ASSERT_TRUE(pull().ok());
    hub.files[0].bytes = new_model;
    options.update = true;
    const auto file_fault = [&](HubAnswer answer) {
        hub.fault = [answer](const HubCall& call, int) {
            return call.is_file() ? std::optional(answer) : std::nullopt;
        };
    };
    file_fault({.body = small_model(20000, 'z')});
    EXPECT_ERROR(pull(), ErrorCode::invalid);
    EXPECT_EQ(read_file(target()), old_model);
    EXPECT_EQ(left(), whole());
    file_fault({.status = 404});
    EXPECT_ERROR(pull(), ErrorCode::not_found);
    EXPECT_EQ(read_file(target()), old_model);
    file_fault({.body = new_model, .cut = 1000});
    EXPECT_TRUE(pull().ok());  // the hub is in trouble: the copy will do
    EXPECT_EQ(read_file(target()), old_model);
}

TEST_F(PullTest, ThreeShardsAndAProjectorAppearTogether) {
    std::vector<std::string> names;
    for (uint16_t shard = 0; shard < 3; ++shard) {
        names.push_back("Q8_0/Model-Q8_0-0000" + std::to_string(shard + 1) + "-of-00003.gguf");
        hub.add(names.back(), small_model(1000, static_cast<char>('a' + shard), shard, 3));
    }
    hub.add("mmproj-F32.gguf", small_model(50, 'p', 0, 1, "clip"));
    hub.add("mmproj-F16.gguf", small_model(60, 'p', 0, 1, "clip"));
    bool second_fails = true;
    hub.fault = [&](const HubCall& call, int) -> std::optional<HubAnswer> {
        if (second_fails && call.is_file() && call.path.ends_with(names[1])) return HubAnswer{.status = 500};
        return std::nullopt;
    };
    EXPECT_ERROR(pull("org/repo"), ErrorCode::unavailable);
    for (const std::string& name : names) EXPECT_FALSE(fs::exists(target(name)));
    EXPECT_TRUE(fs::exists(partial(names[0])));
    EXPECT_FALSE(fs::exists(partial(names[1])));

    second_fails = false;
    const auto entry = pull("org/repo");
    ASSERT_TRUE(entry.ok()) << entry.error().message();
    EXPECT_THAT(entry->files, ElementsAre(target(names[0]), target(names[1]), target(names[2])));
    EXPECT_EQ(entry->projector, target("mmproj-F16.gguf"));
    EXPECT_EQ(entry->id, "org/repo:Q8_0");
    int first = 0;
    for (const HubCall& call : hub.file_calls()) first += call.path.ends_with(names[0]);
    EXPECT_EQ(first, 1);  // the first shard was not asked for again
    EXPECT_THAT(read_file(folders.ours / "org/repo/.pull.json"), HasSubstr("mmproj-F16.gguf"));
}

TEST_F(PullTest, ASetWithAnotherNumberOfShardsReplacesTheOld) {
    for (uint16_t shard = 0; shard < 2; ++shard)
        hub.add("Model-Q8_0-0000" + std::to_string(shard + 1) + "-of-00002.gguf", small_model(100, 'a', shard, 2));
    ASSERT_TRUE(pull("org/repo").ok());
    hub.files.clear();
    hub.add("Model-Q8_0.gguf", small_model(200, 'b'));
    options.update = true;
    const auto entry = pull("org/repo");
    ASSERT_TRUE(entry.ok()) << entry.error().message();
    EXPECT_THAT(left(), ElementsAre("org", "org/repo", "org/repo/Model-Q8_0.gguf"));
}

TEST_F(PullTest, ACrashBetweenTheRenamesIsMadeGood) {
    const std::string first = "Model-Q8_0-00001-of-00002.gguf", second = "Model-Q8_0-00002-of-00002.gguf";
    const std::string one = small_model(100, 'n', 0, 2), two = small_model(100, 'n', 1, 2);
    hub.add(first, one);
    hub.add(second, two);
    // as an update leaves it that died after the first rename
    write_file(target(first), one);
    write_file(target(second), small_model(100, 'o', 1, 2));
    write_file(partial(second), two);
    const std::string digest = to_hex(sha256(std::string_view(two)));
    write_file(partial(second).string() + ".json",
               nlohmann::json{{"etag", digest}, {"sha256", digest}, {"size", two.size()}, {"verified", true}}.dump());
    write_file(folders.ours / "org/repo/.pull-publish.json",
               nlohmann::json{{"publish", {first, second, "../../outside.gguf"}}, {"record", nlohmann::json::object()}}
                   .dump());
    options.offline = true;
    const auto entry = pull("org/repo");
    ASSERT_TRUE(entry.ok()) << entry.error().message();
    EXPECT_EQ(read_file(target(second)), two);
    EXPECT_THAT(left(), ElementsAre("org", "org/repo", "org/repo/" + first, "org/repo/" + second));
}

// UX14
TEST_F(PullTest, UX14_TheLockFileOfADeadProcessDoesNotBlock) {
    hub.add(kFile, small_model(10));
    write_file(folders.ours / "org/repo/.pull.lock", "999999999\n");
    ASSERT_TRUE(pull().ok());
    EXPECT_EQ(left(), whole());
}

TEST_F(PullTest, WaitsForAnotherHolderAndCanBeCancelled) {
    hub.add(kFile, small_model(10));
    const fs::path path = folders.ours / "org/repo/.pull.lock";
    write_file(path, "1\n");
    UniqueFd fd(::open(path.c_str(), O_RDWR | O_CLOEXEC));
    ASSERT_EQ(::flock(fd.get(), LOCK_EX), 0);
    options.cancel = &cancel;
    const auto when_called = [&](size_t calls, auto action) {
        return std::thread([&, calls, action] {
            while (hub.calls().size() < calls) std::this_thread::sleep_for(std::chrono::milliseconds(1));
            action();
        });
    };
    std::thread person = when_called(2, [&] { cancel = true; });
    const auto entry = pull();
    person.join();
    EXPECT_ERROR(entry, ErrorCode::cancelled);
    EXPECT_THAT(hub.file_calls(), IsEmpty());
    cancel = false;
    std::thread holder = when_called(hub.calls().size() + 2, [&] { fd.reset(); });
    const auto second = pull();
    holder.join();
    ASSERT_TRUE(second.ok()) << second.error().message();
}

TEST_F(PullTest, ManyThreadsPullOneModelOnce) {
    const std::string model = small_model(20000);
    hub.add(kFile, model);
    std::vector<std::thread> threads;
    std::atomic<int> good{0};
    for (int i = 0; i < 4; ++i)
        threads.emplace_back([&] {
            const auto entry = pull();
            if (entry.ok() && read_file(entry->files.front()) == model) ++good;
        });
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(good, 4);
    EXPECT_EQ(hub.file_calls().size(), 1u);
    EXPECT_EQ(left(), whole());
}

TEST_F(PullTest, SendsTheTokenAndNeverPrintsIt) {
    hub.add(kFile, small_model(10));
    options.token = "hf_secret";
    ASSERT_TRUE(pull().ok());
    for (const HubCall& call : hub.calls()) EXPECT_EQ(call.header("authorization"), "Bearer hf_secret");
    options.token = "hf_secret\r\nX-Other: 1";
    options.update = true;
    const auto entry = pull();
    EXPECT_ERROR(entry, ErrorCode::usage);
    EXPECT_EQ(entry.error().message().find("secret"), std::string::npos);
}

TEST_F(PullTest, FollowsThePagesOfAListing) {
    hub.add(kFile, small_model(10));
    hub.fault = [&](const HubCall& call, int) -> std::optional<HubAnswer> {
        if (!call.is_tree() || call.path.ends_with("cursor=2")) return std::nullopt;
        HubAnswer first =
            FaultyHub::json_answer(nlohmann::json::array({FaultyHub::tree_entry("Other-Q8_0.gguf", "x")}));
        first.headers.emplace_back("Link", "<" + hub.url() + "/api/models/org/repo/tree/" + hub.revision +
                                               "?recursive=true&cursor=2>; rel=\"next\"");
        return first;
    };
    EXPECT_TRUE(pull().ok());
}

TEST_F(PullTest, UsesTheFolderOfTheEnvironment) {
    ::setenv("ONEBIT_MODELS", (root / "elsewhere").c_str(), 1);
    folders.ours.clear();
    hub.add(kFile, small_model(10));
    const auto entry = pull();
    ::unsetenv("ONEBIT_MODELS");
    ASSERT_TRUE(entry.ok()) << entry.error().message();
    EXPECT_EQ(entry->files.front(), root / "elsewhere/org/repo" / kFile);
}

}  // namespace
}  // namespace onebit::test
