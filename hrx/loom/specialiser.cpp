#include "hrx/loom/specialiser.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <deque>
#include <map>
#include <thread>

#include "base/log.h"
#include "hrx/loom/image_cache.h"
#include "hrx/loom/library.h"

namespace onebit::loom {

Variant::Variant(Request request, Image generic) : request_(std::move(request)), generic_(generic) {
    for (const Constant& constant : request_.kernel->constants) {
        if (constant.is_option) generic_constants_.emplace(std::string(constant.name), constant.standard);
    }
}

TieredImage Variant::current() const {
    const std::lock_guard lock(mutex_);
    if (done_ && !error_) return {Tier::specialised, image_, &request_.constants};
    return {Tier::generic, generic_.bytes, &generic_constants_};
}

Result<void> Variant::wait(uint32_t timeout_ms) const {
    std::unique_lock lock(mutex_);
    const auto finished = [this] { return done_; };
    if (timeout_ms == UINT32_MAX) {
        changed_.wait(lock, finished);
    } else if (!changed_.wait_for(lock, std::chrono::milliseconds(timeout_ms), finished)) {
        return Error{ErrorCode::timeout, request_.name(), "an image within " + std::to_string(timeout_ms) + " ms",
                     "none", ""};
    }
    if (error_) return *error_;
    return {};
}

void Variant::finish(std::vector<std::byte> image) {
    {
        const std::lock_guard lock(mutex_);
        image_ = std::move(image);
        done_ = true;
    }
    changed_.notify_all();
}

void Variant::fail(Error error) {
    {
        const std::lock_guard lock(mutex_);
        error_ = std::move(error);
        done_ = true;
    }
    changed_.notify_all();
}

// Shared with the threads.
struct Specialiser::State {
    SpecialiserOptions options;
    std::optional<ImageCache> cache;

    mutable std::mutex mutex;
    std::condition_variable work_added;
    std::deque<std::shared_ptr<Variant>> waiting;
    std::map<std::string, std::weak_ptr<Variant>> variants;  // by key
    std::vector<std::thread> threads;
    bool stopping = false;
    SpecialiserCounts counts;

    std::once_flag library_once;
    std::optional<Result<std::shared_ptr<const Library>>> library;

    const Result<std::shared_ptr<const Library>>& open_library() {
        std::call_once(library_once, [this] { library.emplace(Library::open(options.library)); });
        return *library;
    }

    void run();
    void compile(Variant& variant);
    void forget_unused();
};

void Specialiser::State::compile(Variant& variant) {
    const Request& request = variant.request();
    auto image = [&]() -> Result<std::vector<std::byte>> {
        const auto& opened = open_library();
        if (!opened.ok()) return opened.error();
        auto compiled = (*opened)->compile(request, LOOM_IMAGE);
        if (!compiled.ok()) return std::move(compiled).error();
        return std::move(compiled->bytes);
    }();
    {
        const std::lock_guard lock(mutex);
        (image.ok() ? counts.compiled : counts.failed)++;
    }
    if (!image.ok()) {
        log_warning("loom", request.name() + " stays generic: " + image.error().message());
        variant.fail(std::move(image).error());
        return;
    }
    if (cache) {
        if (const auto kept = cache->put(request, *image); !kept.ok()) {
            log_warning("loom", request.name() + " is not kept on disk: " + kept.error().message());
        }
    }
    variant.finish(std::move(*image));
}

void Specialiser::State::run() {
    for (;;) {
        std::shared_ptr<Variant> variant;
        {
            std::unique_lock lock(mutex);
            work_added.wait(lock, [this] { return stopping || !waiting.empty(); });
            if (stopping) return;
            variant = std::move(waiting.front());
            waiting.pop_front();
        }
        compile(*variant);
        const std::lock_guard lock(mutex);
        counts.waiting--;
    }
}

// Called with the lock held, when the map may have grown.
void Specialiser::State::forget_unused() {
    std::erase_if(variants, [](const auto& entry) { return entry.second.expired(); });
}

std::unique_ptr<Specialiser> Specialiser::create(SpecialiserOptions options) {
    auto state = std::make_shared<State>();
    if (options.threads == 0) options.threads = std::clamp(std::thread::hardware_concurrency() / 2, 1u, 8u);
    auto cache = ImageCache::open(options.cache_folder, options.cache_bytes);
    if (cache.ok()) {
        state->cache.emplace(std::move(*cache));
    } else {
        log_warning("loom", "kernels are compiled anew in each process: " + cache.error().message());
    }
    state->options = std::move(options);
    return std::unique_ptr<Specialiser>(new Specialiser(std::move(state)));
}

Specialiser::~Specialiser() {
    std::deque<std::shared_ptr<Variant>> dropped;
    {
        const std::lock_guard lock(state_->mutex);
        state_->stopping = true;
        dropped.swap(state_->waiting);
    }
    state_->work_added.notify_all();
    for (std::thread& thread : state_->threads) thread.join();
    for (const auto& variant : dropped) {
        variant->fail(
            {ErrorCode::cancelled, variant->request().name(), "a specialised image", "the end of its specialiser", ""});
    }
}

Result<std::shared_ptr<Variant>> Specialiser::variant(const Kernel& kernel, std::string_view architecture,
                                                      Constants constants) {
    auto request = make_request(kernel, architecture, std::move(constants));
    if (!request.ok()) return std::move(request).error();
    const auto generic = generic_image(kernel, architecture);
    if (!generic.ok()) return generic.error();
    const std::string key = request->key();
    State& state = *state_;
    {
        const std::lock_guard lock(state.mutex);
        if (const auto known = state.variants.find(key); known != state.variants.end()) {
            if (auto variant = known->second.lock()) return variant;
        }
    }
    std::shared_ptr<Variant> variant(new Variant(std::move(*request), *generic));
    auto cached = state.cache ? state.cache->get(variant->request()) : std::nullopt;
    const std::lock_guard lock(state.mutex);
    auto& known = state.variants[key];
    if (auto other = known.lock()) return other;  // of a thread that was faster
    known = variant;
    if ((state.variants.size() & 255) == 0) state.forget_unused();
    if (cached) {
        state.counts.cache_hits++;
        variant->finish(std::move(*cached));
        return variant;
    }
    state.waiting.push_back(variant);
    state.counts.waiting++;
    if (state.threads.size() < std::min<uint64_t>(state.options.threads, state.counts.waiting)) {
        state.threads.emplace_back([&state] { state.run(); });
    }
    state.work_added.notify_one();
    return variant;
}

SpecialiserCounts Specialiser::counts() const {
    const std::lock_guard lock(state_->mutex);
    return state_->counts;
}

}  // namespace onebit::loom
