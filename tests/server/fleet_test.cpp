// Breaks when models are not loaded, kept, freed or replaced as the rules say: two in memory at once, a busy one ended,
// requests that wait for ever, or an engine that died and is still called loaded.
#include "server/supervisor/fleet.h"

#include <gtest/gtest.h>

#include <atomic>
#include <deque>
#include <future>

namespace onebit {
namespace {

using namespace std::chrono_literals;
constexpr auto kPatience = 60s;

template <typename Condition>
bool wait_until(Condition condition) {
    auto until = std::chrono::steady_clock::now() + kPatience;
    while (!condition()) {
        if (std::chrono::steady_clock::now() > until) return false;
        std::this_thread::sleep_for(1ms);
    }
    return true;
}

// What all fake engines of a test share: how many live, and how the next ones behave.
struct Stage {
    std::atomic<int> alive{0}, most_alive{0}, made{0}, begun{0}, ended{0};
    std::atomic<bool> hold_ready{false}, fail{false}, refuse{false};
    std::mutex mutex;
    std::vector<std::string> log;
    void note(const std::string& line) {
        std::lock_guard lock(mutex);
        log.push_back(line);
    }
    std::vector<std::string> lines() {
        std::lock_guard lock(mutex);
        return log;
    }
};

class FakeEngine final : public EngineHandle {
public:
    FakeEngine(Stage& stage, std::string id) : stage_(stage), id_(std::move(id)) {
        stage_.made++;
        int now = ++stage_.alive;
        int most = stage_.most_alive;
        while (now > most && !stage_.most_alive.compare_exchange_weak(most, now)) {
        }
        stage_.note("start " + id_);
    }
    ~FakeEngine() override { stop(); }
    EngineStatus status() const override {
        EngineStatus status;
        status.state = stopped_ ? EngineState::stopped
                       : dead   ? EngineState::failed
                                : (stage_.hold_ready ? EngineState::starting : EngineState::ready);
        if (dead) status.last_failure = "signal 9 (killed)";
        return status;
    }
    std::filesystem::path socket() const override { return "/nowhere/" + id_; }
    uint64_t generation() const override { return 1; }
    Result<void> wait_ready(std::chrono::milliseconds limit) const override {
        auto until = std::chrono::steady_clock::now() + std::min<std::chrono::milliseconds>(limit, 20ms);
        while (std::chrono::steady_clock::now() < until) {
            if (stopped_) return Error{ErrorCode::unavailable, id_, "", "stopped", ""};
            if (stage_.fail) return Error{ErrorCode::unavailable, id_, "an engine", "exit code 1: bad model", ""};
            if (!stage_.hold_ready) return {};
            std::this_thread::sleep_for(1ms);
        }
        return Error{ErrorCode::timeout, id_, "", "", ""};
    }
    void request_begun() override { stage_.begun++; }
    void request_ended() override { stage_.ended++; }
    void stop() override {
        if (stopped_.exchange(true)) return;
        stage_.alive--;
        stage_.note("stop " + id_);
    }
    std::atomic<bool> dead{false};

private:
    Stage& stage_;
    std::string id_;
    std::atomic<bool> stopped_{false};
};

class FleetTest : public ::testing::Test {
protected:
    std::unique_ptr<Fleet> make(FleetLimits limits = {}) {
        if (limits.load_wait == std::chrono::milliseconds(600000)) limits.load_wait = kPatience;
        auto make_engine = [this](const ModelTarget& target) -> Result<std::unique_ptr<EngineHandle>> {
            if (stage.refuse) return Error{ErrorCode::no_space, "model '" + target.id + "'", "room", "too little", ""};
            auto engine = std::make_unique<FakeEngine>(stage, target.id);
            last = engine.get();
            return std::unique_ptr<EngineHandle>(std::move(engine));
        };
        return std::make_unique<Fleet>(limits, resolver(), make_engine,
                                       [this] { return Fleet::Clock::time_point(clock.load()); });
    }
    Fleet::Resolve resolver() {
        return [this](const std::string& name) -> Result<ModelTarget> {
            ModelTarget target;
            target.id = name.empty() ? "default" : name == "first" ? "a" : name;
            if (name == "missing") return Error{ErrorCode::not_found, "model 'missing'", "a model", "none", ""};
            target.settings.keep_alive = keep.count(target.id) ? keep[target.id] : KeepAlive{300};
            target.settings.pin = target.id == pinned;
            target.settings.context = context;
            return target;
        };
    }
    void advance(std::chrono::steady_clock::duration time) { clock = clock.load() + time; }
    static bool never() { return false; }

