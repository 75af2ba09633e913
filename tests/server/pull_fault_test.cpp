// If this fails, a fault of the network or a hostile hub leaves a wrong file, a partial without use, or a hang.
#include <gmock/gmock.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/server/pull_fixture.h"

namespace onebit::test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class PullFault : public PullTest {
protected:
    const std::string model = small_model(20000);
    void SetUp() override {
        PullTest::SetUp();
        hub.add(kFile, model);
    }
    // The answers to the requests of the file, in turn; a good one where there is none or nullopt.
    void file_answers(std::vector<std::optional<HubAnswer>> answers) {
        hub.fault = [answers = std::move(answers)](const HubCall& call, int before) -> std::optional<HubAnswer> {
            if (!call.is_file() || static_cast<size_t>(before) >= answers.size()) return std::nullopt;
            return answers[static_cast<size_t>(before)];
        };
    }
    void always(std::function<bool(const HubCall&)> which, HubAnswer answer) {
        hub.fault = [=](const HubCall& call, int) { return which(call) ? std::optional(answer) : std::nullopt; };
    }
    void expect_whole() {
        const auto entry = pull();
        ASSERT_TRUE(entry.ok()) << entry.error().message();
        EXPECT_EQ(read_file(target()), model);
        EXPECT_EQ(left(), whole());
    }
    // An error that nothing can be resumed after: the models folder is as before.
    void expect_nothing_left(ErrorCode code, const std::string& part = "",
                             const std::string& reference = "org/repo:Q4_K_M") {
        const auto entry = pull(reference);
        EXPECT_ERROR(entry, code);
        EXPECT_THAT(entry.error().message(), HasSubstr(part));
        EXPECT_THAT(left(), IsEmpty());
    }
};

TEST_F(PullFault, UnknownRepository) { expect_nothing_left(ErrorCode::not_found, "org/other", "org/other"); }

TEST_F(PullFault, GatedRepositoryNamesTheToken) {
    for (const int status : {401, 403}) {
        always([](const HubCall& call) { return call.is_model(); },
               {.status = status, .headers = {{"X-Error-Code", "GatedRepo"}}});
        expect_nothing_left(ErrorCode::not_found, "HF_TOKEN");
        always([](const HubCall& call) { return call.is_file(); },
               {.status = status, .headers = {{"X-Error-Code", "GatedRepo"}}});
        expect_nothing_left(ErrorCode::not_found, "GatedRepo");
    }
    EXPECT_EQ(hub.file_calls().size(), 2u);  // no second try
}

TEST_F(PullFault, UnknownQuantListsWhatThereIs) {
    hub.add("Model-F16.gguf", small_model(1));
    expect_nothing_left(ErrorCode::not_found, "one of F16, Q4_K_M", "org/repo:Q2_K");
}

TEST_F(PullFault, TooManyRequests) {
    always([](const HubCall&) { return true; }, {.status = 429});
    expect_nothing_left(ErrorCode::unavailable, "429");
    EXPECT_EQ(hub.calls().size(), 3u);  // as many tries as asked for
}

TEST_F(PullFault, ALongRetryAfterIsToldAndNotWaitedFor) {
    always([](const HubCall&) { return true; }, {.status = 429, .headers = {{"Retry-After", "3600"}}});
    expect_nothing_left(ErrorCode::unavailable, "in 3600 s");
    EXPECT_EQ(hub.calls().size(), 1u);
    always([](const HubCall&) { return true; },
           {.status = 429, .headers = {{"Retry-After", "Wed, 21 Oct 2150 07:28:00 GMT"}}});
    expect_nothing_left(ErrorCode::unavailable, "429");
    EXPECT_EQ(hub.calls().size(), 2u);
}

