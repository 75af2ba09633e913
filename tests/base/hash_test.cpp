// If this fails, downloads and cache entries are checked against wrong digests.
#include "base/hash.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <map>
#include <string>

#include "tests/base/scratch.h"

namespace onebit {
namespace {

std::string hex(std::string_view text) { return to_hex(sha256(text)); }

// The vectors of FIPS 180-4's examples.
TEST(Sha256, PublishedVectors) {
    EXPECT_EQ(hex(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    EXPECT_EQ(hex("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    EXPECT_EQ(hex("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
              "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
    EXPECT_EQ(hex(std::string(1'000'000, 'a')), "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

// Padding changes at these lengths. The digests are those of coreutils' sha256sum.
TEST(Sha256, LengthsAroundABlock) {
    const std::map<size_t, const char*> digests = {
        {55, "9f4390f8d30c2dd92ec9f095b65e2b9ae9b0a925a5258e241c9f1e910f734318"},
        {56, "b35439a4ac6f0948b6d6f9e3c6af0f5f590ce20f1bde7090ef7970686ec6738a"},
        {63, "7d3e74a05d7db15bce4ad9ec0658ea98e3f06eeecf16b4c6fff2da457ddc2f34"},
        {64, "ffe054fe7ae0cb6dc65c3af9b61d5209f439851db43d0ba5997337df154668eb"},
        {65, "635361c48bb9eab14198e76ea8ab7f1a41685d6ad62aa9146d301d4f17eb0ae0"},
    };
    for (const auto& [length, digest] : digests) EXPECT_EQ(hex(std::string(length, 'a')), digest) << length;
}

TEST(Sha256, PiecesGiveTheSameAsTheWhole) {
    const std::string text(1000, 'q');
    for (const size_t piece : {1, 7, 63, 64, 65, 999}) {
        Sha256 hash;
        hash.update({});
        for (size_t i = 0; i < text.size(); i += piece)
            hash.update(test::bytes_of(std::string_view(text).substr(i, piece)));
        EXPECT_EQ(hash.finish(), sha256(text)) << piece;
    }
}

TEST(Sha256, MovesItsState) {
    Sha256 first;
    first.update(test::bytes_of("ab"));
    Sha256 second = std::move(first);
    second.update(test::bytes_of("c"));
    EXPECT_EQ(second.finish(), sha256("abc"));
}

TEST(Sha256DeathTest, ASpentObjectEndsTheProcess) {
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    Sha256 hash;
    hash.finish();
    EXPECT_DEATH(hash.finish(), "SHA-256");
    EXPECT_DEATH(hash.update({}), "SHA-256");
}

TEST(Sha256File, SameAsOfTheBytes) {
    test::ScratchFolder scratch;
    for (const size_t size : {size_t{0}, size_t{1}, (size_t{1} << 20) - 1, size_t{1} << 20, (size_t{1} << 20) + 1}) {
        const std::string text(size, 'z');
        test::write_file(scratch / "file", text);
        const auto digest = sha256_file(scratch / "file");
        ASSERT_TRUE(digest.ok());
        EXPECT_EQ(*digest, sha256(text)) << size;
    }
}

TEST(Sha256File, NamesAMissingFile) {
    test::ScratchFolder scratch;
    const auto digest = sha256_file(scratch / "none");
    ASSERT_FALSE(digest.ok());
    EXPECT_EQ(digest.error().code, ErrorCode::not_found);
    EXPECT_EQ(digest.error().subject, (scratch / "none").string());
}

TEST(Sha256File, RefusesWhatIsNoFileWithoutHanging) {
    test::ScratchFolder scratch;
    ASSERT_EQ(::mkfifo((scratch / "fifo").c_str(), 0600), 0);
    for (const auto& path : {scratch.path(), scratch / "fifo", std::filesystem::path("/dev/zero")}) {
        const auto digest = sha256_file(path);
        ASSERT_FALSE(digest.ok()) << path;
        EXPECT_EQ(digest.error().code, ErrorCode::io);
    }
}

}  // namespace
}  // namespace onebit