    Stage stage;
    std::atomic<std::chrono::steady_clock::duration> clock{1000s};
    std::map<std::string, KeepAlive> keep;
    std::string pinned;
    std::optional<uint32_t> context;
    std::atomic<FakeEngine*> last{nullptr};
};

TEST_F(FleetTest, loads_on_demand_once_and_serves_aliases) {
    auto fleet = make();
    EXPECT_TRUE(fleet->engines().empty());
    for (const char* name : {"a", "first", "a"}) {
        auto lease = fleet->acquire(name, true, never);
        ASSERT_TRUE(lease.ok()) << lease.error().message();
        EXPECT_EQ(lease->model(), "a");
    }
    EXPECT_EQ(stage.made, 1);
    EXPECT_EQ(stage.begun, 3);
    EXPECT_TRUE(wait_until([&] { return stage.ended == 3; }));
    auto missing = fleet->acquire("missing", true, never);
    ASSERT_FALSE(missing.ok());
    EXPECT_EQ(missing.error().code, ErrorCode::not_found);
    EXPECT_EQ(stage.alive, 1) << "a name that does not exist must free nothing";
}

// DEV25
TEST_F(FleetTest, DEV25_the_old_engine_is_gone_before_the_next_starts) {
    auto fleet = make();
    for (int i = 0; i < 20; i++) ASSERT_TRUE(fleet->acquire(i % 2 ? "a" : "b", true, never).ok());
    EXPECT_EQ(stage.most_alive, 1);
    EXPECT_EQ(stage.made, 20);
}

TEST_F(FleetTest, the_least_recently_used_is_evicted) {
    FleetLimits limits;
    limits.max_models = 2;
    auto fleet = make(limits);
    for (const char* name : {"a", "b", "a", "c"}) {
        ASSERT_TRUE(fleet->acquire(name, true, never).ok());
        advance(1s);
    }
    auto lines = stage.lines();
    EXPECT_EQ(lines, (std::vector<std::string>{"start a", "start b", "stop b", "start c"}));
    EXPECT_EQ(stage.most_alive, 2);
}

TEST_F(FleetTest, a_busy_engine_is_never_evicted) {
    auto fleet = make();
    auto busy = fleet->acquire("a", true, never);
    ASSERT_TRUE(busy.ok());
    std::promise<void> done;
    std::thread other([&] {
        EXPECT_TRUE(fleet->acquire("b", true, never).ok());
        done.set_value();
    });
    auto future = done.get_future();
    EXPECT_EQ(future.wait_for(300ms), std::future_status::timeout);
    EXPECT_EQ(stage.lines(), (std::vector<std::string>{"start a"}));
    busy->release();
    EXPECT_EQ(future.wait_for(kPatience), std::future_status::ready);
    other.join();
}

TEST_F(FleetTest, two_models_in_turns_starve_nobody) {
    auto fleet = make();
    std::atomic<int> served{0};
    std::vector<std::thread> clients;
    for (int i = 0; i < 8; i++)
        clients.emplace_back([&, i] {
            for (int round = 0; round < 5; round++) {
                auto lease = fleet->acquire(i % 2 ? "a" : "b", true, never);
                ASSERT_TRUE(lease.ok()) << lease.error().message();
                EXPECT_EQ(lease->model(), i % 2 ? "a" : "b");
                std::this_thread::sleep_for(1ms);
                served++;
            }
        });
    for (auto& client : clients) client.join();
    EXPECT_EQ(served, 40);
    EXPECT_EQ(stage.most_alive, 1);
}

// UX01, UX02
TEST_F(FleetTest, UX01_idle_models_are_freed_after_their_own_time) {
    keep = {{"a", KeepAlive{10}}, {"b", KeepAlive{100}}, {"c", KeepAlive{-1}}};
    FleetLimits limits;
    limits.max_models = 3;
    auto fleet = make(limits);
    for (const char* name : {"a", "b", "c"}) ASSERT_TRUE(fleet->acquire(name, true, never).ok());
    advance(9s);
    fleet->tick();
    EXPECT_EQ(stage.alive, 3);
    advance(1s);
    fleet->tick();
    EXPECT_TRUE(wait_until([&] { return stage.alive == 2; }));
    advance(90s);
    fleet->tick();
    // an engine that is gone stays listed for a moment
    ASSERT_TRUE(wait_until([&] { return fleet->engines().size() == 1; }));
    advance(1000h);
    fleet->tick();
    EXPECT_EQ(stage.alive, 1);
    EXPECT_EQ(fleet->engines().at(0).id, "c");
    EXPECT_LT(fleet->engines().at(0).keep_alive_left.count(), 0);
    EXPECT_TRUE(fleet->acquire("a", true, never).ok()) << "reload on request";
}

TEST_F(FleetTest, UX02_only_inference_keeps_a_model_awake) {
    keep = {{"a", KeepAlive{10}}};
    auto fleet = make();
    ASSERT_TRUE(fleet->acquire("a", true, never).ok());
    for (int i = 0; i < 10; i++) {
        advance(1s);
        fleet->engines();
        EXPECT_TRUE(i == 9 || fleet->acquire_loaded("a", false).ok());
    }
    fleet->tick();
    EXPECT_TRUE(wait_until([&] { return stage.alive == 0; }));
    EXPECT_FALSE(fleet->acquire_loaded("a", false).ok());
    EXPECT_EQ(stage.made, 1) << "looking must not load";
}

TEST_F(FleetTest, the_time_counts_from_the_end_of_a_request) {
    keep = {{"a", KeepAlive{10}}};
    auto fleet = make();
    auto lease = fleet->acquire("a", true, never);
    ASSERT_TRUE(lease.ok());
    advance(1h);
    fleet->tick();
    EXPECT_EQ(stage.alive, 1);
    lease->release();
    fleet->tick();
    EXPECT_EQ(stage.alive, 1);
    advance(10s);
    fleet->tick();
    EXPECT_TRUE(wait_until([&] { return stage.alive == 0; }));
}

// UX03
TEST_F(FleetTest, UX03_a_pinned_model_stays) {
    pinned = "a";
    FleetLimits limits;
    limits.max_models = 2;
    auto fleet = make(limits);
    for (const char* name : {"a", "b", "c", "b"}) {
        ASSERT_TRUE(fleet->acquire(name, true, never).ok());
        advance(1s);
    }
    for (const auto& line : stage.lines()) EXPECT_NE(line, "stop a");
    FleetLimits one;
    Stage& shared = stage;
    (void)shared;
    auto full = make(one);
    ASSERT_TRUE(full->acquire("a", true, never).ok());
    auto refused = full->acquire("b", true, never);
    ASSERT_FALSE(refused.ok());
    EXPECT_EQ(refused.error().code, ErrorCode::conflict);
}

// UX10
TEST_F(FleetTest, UX10_an_engine_that_died_is_not_called_loaded) {
    FleetLimits limits;
    limits.failure_memory = 10s;
    auto fleet = make(limits);
    ASSERT_TRUE(fleet->acquire("a", true, never).ok());
    last.load()->dead = true;
    EXPECT_EQ(fleet->engines().at(0).status.state, EngineState::failed);
    EXPECT_FALSE(fleet->acquire_loaded("a", true).ok());
    auto failed = fleet->acquire("a", true, never);
    ASSERT_FALSE(failed.ok());
    EXPECT_NE(failed.error().message().find("signal 9"), std::string::npos);
    advance(11s);
    EXPECT_TRUE(fleet->acquire("a", true, never).ok()) << "the next request after a while loads it again";
    EXPECT_EQ(stage.most_alive, 1);
}

TEST_F(FleetTest, a_failed_load_is_told_to_all_who_wait_and_not_repeated_at_once) {
    auto fleet = make();
    stage.fail = true;
    for (int i = 0; i < 3; i++) {
        auto failed = fleet->acquire("a", true, never);
        ASSERT_FALSE(failed.ok());
        EXPECT_NE(failed.error().message().find("bad model"), std::string::npos);
    }
    EXPECT_EQ(stage.made, 1);
    stage.fail = false;
    advance(1h);
    EXPECT_TRUE(fleet->acquire("a", true, never).ok());
}

TEST_F(FleetTest, what_does_not_fit_is_refused_with_the_reason) {
    auto fleet = make();
    std::promise<std::string> told;
    std::atomic<bool> once{false};
    fleet->set_load_failed([&](const std::string& id, const Error&) {
        if (!once.exchange(true)) told.set_value(id);
    });
    stage.refuse = true;
    auto refused = fleet->acquire("big", true, never);
    ASSERT_FALSE(refused.ok());
    EXPECT_EQ(refused.error().code, ErrorCode::no_space);
    EXPECT_EQ(told.get_future().get(), "big");
    stage.refuse = false;
    EXPECT_TRUE(fleet->acquire("small", true, never).ok()) << "a failed place must not block others";
}

TEST_F(FleetTest, who_left_does_not_wait) {
    auto fleet = make();
    stage.hold_ready = true;
    std::atomic<bool> gone{false};
    std::thread leave([&] {
        wait_until([&] { return stage.made == 1; });
        gone = true;
    });
    auto lease = fleet->acquire("a", true, [&] { return gone.load(); });
    leave.join();
    ASSERT_FALSE(lease.ok());
    EXPECT_EQ(lease.error().code, ErrorCode::cancelled);
    stage.hold_ready = false;
    EXPECT_TRUE(fleet->acquire("a", true, never).ok());
}

TEST_F(FleetTest, waiting_ends_at_the_limit) {
    FleetLimits limits;
    limits.load_wait = 100ms;
    auto fleet = make(limits);
    stage.hold_ready = true;
    std::chrono::milliseconds retry{0};
    auto lease = fleet->acquire("a", true, never, &retry);
    ASSERT_FALSE(lease.ok());
    EXPECT_EQ(lease.error().code, ErrorCode::timeout);
    EXPECT_GT(retry.count(), 0);
}

TEST_F(FleetTest, a_fixed_model_takes_every_name_and_does_not_make_wait) {
    FleetLimits limits;
    limits.fixed = true;
    auto fleet = make(limits);
    stage.hold_ready = true;
    ASSERT_TRUE(fleet->load("a").ok());
    std::chrono::milliseconds retry{0};
    auto loading = fleet->acquire("whatever", true, never, &retry);
    ASSERT_FALSE(loading.ok());
    EXPECT_EQ(loading.error().code, ErrorCode::unavailable);
    EXPECT_GT(retry.count(), 0);
    stage.hold_ready = false;
    ASSERT_TRUE(wait_until([&] { return fleet->acquire("whatever", true, never).ok(); }));
    EXPECT_EQ(fleet->acquire("another", true, never)->model(), "a");
    advance(1000h);
    fleet->tick();
    EXPECT_EQ(stage.alive, 1);
    EXPECT_EQ(fleet->unload("a", 1s).error().code, ErrorCode::conflict);
}

TEST_F(FleetTest, unload_waits_for_requests_and_knows_names) {
    auto fleet = make();
    EXPECT_EQ(fleet->unload("a", 1s).error().code, ErrorCode::not_found);
    auto lease = fleet->acquire("a", true, never);
    ASSERT_TRUE(lease.ok());
    EXPECT_EQ(fleet->unload("a", 20ms).error().code, ErrorCode::timeout);
    EXPECT_EQ(stage.alive, 1);
    std::thread later([&] {
        std::this_thread::sleep_for(50ms);
        lease->release();
    });
    EXPECT_TRUE(fleet->unload("first", kPatience).ok());
    later.join();
    EXPECT_EQ(stage.alive, 0);
    EXPECT_TRUE(fleet->engines().empty());
}

TEST_F(FleetTest, an_unnamed_request_takes_what_is_there) {
    auto fleet = make();
    EXPECT_EQ(fleet->acquire("", true, never)->model(), "default");
    ASSERT_TRUE(fleet->acquire("a", true, never).ok());
    EXPECT_EQ(fleet->acquire("", true, never)->model(), "a");
    EXPECT_EQ(fleet->acquire_loaded("", false)->model(), "a");
    EXPECT_EQ(stage.made, 2);
}

// UX06
TEST_F(FleetTest, UX06_changed_settings_wait_for_running_requests) {
    auto fleet = make();
    auto lease = fleet->acquire("a", true, never);
    ASSERT_TRUE(lease.ok());
    fleet->reconfigure(FleetLimits{}, resolver());
    fleet->tick();
    EXPECT_EQ(stage.alive, 1) << "nothing changed";
    context = 4096;
    fleet->reconfigure(FleetLimits{}, resolver());
    fleet->tick();
    EXPECT_EQ(stage.alive, 1) << "a request is running";
    lease->release();
    fleet->tick();
    EXPECT_TRUE(wait_until([&] { return stage.alive == 0; }));
    ASSERT_TRUE(fleet->acquire("a", true, never).ok());
    EXPECT_EQ(fleet->engines().at(0).settings.context, 4096u);
}

TEST_F(FleetTest, load_without_waiting_and_never_over_a_busy_one) {
    auto fleet = make();
    ASSERT_TRUE(fleet->load("a").ok());
    ASSERT_TRUE(fleet->load("a").ok());
    auto lease = fleet->acquire("a", true, never);
    ASSERT_TRUE(lease.ok());
    EXPECT_EQ(fleet->load("b").error().code, ErrorCode::conflict);
    lease->release();
    EXPECT_TRUE(wait_until([&] { return fleet->load("b").ok(); }));
    EXPECT_EQ(fleet->load("missing").error().code, ErrorCode::not_found);
}

TEST_F(FleetTest, stop_ends_all_and_those_who_wait) {
    auto fleet = make();
    auto lease = fleet->acquire("a", true, never);
    ASSERT_TRUE(lease.ok());
    std::thread waits([&] { EXPECT_EQ(fleet->acquire("b", true, never).error().code, ErrorCode::unavailable); });
    std::this_thread::sleep_for(20ms);
    fleet->stop();
    waits.join();
    EXPECT_EQ(stage.alive, 0);
    lease->release();
    EXPECT_FALSE(fleet->acquire("a", true, never).ok());
    EXPECT_FALSE(fleet->load("a").ok());
}

// Many threads, few places: no deadlock, never more than allowed.
TEST_F(FleetTest, crowd) {
    FleetLimits limits;
    limits.max_models = 2;
    auto fleet = make(limits);
    std::atomic<int> served{0};
    std::vector<std::thread> clients;
    for (int i = 0; i < 16; i++)
        clients.emplace_back([&, i] {
            for (int round = 0; round < 8; round++) {
                std::string name(1, static_cast<char>('a' + (i * 7 + round * 3) % 5));
                auto lease = fleet->acquire(name, true, never);
                ASSERT_TRUE(lease.ok()) << lease.error().message();
                EXPECT_EQ(lease->model(), name);
                if (round == 4) (void)fleet->unload(name, 1ms);
                served++;
            }
        });
    for (auto& client : clients) client.join();
    EXPECT_EQ(served, 16 * 8);
    EXPECT_LE(stage.most_alive, 2);
    EXPECT_EQ(stage.begun, stage.ended);
}

}  // namespace
}  // namespace onebit