TEST_F(PullFault, AShortRetryAfterIsWaitedFor) {
    hub.fault = [](const HubCall& call, int before) -> std::optional<HubAnswer> {
        if (before > 0 || call.is_tree()) return std::nullopt;
        // a date in the past, and one that cannot be read, mean at once
        return HubAnswer{.status = 429,
                         .headers = {{"Retry-After", call.is_file() ? "soon" : "Wed, 21 Oct 2015 07:28:00 GMT"}}};
    };
    expect_whole();
}

TEST_F(PullFault, AServerErrorThatStays) {
    file_answers({HubAnswer{.status = 500}, HubAnswer{.status = 500}, HubAnswer{.status = 500}});
    expect_nothing_left(ErrorCode::unavailable, "500");
    EXPECT_EQ(hub.file_calls().size(), 3u);
}

TEST_F(PullFault, AServerErrorThatPasses) {
    file_answers({HubAnswer{.status = 500}, HubAnswer{.status = 503}});
    expect_whole();
}

TEST_F(PullFault, ConnectionRefused) {
    hub.stop();
    expect_nothing_left(ErrorCode::unavailable, std::to_string(hub.port()));
}

TEST_F(PullFault, NameThatDoesNotExist) {
    options.hub = "http://hub.invalid";
    options.timing.attempts = 1;
    expect_nothing_left(ErrorCode::unavailable, "hub.invalid");
}

TEST_F(PullFault, AddressThatIsNone) {
    for (const char* address : {"hub", "ftp://hub", "http://user:pass@hub", "http://hub/?a=1"}) {
        options.hub = address;
        expect_nothing_left(ErrorCode::usage, "hub");
    }
}

TEST_F(PullFault, ResumesInOneCallAfterTheConnectionBroke) {
    for (const size_t cut : {size_t{0}, model.size() / 2, model.size() - 1}) {
        fs::remove_all(folders.ours);
        const size_t calls = hub.file_calls().size();
        hub.fault = [&, first = true](const HubCall& call, int) mutable -> std::optional<HubAnswer> {
            if (!call.is_file() || !std::exchange(first, false)) return std::nullopt;
            return HubAnswer{.body = model, .cut = cut};
        };
        expect_whole();
        ASSERT_EQ(hub.file_calls().size(), calls + 2);
        EXPECT_EQ(hub.file_calls().back().header("range"), cut == 0 ? "" : "bytes=" + std::to_string(cut) + "-");
    }
}

TEST_F(PullFault, ResumesInALaterCall) {
    HubAnswer broken{.body = model, .cut = model.size() / 2};
    HubAnswer silent{.silent = true};
    file_answers({broken, silent, silent});
    EXPECT_ERROR(pull(), ErrorCode::unavailable);
    EXPECT_EQ(left(), kept());
    EXPECT_EQ(read_file(partial()), model.substr(0, model.size() / 2));
    expect_whole();
    EXPECT_EQ(hub.file_calls().back().header("range"), "bytes=" + std::to_string(model.size() / 2) + "-");
}

TEST_F(PullFault, AnAnswerWithoutLengthThatEndsEarlyIsResumed) {
    file_answers({HubAnswer{.body = model, .cut = 1000, .say_length = false}});
    expect_whole();
    EXPECT_EQ(hub.file_calls().back().header("range"), "bytes=1000-");
}

TEST_F(PullFault, AClosedConnectionWithoutAnAnswer) {
    file_answers({HubAnswer{.silent = true}, HubAnswer{.silent = true}, HubAnswer{.silent = true}});
    expect_nothing_left(ErrorCode::unavailable);
    expect_whole();
}

TEST_F(PullFault, RangeIgnored) {
    leave_partial(model.substr(0, 5000), model);
    file_answers({HubAnswer{.body = model}});
    expect_whole();
    EXPECT_EQ(hub.file_calls()[0].header("range"), "bytes=5000-");
}

