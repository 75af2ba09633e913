// Images by tiers: the generic one at once, the specialised one as soon as it is there. A pool of threads compiles in
// the background; what was compiled is kept in the disk cache.
//
// Threads   Every function may be called from any thread at any time. Nobody waits for a compiler who does not ask to.
// Lifetimes A Variant may outlive its Specialiser; it then stays at the tier that it has. The kernel must outlive both.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "hrx/loom/request.h"

namespace onebit::loom {

enum class Tier { generic, specialised };

struct TieredImage {
    Tier tier = Tier::generic;
    std::span<const std::byte> bytes;  // valid as long as the Variant
    // What the image was made with: launch geometry follows these. Arguments that are not here are read at run time.
    const Constants* constants = nullptr;
};

// One request and what there is for it.
class Variant {
public:
    // Cheap; ask before a program is recorded, and record again when the tier has changed.
    TieredImage current() const;
    // Until the specialised image is there, or cannot be: then the error, which stays. timeout_ms: error timeout.
    Result<void> wait(uint32_t timeout_ms = UINT32_MAX) const;
    const Request& request() const { return request_; }

private:
    friend class Specialiser;
    Variant(Request request, Image generic);
    void finish(std::vector<std::byte> image);
    void fail(Error error);

    const Request request_;
    const Image generic_;
    Constants generic_constants_;
    mutable std::mutex mutex_;
    mutable std::condition_variable changed_;
    std::vector<std::byte> image_;
    bool done_ = false;
    std::optional<Error> error_;
};

struct SpecialiserOptions {
    uint32_t threads = 0;                 // that compile; 0: half of the processors, at least 1, at most 8
    std::filesystem::path cache_folder;   // empty: of the user
    uint64_t cache_bytes = 256ull << 20;  // on disk; 0 keeps nothing
    std::filesystem::path library;        // libloom.so; empty: the usual places
};

struct SpecialiserCounts {
    uint64_t cache_hits = 0, compiled = 0, failed = 0;
    uint64_t waiting = 0;  // now, those being compiled included
};

class Specialiser {
public:
    // Starts no thread and loads no compiler. A disk cache that cannot be opened is logged, and done without.
    static std::unique_ptr<Specialiser> create(SpecialiserOptions options = {});
    // Drops what waits, and waits for what is being compiled.
    ~Specialiser();
    Specialiser(const Specialiser&) = delete;
    Specialiser& operator=(const Specialiser&) = delete;

    // Errors as make_request and generic_image give them. Specialised at once where the disk cache has it. The same
    // request gives the same Variant while someone holds it.
    Result<std::shared_ptr<Variant>> variant(const Kernel& kernel, std::string_view architecture, Constants constants);
    SpecialiserCounts counts() const;

private:
    struct State;
    explicit Specialiser(std::shared_ptr<State> state) : state_(std::move(state)) {}
    std::shared_ptr<State> state_;
};

}  // namespace onebit::loom
