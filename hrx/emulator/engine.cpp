#include "hrx/emulator/engine.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <string_view>

#include "base/log.h"
#include "hrx/emulator/worker.h"

namespace onebit::emulator {
namespace {

// The number in an environment variable; `absent` when it is not set or not in range.
u64 number_from_environment(const char* name, u64 least, u64 most, u64 absent) {
    const char* text = std::getenv(name);
    if (text == nullptr) return absent;
    u64 value = 0;
    auto [end, error] = std::from_chars(text, text + std::strlen(text), value);
    if (error == std::errc() && *end == 0 && value >= least && value <= most) return value;
    log_warning("emulator", std::string(name) + ": expected a number from " + std::to_string(least) + " to " +
                                std::to_string(most) + ", found '" + text + "'; using " + std::to_string(absent));
    return absent;
}

}  // namespace

Settings settings_from_environment() {
    Settings settings;
    if (const char* mode = std::getenv("ONEBIT_EMULATOR_MODE")) {
        if (std::strcmp(mode, "fast") == 0)
            settings.mode = Mode::fast;
        else if (std::strcmp(mode, "checked") != 0)
            log_warning("emulator", std::string("ONEBIT_EMULATOR_MODE: expected checked or fast, found '") + mode +
                                        "'; using checked");
    }
    settings.workers = static_cast<u32>(number_from_environment("ONEBIT_EMULATOR_THREADS", 1, 64, settings.workers));
    settings.instructions_per_wave =
        number_from_environment("ONEBIT_EMULATOR_LIMIT", 1, ~u64{0}, settings.instructions_per_wave);
    if (const char* chip = std::getenv("ONEBIT_EMULATOR_CHIP")) {
        constexpr std::string_view chips[] = {"gfx1100", "gfx1101", "gfx1102", "gfx1103",
                                              "gfx1150", "gfx1151", "gfx1152"};
        if (std::find(std::begin(chips), std::end(chips), chip) != std::end(chips))
            settings.chip = chip;
        else
            log_warning("emulator", std::string("ONEBIT_EMULATOR_CHIP: expected gfx1100 to gfx1103 or gfx1150 to ") +
                                        "gfx1152, found '" + chip + "'; using " + settings.chip);
    }
    return settings;
}

Engine::Engine(const MemoryMap& memory, Settings settings) : memory_(memory), settings_(settings) {
    for (u32 k = 0; k < settings_.workers; ++k) workers_.push_back(std::make_unique<Worker>(memory_, settings_));
    // the thread that calls run() is the first worker
    for (u32 k = 1; k < settings_.workers; ++k) threads_.emplace_back([this, k] { thread_main(*workers_[k]); });
}

Engine::~Engine() {
    {
        std::lock_guard lock(mutex_);
        stop_ = true;
    }
    wake_.notify_all();
    for (std::thread& thread : threads_) thread.join();
}

void Engine::help(Worker& worker, const Dispatch& dispatch) {
    u64 count[3];
    for (int k = 0; k < 3; ++k) count[k] = (u64{dispatch.grid[k]} + dispatch.group[k] - 1) / dispatch.group[k];
    try {
        while (!trapped_.load(std::memory_order_relaxed)) {
            const u64 group = next_group_.fetch_add(1, std::memory_order_relaxed);
            if (group >= groups_) return;
            const u64 executed = worker.run_group(dispatch, static_cast<u32>(group % count[0]),
                                                  static_cast<u32>(group / count[0] % count[1]),
                                                  static_cast<u32>(group / count[0] / count[1]));
            instructions_.fetch_add(executed, std::memory_order_relaxed);
        }
    } catch (const TrapError& error) {
        std::lock_guard lock(mutex_);
        if (!trap_) trap_ = error.trap();
        trapped_.store(true, std::memory_order_relaxed);
    } catch (const std::exception& error) {
        std::lock_guard lock(mutex_);
        if (!trap_) {
            trap_ = Trap{};
            trap_->kernel = dispatch.kernel->name;
            trap_->detail = std::string("the emulator failed: ") + error.what();
        }
        trapped_.store(true, std::memory_order_relaxed);
    }
}

void Engine::thread_main(Worker& worker) {
    u64 seen = 0;
    std::unique_lock lock(mutex_);
    for (;;) {
        wake_.wait(lock, [&] { return stop_ || (current_ != nullptr && generation_ != seen); });
        if (stop_) return;
        seen = generation_;
        ++busy_;
        const Dispatch& dispatch = *current_;
        lock.unlock();
        help(worker, dispatch);
        lock.lock();
        --busy_;
        if (busy_ == 0) idle_.notify_all();
    }
}

std::optional<Trap> Engine::run(const Dispatch& dispatch) {
    {
        std::lock_guard lock(mutex_);
        groups_ = 1;
        for (int k = 0; k < 3; ++k) groups_ *= (u64{dispatch.grid[k]} + dispatch.group[k] - 1) / dispatch.group[k];
        next_group_.store(0);
        trapped_.store(false);
        trap_.reset();
        current_ = &dispatch;
        ++generation_;
    }
    if (groups_ > 1) wake_.notify_all();
    help(*workers_[0], dispatch);
    std::unique_lock lock(mutex_);
    // a thread that wakes up now finds no dispatch
    current_ = nullptr;
    idle_.wait(lock, [&] { return busy_ == 0; });
    return std::move(trap_);
}

}  // namespace onebit::emulator