TEST_F(PullFault, AnotherRangeThanAskedFor) {
    leave_partial(model.substr(0, 5000), model);
    const std::string total = std::to_string(model.size());
    HubAnswer wrong{.status = 206,
                    .headers = {{"Content-Range", "bytes 4000-" + std::to_string(model.size() - 1) + "/" + total}},
                    .body = model.substr(4000)};
    file_answers({wrong});
    expect_nothing_left(ErrorCode::invalid, "bytes 4000-");
    for (const char* range : {"", "bytes", "bytes x-y/z", "bytes 9-5/10", "bytes 5000-99999999999999999999/5"}) {
        leave_partial(model.substr(0, 5000), model);
        always([](const HubCall& call) { return call.is_file(); },
               {.status = 206, .headers = {{"Content-Range", range}}, .body = "x"});
        expect_nothing_left(ErrorCode::invalid);
    }
}

// MF25
TEST_F(PullFault, MF25_APartialLongerThanTheFileIsDroppedWithOneWarning) {
    leave_partial(model + "more", model);
    testing::internal::CaptureStderr();
    expect_whole();
    const std::string log = testing::internal::GetCapturedStderr();
    EXPECT_EQ(std::count(log.begin(), log.end(), '\n'), 1) << log;
    EXPECT_EQ(hub.file_calls()[0].header("range"), "");
}

// MF25
TEST_F(PullFault, MF25_ARangeThatIsRefusedIsStartedAgainOnce) {
    leave_partial(model.substr(0, 5000), model);
    file_answers({HubAnswer{.status = 416}});
    testing::internal::CaptureStderr();
    expect_whole();
    const std::string log = testing::internal::GetCapturedStderr();
    EXPECT_EQ(std::count(log.begin(), log.end(), '\n'), 1) << log;
    fs::remove_all(folders.ours);
    always([](const HubCall& call) { return call.is_file(); }, {.status = 416});
    expect_nothing_left(ErrorCode::invalid, "416");
}

TEST_F(PullFault, APartialOfTheSameLengthIsOnlyVerified) {
    leave_partial(model, model);
    expect_whole();
    EXPECT_THAT(hub.file_calls(), IsEmpty());
}

TEST_F(PullFault, APartialOfAnotherVersionIsDropped) {
    leave_partial(small_model(20000, 'o').substr(0, 5000), small_model(20000, 'o'));
    expect_whole();
    EXPECT_EQ(hub.file_calls()[0].header("range"), "");
}

TEST_F(PullFault, APartialWithoutOrWithADamagedRecordIsDropped) {
    for (const char* record : {"", "{", "[]", "{\"size\":-1}", "{\"size\":\"x\",\"etag\":7}"}) {
        fs::remove_all(folders.ours);
        write_file(partial(), model.substr(0, 5000));
        if (*record) write_file(partial().string() + ".json", record);
        expect_whole();
        EXPECT_EQ(hub.file_calls().back().header("range"), "") << record;
    }
}

TEST_F(PullFault, ADamagedPartialIsStartedAgain) {
    leave_partial(std::string(5000, 'z'), model);
    expect_whole();
    EXPECT_EQ(hub.file_calls().size(), 2u);
}

TEST_F(PullFault, TheVersionChangedBetweenListAndFile) {
    file_answers({HubAnswer{.headers = {{"X-Linked-Etag", "\"" + std::string(64, 'f') + "\""}}, .body = model}});
    expect_nothing_left(ErrorCode::invalid, "changed on the hub");
}

TEST_F(PullFault, WrongDigest) {
    std::string other = model;
    other.back() = static_cast<char>(other.back() ^ 1);
    always([](const HubCall& call) { return call.is_file(); }, {.body = other});
    expect_nothing_left(ErrorCode::invalid, to_hex(sha256(std::string_view(model))));
}

TEST_F(PullFault, MoreOrLessThanDeclared) {
    for (const bool say_length : {true, false}) {
        always([](const HubCall& call) { return call.is_file(); }, {.body = model + "x", .say_length = say_length});
        expect_nothing_left(ErrorCode::invalid, std::to_string(model.size()) + " bytes");
    }
    always([](const HubCall& call) { return call.is_file(); }, {.body = model.substr(1)});
    expect_nothing_left(ErrorCode::invalid, std::to_string(model.size() - 1));
}

