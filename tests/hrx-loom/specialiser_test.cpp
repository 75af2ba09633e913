// If this fails, a request waits for a compiler that it should not wait for, or the disk cache gives a wrong image.
#include <sys/wait.h>

#include <fstream>
#include <thread>

#include "hrx/loom/image_cache.h"
#include "tests/hrx-loom/fixture.h"

namespace onebit::loom::test {
namespace {

constexpr uint32_t patience_ms = 100'000;

SpecialiserOptions options(const Folder& folder, uint64_t bytes = 1u << 20) {
    return {2, folder / "cache", bytes, ONEBIT_LOOM_LIBRARY_BUILT};
}

const Kernel& polynomial() { return *must(find_kernel("case_polynomial")); }

TEST(Specialiser, GenericFirstThenSpecialised) {
    const Folder folder;
    const auto specialiser = Specialiser::create(options(folder));
    const auto variant = must(specialiser->variant(polynomial(), "gfx1151", {{"scale", 3}}));
    const TieredImage first = variant->current();
    if (first.tier == Tier::generic) {
        EXPECT_EQ(first.bytes.data(), must(generic_image(polynomial(), "gfx1151")).bytes.data());
        EXPECT_TRUE(first.constants->empty());
    }
    must(variant->wait(patience_ms));
    const TieredImage second = variant->current();
    EXPECT_EQ(second.tier, Tier::specialised);
    EXPECT_EQ(*second.constants, (Constants{{"scale", 3}}));
    EXPECT_EQ(must(specialiser->variant(polynomial(), "gfx1151", {{"scale", 3}})), variant);
    EXPECT_EQ(specialiser->counts().compiled, 1u);

    // another process, or a later one: from the disk, at once
    const auto later = Specialiser::create(options(folder));
    const auto again = must(later->variant(polynomial(), "gfx1151", {{"scale", 3}}));
    EXPECT_EQ(again->current().tier, Tier::specialised);
    EXPECT_TRUE(std::ranges::equal(again->current().bytes, second.bytes));
    EXPECT_EQ(later->counts().cache_hits, 1u);
    EXPECT_EQ(later->counts().compiled, 0u);
}

TEST(Specialiser, AKernelThatCannotBeCompiledStaysGeneric) {
    const Folder folder;
    const auto specialiser = Specialiser::create(options(folder));
    const auto variant = must(specialiser->variant(*must(find_kernel("case_greedy")), "gfx1151", {{"words", 2}}));
    const auto waited = variant->wait(patience_ms);
    ASSERT_FALSE(waited.ok());
    EXPECT_NE(waited.error().message().find("case_greedy"), std::string::npos);
    EXPECT_EQ(variant->current().tier, Tier::generic);
    EXPECT_EQ(variant->current().constants->at("words"), 1u);
    EXPECT_EQ(specialiser->counts().failed, 1u);
}

TEST(Specialiser, WithoutALibraryAllStayGeneric) {
    const Folder folder;
    auto without = options(folder);
    without.library = "/nowhere/libloom.so";
    const auto specialiser = Specialiser::create(without);
    const auto variant = must(specialiser->variant(polynomial(), "gfx1151", {}));
    EXPECT_EQ(variant->wait(patience_ms).error().code, ErrorCode::unavailable);
    EXPECT_EQ(variant->current().tier, Tier::generic);
}

TEST(Specialiser, WrongConstantsAreRefusedAtOnce) {
    const Folder folder;
    const auto specialiser = Specialiser::create(options(folder));
    EXPECT_EQ(specialiser->variant(polynomial(), "gfx1151", {{"scale", 0}}).error().code, ErrorCode::usage);
    EXPECT_EQ(specialiser->variant(polynomial(), "gfx906", {}).error().code, ErrorCode::unsupported);
    EXPECT_EQ(specialiser->counts().waiting, 0u);
}

TEST(Specialiser, ManyThreadsAskForTheSame) {
    const Folder folder;
    const auto specialiser = Specialiser::create(options(folder));
    std::vector<std::thread> threads;
    std::vector<int> right(4);
    for (int& result : right) {
        threads.emplace_back([&specialiser, &result] {
            for (uint32_t scale = 1; scale <= 6; scale++) {
                const auto variant = specialiser->variant(polynomial(), "gfx1151", {{"scale", scale}});
                result += variant.ok() && (*variant)->wait(patience_ms).ok() ? 1 : 0;
            }
        });
    }
    for (auto& thread : threads) thread.join();
    EXPECT_EQ(right, std::vector<int>(4, 6));
    const auto counts = specialiser->counts();
    EXPECT_GE(counts.compiled, 6u);
    EXPECT_EQ(counts.failed, 0u);
}

TEST(Specialiser, ItsEndDropsWhatWaits) {
    const Folder folder;
    std::vector<std::shared_ptr<Variant>> variants;
    {
        auto one = options(folder);
        one.threads = 1;
        const auto specialiser = Specialiser::create(one);
        for (uint32_t scale = 1; scale <= 20; scale++) {
            variants.push_back(must(specialiser->variant(polynomial(), "gfx1151", {{"scale", scale}})));
        }
    }
    for (const auto& variant : variants) {
        const auto waited = variant->wait(0);
        EXPECT_TRUE(waited.ok() || waited.error().code == ErrorCode::cancelled) << waited.error().message();
    }
    EXPECT_FALSE(variants.back()->current().bytes.empty());
}

TEST(ImageCache, LimitsAtTheirEdges) {
    const Folder folder;
    const auto wanted = request("case_polynomial", "gfx1151");
    const auto image = must(library()->compile(wanted, LOOM_IMAGE)).bytes;
    const uint64_t whole = image.size() + 64;  // with the entry's header
    const struct {
        uint64_t limit;
        bool kept;
    } cases[] = {{0, false}, {1, false}, {whole - 1, false}, {whole, true}, {whole + 1, true}};
    for (const auto& [limit, kept] : cases) {
        auto cache = must(ImageCache::open(folder / std::to_string(limit).c_str(), limit));
        EXPECT_TRUE(cache.put(wanted, image).ok()) << limit;
        EXPECT_EQ(cache.get(wanted).has_value(), kept) << limit;
        EXPECT_LE(cache.bytes(), limit);
    }
}

TEST(ImageCache, TheLeastRecentlyUsedGoFirst) {
    const Folder folder;
    std::vector<Request> requests;
    std::vector<std::vector<std::byte>> images;
    for (uint32_t scale = 1; scale <= 3; scale++) {
        requests.push_back(request("case_polynomial", "gfx1151", {{"scale", scale}, {"count", 64}}));
        images.push_back(must(library()->compile(requests.back(), LOOM_IMAGE)).bytes);
    }
    auto cache = must(ImageCache::open(folder / "cache", images[0].size() + images[2].size() + 2 * 64 + 8));
    must(cache.put(requests[0], images[0]));
    must(cache.put(requests[1], images[1]));
    ASSERT_TRUE(cache.get(requests[0]));
    must(cache.put(requests[2], images[2]));
    EXPECT_TRUE(cache.get(requests[0]));
    EXPECT_FALSE(cache.get(requests[1]));
    EXPECT_TRUE(cache.get(requests[2]));
    must(cache.clear());
    EXPECT_EQ(cache.bytes(), 0u);
}

TEST(ImageCache, DamagedAndForeignEntriesAreMadeAnew) {
    const Folder folder;
    const auto wanted = request("case_polynomial", "gfx1151");
    const auto image = must(library()->compile(wanted, LOOM_IMAGE)).bytes;
    auto cache = must(ImageCache::open(folder / "cache", 1u << 20));
    must(cache.put(wanted, image));
    for (const auto& entry : std::filesystem::directory_iterator(folder / "cache")) {
        if (entry.path().extension() != ".entry") continue;
        std::fstream file(entry.path(), std::ios::in | std::ios::out | std::ios::binary);
        file.seekp(200);
        file.put('\x5a');
    }
    EXPECT_FALSE(cache.get(wanted));
    // with a right digest, but not an image of this kernel and chip
    const std::string text = "not an image";
    const auto other = must(library()->compile(request("case_polynomial", "gfx1150"), LOOM_IMAGE)).bytes;
    for (const auto bytes :
         {std::as_bytes(std::span(text)), std::span<const std::byte>(other), std::span<const std::byte>{}}) {
        must(cache.put(wanted, bytes));
        EXPECT_FALSE(cache.get(wanted));
        const auto specialiser = Specialiser::create(options(folder));
        const auto variant = must(specialiser->variant(polynomial(), "gfx1151", {}));
        must(variant->wait(patience_ms));
        EXPECT_EQ(specialiser->counts().compiled, 1u);
        EXPECT_TRUE(std::ranges::equal(variant->current().bytes, image));
    }
}

TEST(ImageCache, TwoProcessesAtOnce) {
    const Folder folder;
    const auto work = [&folder] {
        // holds about two images, so that both processes keep removing
        const auto specialiser = Specialiser::create(options(folder, 8192));
        bool right = true;
        for (uint32_t round = 0; round < 3; round++) {
            for (uint32_t scale = 1; scale <= 5; scale++) {
                const auto variant = specialiser->variant(polynomial(), "gfx1151", {{"scale", scale}});
                right = right && variant.ok() && (*variant)->wait(patience_ms).ok() &&
                        (*variant)->current().tier == Tier::specialised;
            }
        }
        return right;
    };
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) _exit(work() ? 0 : 1);
    const bool right = work();
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_TRUE(right);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
    EXPECT_LE(must(ImageCache::open(folder / "cache", 8192)).bytes(), 8192u);
}

}  // namespace
}  // namespace onebit::loom::test
