// If this fails, a pull takes another model than the one asked for, or writes outside of its folder.
#include "server/catalog/pull_select.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "server/catalog/pull_url.h"

namespace onebit {
namespace {

using ::testing::HasSubstr;

HubRepository repository(const std::vector<std::string>& paths) {
    HubRepository repository{"org/repo", std::string(40, 'a'), {}};
    for (const std::string& path : paths) repository.files.push_back({path, 10, "", ""});
    return repository;
}

std::string chosen(const std::vector<std::string>& paths, const std::string& reference) {
    const auto selection = select_files(repository(paths), *parse_pull_reference(reference));
    if (!selection) return std::string(to_string(selection.error().code)) + ": " + selection.error().message();
    std::string text;
    for (const HubFile& file : selection->model) text += (text.empty() ? "" : " ") + file.path;
    return selection->projector ? text + " + " + selection->projector->path : text;
}

TEST(PullReference, ReadsTheThreeForms) {
    EXPECT_EQ(parse_pull_reference("org/repo")->repository, "org/repo");
    EXPECT_EQ(parse_pull_reference("org/repo:q8_0")->quant, "q8_0");
    EXPECT_EQ(parse_pull_reference("org/re.po-1/sub/a.gguf")->file, "sub/a.gguf");
}

TEST(PullReference, RefusesWhatIsNone) {
    const std::vector<std::string> wrong{"",
                                         "/",
                                         "repo",
                                         "org/",
                                         "/repo",
                                         "org/repo:",
                                         "org/repo:a b",
                                         "org/repo/",
                                         "org/repo/a.bin",
                                         "../repo",
                                         "org/..",
                                         "org/repo/../a.gguf",
                                         "org/repo//a.gguf",
                                         "org/repo/mmproj-F16.gguf",
                                         "org/repo:a/b",
                                         "o rg/repo",
                                         "org/repo?x",
                                         std::string("org/re\0po", 9),
                                         "org/" + std::string(97, 'a'),
                                         "https://host/org/repo"};
    for (const std::string& text : wrong) {
        const auto reference = parse_pull_reference(text);
        ASSERT_FALSE(reference.ok()) << text;
        EXPECT_EQ(reference.error().code, ErrorCode::usage);
    }
}

TEST(PullPath, RefusesEveryWayOut) {
    const std::vector<std::string> wrong{"",
                                         "/etc/passwd",
                                         "..",
                                         "../x",
                                         "a/../x",
                                         "a/..",
                                         "./a",
                                         "a//b",
                                         "a/",
                                         ".hidden",
                                         "a\\b",
                                         "a\nb",
                                         std::string("a\0b", 3),
                                         std::string(201, 'a'),
                                         std::string(1025, '/'),
                                         "a/" + std::string(300, 'b')};
    for (const std::string& path : wrong) EXPECT_NE(unsafe_path_reason(path), "") << path;
    for (const std::string& path : {std::string("a"), std::string("a/b.gguf"), std::string(200, 'a'),
                                    std::string("a..b"), std::string("ü/模型.gguf")})
        EXPECT_EQ(unsafe_path_reason(path), "") << path;
}

TEST(PullSelect, MatchesAQuantAsAWholeWordWithoutRegardToCase) {
    const std::vector<std::string> files{"m-Q4_K.gguf",       "m-Q4_K_M.gguf", "m-IQ4_XS.gguf",
                                         "m-UD-Q4_K_XL.gguf", "m_q5_0.gguf",   "README.md"};
    EXPECT_EQ(chosen(files, "org/repo:q4_k"), "m-Q4_K.gguf");
    EXPECT_EQ(chosen(files, "org/repo:Q4_K_M"), "m-Q4_K_M.gguf");
    EXPECT_EQ(chosen(files, "org/repo:q4_k_xl"), "m-UD-Q4_K_XL.gguf");
    EXPECT_EQ(chosen(files, "org/repo:ud-Q4_K_XL"), "m-UD-Q4_K_XL.gguf");
    EXPECT_EQ(chosen(files, "org/repo:Q5_0"), "m_q5_0.gguf");
    EXPECT_THAT(chosen(files, "org/repo:Q4"), HasSubstr("not_found"));
}

TEST(PullSelect, DefaultsToQ4KMThenQ8ThenTheOnlyOne) {
    EXPECT_EQ(chosen({"m-F16.gguf", "m-Q8_0.gguf", "m-Q4_K_M.gguf"}, "org/repo"), "m-Q4_K_M.gguf");
    EXPECT_EQ(chosen({"m-F16.gguf", "m-Q8_0.gguf"}, "org/repo"), "m-Q8_0.gguf");
    EXPECT_EQ(chosen({"model.gguf"}, "org/repo"), "model.gguf");
    EXPECT_THAT(chosen({"m-F16.gguf", "m-Q3_K_S.gguf"}, "org/repo"), HasSubstr("name one: F16, Q3_K_S"));
    EXPECT_THAT(chosen({}, "org/repo"), HasSubstr("not_found"));
    EXPECT_THAT(chosen({"mmproj-F16.gguf"}, "org/repo"), HasSubstr("not_found"));
}

TEST(PullSelect, AnUnknownQuantListsWhatThereIs) {
    EXPECT_THAT(chosen({"m-F16.gguf", "m-Q8_0.gguf"}, "org/repo:Q2_K"), HasSubstr("one of F16, Q8_0"));
}

TEST(PullSelect, TwoModelsOfOneQuantNeedTheFilesName) {
    const std::vector<std::string> files{"a-1b-Q8_0.gguf", "a-3b-Q8_0.gguf"};
    EXPECT_THAT(chosen(files, "org/repo:Q8_0"), HasSubstr("several: a-1b-Q8_0.gguf, a-3b-Q8_0.gguf"));
    EXPECT_EQ(chosen(files, "org/repo/a-3b-Q8_0.gguf"), "a-3b-Q8_0.gguf");
    EXPECT_THAT(chosen(files, "org/repo/a-7b-Q8_0.gguf"), HasSubstr("not_found"));
}

TEST(PullSelect, ShardsAreOneModelWhicheverIsNamed) {
    const std::string first = "Q8_0/m-00001-of-00002.gguf", second = "Q8_0/m-00002-of-00002.gguf";
    EXPECT_EQ(chosen({second, first, "m-Q4_0.gguf"}, "org/repo:Q8_0"), first + " " + second);
    EXPECT_EQ(chosen({second, first, "m-Q4_0.gguf"}, "org/repo/" + second), first + " " + second);
    EXPECT_THAT(chosen({first}, "org/repo"), HasSubstr("shard 2 is not in the repository"));
}

TEST(PullSelect, OneShardAndTheSameNameWithoutNumberAreTwoModels) {
    EXPECT_THAT(chosen({"m-Q8_0.gguf", "m-Q8_0-00001-of-00001.gguf"}, "org/repo:Q8_0"), HasSubstr("several"));
}

TEST(PullSelect, TakesTheF16ProjectorOfTheSameFolder) {
    EXPECT_EQ(chosen({"m-Q8_0.gguf", "mmproj-Q8_0.gguf", "mmproj-BF16.gguf", "mmproj-F16.gguf", "mmproj-F32.gguf"},
                     "org/repo"),
              "m-Q8_0.gguf + mmproj-F16.gguf");
    EXPECT_EQ(chosen({"a/m-Q8_0.gguf", "a/mmproj-F32.gguf", "b/mmproj-F16.gguf"}, "org/repo"),
              "a/m-Q8_0.gguf + a/mmproj-F32.gguf");
}

TEST(PullSelect, ImportanceMatricesAreNoModels) {
    EXPECT_EQ(chosen({"m.gguf", "m-imatrix.gguf"}, "org/repo"), "m.gguf");
}

TEST(PullSelect, AnEmptyFileIsNoModel) {
    HubRepository empty = repository({"m.gguf"});
    empty.files[0].size = 0;
    const auto selection = select_files(empty, *parse_pull_reference("org/repo"));
    ASSERT_FALSE(selection.ok());
    EXPECT_EQ(selection.error().code, ErrorCode::invalid);
}

TEST(PullUrl, ReadsAndRefuses) {
    const auto url = parse_url("HTTPS://hub.example:8443/base?x=1#y", "t");
    ASSERT_TRUE(url.ok());
    EXPECT_EQ(url->origin(), "https://hub.example:8443");
    EXPECT_EQ(url->target, "/base?x=1");
    EXPECT_EQ(url->text(), "https://hub.example:8443/base");
    EXPECT_EQ(parse_url("http://[::1]:80", "t")->host, "[::1]");
    EXPECT_EQ(parse_url("http://[::1]", "t")->port, 80);
    for (const char* wrong : {"", "hub", "ftp://a/", "file:///etc", "http://", "http://u:p@h/", "http://h:0/",
                              "http://h:65536/", "http://h:x/", "http://h/ a", "http://h/\r\nX: y"})
        EXPECT_FALSE(parse_url(wrong, "t").ok()) << wrong;
}

TEST(PullUrl, ResolvesRedirects) {
    const HttpUrl base = *parse_url("https://h/a/b/c?q", "t");
    const auto to = [&](const std::string& location) {
        const auto url = resolve_url(base, location);
        return url ? url->origin() + url->target : "error";
    };
    EXPECT_EQ(to("https://x/y?z"), "https://x:443/y?z");
    EXPECT_EQ(to("//x/y"), "https://x:443/y");
    EXPECT_EQ(to("/y?u=https://z"), "https://h:443/y?u=https://z");
    EXPECT_EQ(to("d"), "https://h:443/a/b/d");
    EXPECT_EQ(to("../d/./e?../f"), "https://h:443/a/d/e?../f");
    EXPECT_EQ(to("../../../../d"), "https://h:443/d");
    for (const char* wrong : {"", "javascript://x", "a b", "http://"}) EXPECT_EQ(to(wrong), "error") << wrong;
}

TEST(PullUrl, EncodesPaths) { EXPECT_EQ(encode_url_path("a b/ü?#%.gguf"), "a%20b/%C3%BC%3F%23%25.gguf"); }

}  // namespace
}  // namespace onebit