TEST_F(PullFault, CancelDuringASlowTrickleKeepsThePartial) {
    options.cancel = &cancel;
    always([](const HubCall& call) { return call.is_file(); },
           {.body = model,
            .before_piece = [](size_t) { std::this_thread::sleep_for(std::chrono::milliseconds(1)); },
            .piece = 16});
    options.progress = [&](const std::string&, uint64_t done, uint64_t) { cancel = cancel || done > 100; };
    EXPECT_ERROR(pull(), ErrorCode::cancelled);
    EXPECT_EQ(left(), kept());
    cancel = false;
    options.progress = nullptr;
    hub.fault = nullptr;
    expect_whole();
    EXPECT_NE(hub.file_calls().back().header("range"), "");
}

TEST_F(PullFault, CancelWhileTheHubSaysNothing) {
    options.cancel = &cancel;
    options.timing.read_timeout = std::chrono::hours(1);
    const auto stall = [&](size_t sent) {
        if (sent < 1000) return;
        std::error_code error;
        while (!hub.stopping()) {
            cancel = cancel || fs::file_size(partial(), error) == 1000;
            std::this_thread::sleep_for(std::chrono::milliseconds(5));
        }
    };
    always([](const HubCall& call) { return call.is_file(); }, {.body = model, .before_piece = stall, .piece = 1000});
    EXPECT_ERROR(pull(), ErrorCode::cancelled);
    EXPECT_EQ(fs::file_size(partial()), 1000u);
    EXPECT_EQ(left(), kept());
}

TEST_F(PullFault, CancelWhileWaitingForAnotherTry) {
    options.cancel = &cancel;
    options.timing.first_delay = options.timing.longest_delay = std::chrono::hours(1);
    hub.fault = [&](const HubCall&, int) {
        cancel = true;
        return HubAnswer{.status = 500};
    };
    expect_nothing_left(ErrorCode::cancelled);
}

TEST_F(PullFault, CancelledBeforeItBegan) {
    cancel = true;
    options.cancel = &cancel;
    expect_nothing_left(ErrorCode::cancelled);
    EXPECT_THAT(hub.calls(), IsEmpty());
}

TEST_F(PullFault, NoAnswerInTimeIsATimeoutOrUnavailable) {
    options.timing.read_timeout = std::chrono::milliseconds(50);
    options.timing.attempts = 2;
    always([](const HubCall& call) { return call.is_model(); },
           {.body = "{}", .before_piece = [&](size_t) {
                while (!hub.stopping()) std::this_thread::sleep_for(std::chrono::milliseconds(5));
            }});
    const auto entry = pull();
    ASSERT_FALSE(entry.ok());
    EXPECT_TRUE(entry.error().code == ErrorCode::timeout || entry.error().code == ErrorCode::unavailable)
        << entry.error().message();
    EXPECT_EQ(hub.calls().size(), 2u);
}

TEST_F(PullFault, RedirectLoop) {
    always([](const HubCall& call) { return call.is_file(); },
           {.status = 302, .headers = {{"Location", "/org/repo/resolve/x"}}});
    expect_nothing_left(ErrorCode::invalid, "redirects");
    EXPECT_EQ(hub.file_calls().size(), 11u);
}

TEST_F(PullFault, RedirectWithoutOrWithAWrongLocation) {
    always([](const HubCall& call) { return call.is_file(); }, {.status = 302});
    expect_nothing_left(ErrorCode::invalid, "Location");
    for (const char* location : {"ftp://host/x", "http://", "http://user@host/", "file:///etc/passwd"}) {
        always([](const HubCall& call) { return call.is_file(); },
               {.status = 302, .headers = {{"Location", location}}});
        expect_nothing_left(ErrorCode::invalid, "redirect");
    }
}

TEST_F(PullFault, TheTokenIsNotTakenToAnotherPort) {
    FaultyHub storage;
    storage.fault = [&](const HubCall& call, int) { return std::optional(FaultyHub::file_answer(call, model)); };
    options.token = "hf_secret";
    const std::string digest = to_hex(sha256(std::string_view(model)));
    HubAnswer redirect{
        .status = 302,
        .headers = {{"Location", storage.url() + "/blob?signature=a%2Fb"}, {"X-Linked-Etag", "\"" + digest + "\""}}};
    always([](const HubCall& call) { return call.is_file(); }, redirect);
    leave_partial(model.substr(0, 5000), model);
    expect_whole();
    ASSERT_EQ(storage.calls().size(), 1u);
    EXPECT_EQ(storage.calls()[0].path, "/blob?signature=a%2Fb");
    EXPECT_EQ(storage.calls()[0].header("authorization"), "");
    EXPECT_EQ(storage.calls()[0].header("range"), "bytes=5000-");
    EXPECT_EQ(hub.file_calls()[0].header("authorization"), "Bearer hf_secret");
}

TEST_F(PullFault, AWebPageInsteadOfTheFileOrTheList) {
    const HubAnswer page{.headers = {{"Content-Type", "text/html; charset=utf-8"}}, .body = "<html>log in</html>"};
    always([](const HubCall& call) { return call.is_file(); }, page);
    expect_nothing_left(ErrorCode::unavailable, "HTML page");
    always([](const HubCall& call) { return call.is_model(); }, page);
    expect_nothing_left(ErrorCode::unavailable, "HTML page");
}

TEST_F(PullFault, AFileThatIsNoModelAlthoughItsDigestFits) {
    hub.files[0].bytes = "<html>" + std::string(500, ' ') + "</html>";
    expect_nothing_left(ErrorCode::invalid);
    hub.files[0].bytes = model.substr(0, model.size() / 2);
    expect_nothing_left(ErrorCode::invalid);
}

TEST_F(PullFault, AnAnswerThatIsNoJson) {
    std::string deep(100000, '[');
    for (const std::string& body :
         {std::string(), std::string("{"), std::string("null"), std::string("[1]"), std::string("\xff\xfe"), deep,
          std::string("{\"sha\":7}"), std::string("{\"sha\":\"../../x\"}"), std::string("{\"sha\":\"main\"}")}) {
        always([](const HubCall& call) { return call.is_model(); }, {.body = body});
        expect_nothing_left(ErrorCode::invalid);
    }
    for (const std::string& body : {std::string(), std::string("{}"), std::string("[1]"), std::string("[{}]"),
                                    std::string("[{\"path\":7}]"), deep}) {
        always([](const HubCall& call) { return call.is_tree(); }, {.body = body});
        expect_nothing_left(ErrorCode::invalid);
    }
}

TEST_F(PullFault, HostileFileNames) {
    const std::vector<std::string> names{"../../x.gguf",
                                         "/etc/x.gguf",
                                         std::string("a\0b.gguf", 8),
                                         "a/../../../x.gguf",
                                         "a//x.gguf",
                                         ".x.gguf",
                                         "a\\..\\x.gguf",
                                         "x\n.gguf",
                                         std::string(100000, 'a') + ".gguf",
                                         std::string(250, 'a') + ".gguf",
                                         kFile};
    for (const std::string& name : names) {
        hub.files.resize(1);
        hub.add(name, model);  // the last name is there twice
        expect_nothing_left(ErrorCode::invalid);
    }
    EXPECT_THAT(hub.file_calls(), IsEmpty());
}

TEST_F(PullFault, HostileSizesAndDigests) {
    for (const nlohmann::json& size :
         {nlohmann::json(-1), nlohmann::json("7"), nlohmann::json(1.5), nlohmann::json(UINT64_MAX), nlohmann::json()}) {
        hub.files[0].entry = FaultyHub::tree_entry(kFile, model);
        hub.files[0].entry["lfs"]["size"] = size;
        expect_nothing_left(ErrorCode::invalid, "size");
    }
    for (const char* digest : {"", "abc", "zz"}) {
        hub.files[0].entry = FaultyHub::tree_entry(kFile, model);
        hub.files[0].entry["lfs"]["oid"] = digest;
        expect_nothing_left(ErrorCode::invalid, "SHA-256");
    }
}

TEST_F(PullFault, AFileOfNoBytes) {
    hub.files[0].bytes.clear();
    expect_nothing_left(ErrorCode::invalid, "0 bytes");
}

TEST_F(PullFault, MoreThanTheDiskIsRefusedWithBothNumbers) {
    hub.files[0].entry = FaultyHub::tree_entry(kFile, model);
    hub.files[0].entry["lfs"]["size"] = uint64_t{1} << 59;
    expect_nothing_left(ErrorCode::no_space, std::to_string(uint64_t{1} << 59) + " bytes of free disk, found ");
    EXPECT_THAT(hub.file_calls(), IsEmpty());
}

TEST_F(PullFault, AFileInTheWayOfTheFolder) {
    write_file(root / "file", "x");
    folders.ours = root / "file" / "models";
    const auto entry = pull();
    EXPECT_ERROR(entry, ErrorCode::io);
    EXPECT_THAT(entry.error().message(), HasSubstr("models"));
}

// A small file system of its own; only root may make one, and not in every container.
class PullDisk : public PullFault {
protected:
    bool mount_disk(const char* size) {
        fs::create_directories(folders.ours);
        mounted_ = ::mount("tmpfs", folders.ours.c_str(), "tmpfs", 0, size) == 0;
        return mounted_;
    }
    void TearDown() override {
        if (mounted_) ::umount2(folders.ours.c_str(), MNT_DETACH);
        PullFault::TearDown();
    }
    bool mounted_ = false;
};

TEST_F(PullDisk, FullBeforeTheDownload) {
    if (!mount_disk("size=1m")) GTEST_SKIP() << "mounting a tmpfs is not permitted";
    hub.files[0].bytes = small_model(1 << 19);
    expect_nothing_left(ErrorCode::no_space, "bytes of free disk");
    EXPECT_THAT(hub.file_calls(), IsEmpty());
}

TEST_F(PullDisk, FullDuringTheDownloadKeepsThePartialAndGoesOnLater) {
    if (!mount_disk("size=1m")) GTEST_SKIP() << "mounting a tmpfs is not permitted";
    const std::string large = small_model(200000);
    hub.files[0].bytes = large;
    options.progress = [&](const std::string&, uint64_t done, uint64_t) {
        // another program takes the room
        if (done > large.size() / 2) write_file(folders.ours / "other", std::string(600000, 'x'));
    };
    const auto entry = pull();
    EXPECT_ERROR(entry, ErrorCode::no_space);
    EXPECT_GT(fs::file_size(partial()), large.size() / 2);
    fs::remove(folders.ours / "other");
    options.progress = nullptr;
    const auto again = pull();
    ASSERT_TRUE(again.ok()) << again.error().message();
    EXPECT_EQ(read_file(target()), large);
    EXPECT_NE(hub.file_calls().back().header("range"), "");
}

TEST_F(PullDisk, ReadOnlyFolder) {
    if (::geteuid() == 0) {
        if (!mount_disk("size=1m") ||
            ::mount(nullptr, folders.ours.c_str(), nullptr, MS_REMOUNT | MS_RDONLY, nullptr) != 0)
            GTEST_SKIP() << "mounting a tmpfs is not permitted";
    } else {
        fs::create_directories(folders.ours);
        ::chmod(folders.ours.c_str(), 0500);
    }
    const auto entry = pull();
    EXPECT_ERROR(entry, ErrorCode::io);
    EXPECT_THAT(entry.error().message(), HasSubstr(folders.ours.string()));
    EXPECT_THAT(left(), IsEmpty());
}

}  // namespace
}  // namespace onebit::test
