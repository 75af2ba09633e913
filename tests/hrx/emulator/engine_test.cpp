// If this fails, dispatches run wrong groups, lose waves, or differ between checked and fast mode.
#include "hrx/emulator/engine.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <fstream>

#include "tests/hrx/emulator/group.h"

namespace onebit::emulator {
namespace {

std::vector<u8> kernel_file() {
    std::ifstream file(ONEBIT_TEST_KERNELS, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
}

// Buffers, arguments and one kernel of kernels.cc.
class KernelRun {
public:
    KernelRun(Mode mode, const char* kernel) {
        settings_.mode = mode;
        auto object = CodeObject::load(kernel_file(), memory_);
        EXPECT_TRUE(object.ok()) << object.error().message();
        object_ = std::move(object).value();
        dispatch_.kernel = object_->kernel(kernel);
        EXPECT_NE(dispatch_.kernel, nullptr);
        dispatch_.group_bytes = dispatch_.kernel->descriptor.group_bytes;
        dispatch_.private_bytes = dispatch_.kernel->descriptor.private_bytes;
    }
    template <typename T>
    KernelRun& buffer(std::vector<T>& data) {
        memory_.add({reinterpret_cast<u64>(data.data()), data.size() * sizeof(T), true});
        return value(reinterpret_cast<u64>(data.data()));
    }
    template <typename T>
    KernelRun& value(T value) {
        arguments_.resize((arguments_.size() + sizeof(T) - 1) / sizeof(T) * sizeof(T));
        const auto* bytes = reinterpret_cast<const u8*>(&value);
        arguments_.insert(arguments_.end(), bytes, bytes + sizeof(T));
        return *this;
    }
    std::optional<Trap> run(u32 groups, u32 size) {
        arguments_.resize(256);
        memory_.add({reinterpret_cast<u64>(arguments_.data()), arguments_.size(), false});
        dispatch_.kernarg = reinterpret_cast<u64>(arguments_.data());
        if (groups != 0) {
            dispatch_.grid[0] = groups * size;
            dispatch_.group[0] = size;
        }
        return Engine(memory_, settings_).run(dispatch_);
    }
    Dispatch& dispatch() { return dispatch_; }
    Settings& settings() { return settings_; }

private:
    MemoryMap memory_;
    Settings settings_;
    std::unique_ptr<CodeObject> object_;
    Dispatch dispatch_;
    std::vector<u8> arguments_;
};

float random_value(u32& state) {
    state = state * 1664525 + 1013904223;
    return static_cast<float>(state >> 8) / 8388608.0f - 1.0f;
}

class BothModes : public testing::TestWithParam<Mode> {};
INSTANTIATE_TEST_SUITE_P(Modes, BothModes, testing::Values(Mode::checked, Mode::fast),
                         [](const auto& info) { return info.param == Mode::checked ? "checked" : "fast"; });

}  // namespace

TEST_P(BothModes, AddsVectorsOfEveryEdgeLength) {
    for (int n : {0, 1, 31, 32, 33, 255, 256, 257, 1009, 4096}) {
        std::vector<float> a(static_cast<std::size_t>(n) + 1), b(a.size()), c(a.size(), -7.0f);
        u32 state = 1;
        for (float& x : a) x = random_value(state);
        for (float& x : b) x = random_value(state);
        KernelRun run(GetParam(), "vec_add");
        auto trap = run.buffer(c).buffer(a).buffer(b).value(n).run(static_cast<u32>(n) / 256 + 1, 256);
        ASSERT_FALSE(trap) << trap->message();
        for (int i = 0; i < n; ++i)
            EXPECT_EQ(c[static_cast<std::size_t>(i)], a[static_cast<std::size_t>(i)] + b[static_cast<std::size_t>(i)]);
        EXPECT_EQ(c[static_cast<std::size_t>(n)], -7.0f);
    }
}

TEST_P(BothModes, NormalisesRowsThroughLds) {
    for (int n : {1, 33, 255, 257, 1009}) {
        const int rows = 3;
        std::vector<float> x(static_cast<std::size_t>(n * rows)), w(static_cast<std::size_t>(n)), y(x.size());
        u32 state = 7;
        for (float& v : x) v = random_value(state);
        for (float& v : w) v = random_value(state);
        KernelRun run(GetParam(), "rms_norm");
        auto trap = run.buffer(y).buffer(x).buffer(w).value(n).value(1e-5f).run(rows, 256);
        ASSERT_FALSE(trap) << trap->message();
        for (int row = 0; row < rows; ++row) {
            double sum = 0;
            auto at = [&](int i) { return static_cast<std::size_t>(row * n + i); };
            for (int i = 0; i < n; ++i) sum += static_cast<double>(x[at(i)]) * static_cast<double>(x[at(i)]);
            const double scale = 1 / std::sqrt(sum / n + 1e-5);
            for (int i = 0; i < n; ++i)
                EXPECT_NEAR(y[at(i)],
                            static_cast<double>(x[at(i)]) * scale * static_cast<double>(w[static_cast<std::size_t>(i)]),
                            2e-6);
        }
    }
}

TEST_P(BothModes, MultipliesMatricesOnWaveInstructions) {
    const int k = 48;
    std::vector<f16> a(16 * k), b(16 * k);
    std::vector<float> c(256, -7.0f);
    u32 state = 3;
    for (f16& v : a) v = static_cast<f16>(random_value(state));
    for (f16& v : b) v = static_cast<f16>(random_value(state));
    KernelRun run(GetParam(), "matmul_f16");
    auto trap = run.buffer(c).buffer(a).buffer(b).value(k).run(1, 32);
    ASSERT_FALSE(trap) << trap->message();
    for (int i = 0; i < 16; ++i)
        for (int j = 0; j < 16; ++j) {
            double sum = 0;
            for (int n = 0; n < k; ++n)
                sum += static_cast<double>(a[static_cast<std::size_t>(i * k + n)]) *
                       static_cast<double>(b[static_cast<std::size_t>(j * k + n)]);
            EXPECT_NEAR(c[static_cast<std::size_t>(i * 16 + j)], sum, 1e-5);
        }
}

TEST_P(BothModes, CountsThroughScratchAndAtomics) {
    std::vector<u32> counts(64);
    std::vector<u8> values(1000);
    std::vector<u32> wanted(64);
    u32 state = 5;
    for (u8& v : values) {
        v = static_cast<u8>(random_value(state) * 100.0f + 100.0f);
        ++wanted[v & 63];
    }
    KernelRun run(GetParam(), "histogram");
    EXPECT_GT(run.dispatch().private_bytes, 0u);
    auto trap = run.buffer(counts).buffer(values).value(1000).run(1, 64);
    ASSERT_FALSE(trap) << trap->message();
    EXPECT_EQ(counts, wanted);
}

TEST_P(BothModes, ThreeDimensions) {
    const u32 width = 16, height = 8, depth = 4;
    std::vector<i16> in(width * height * depth);
    std::vector<float> out(in.size());
    for (std::size_t i = 0; i < in.size(); ++i) in[i] = static_cast<i16>(i * 37 % 1000 - 500);
    KernelRun run(GetParam(), "three_dimensions");
    run.buffer(out).buffer(in).value(width).value(height);
    const u32 grid[3] = {width, height, depth}, group[3] = {8, 4, 2};
    std::copy(grid, grid + 3, run.dispatch().grid);
    std::copy(group, group + 3, run.dispatch().group);
    auto trap = run.run(0, 0);
    ASSERT_FALSE(trap) << trap->message();
    for (u32 z = 0; z < depth; ++z)
        for (u32 y = 0; y < height; ++y)
            for (u32 x = 0; x < width; ++x) {
                const std::size_t i = (z * height + y) * width + x;
                EXPECT_EQ(out[i], static_cast<float>(in[i]) / static_cast<float>(x + 2 * y + 3 * z + 1)) << i;
            }
}

TEST_P(BothModes, AReadBehindTheEndTraps) {
    std::vector<float> in(64), out(32);
    KernelRun run(GetParam(), "reads_behind");
    auto trap = run.buffer(out).buffer(in).value(33).run(1, 32);
    ASSERT_TRUE(trap);
    EXPECT_EQ(trap->kind, TrapKind::out_of_bounds);
    EXPECT_EQ(trap->kernel, "reads_behind");
    EXPECT_EQ(trap->lane, 31);
}

TEST_P(BothModes, AnEndlessLoopIsStopped) {
    std::vector<u32> flag(1);
    KernelRun run(GetParam(), "endless");
    run.settings().instructions_per_wave = 100000;
    auto trap = run.buffer(flag).run(1, 32);
    ASSERT_TRUE(trap);
    EXPECT_EQ(trap->kind, TrapKind::runaway);
}

TEST(Engine, ModesGiveTheSameBits) {
    const int columns = 256, rows = 13;
    struct Block {
        f16 scale;
        u8 values[16];
    };
    std::vector<Block> weights(static_cast<std::size_t>(rows * columns / 32));
    std::vector<float> x(static_cast<std::size_t>(columns));
    u32 state = 11;
    for (float& v : x) v = random_value(state);
    for (Block& block : weights) {
        block.scale = static_cast<f16>(random_value(state) * 0.1f);
        for (u8& v : block.values) v = static_cast<u8>(static_cast<u32>(random_value(state) * 8388608.0f) >> 4);
    }
    std::vector<float> results[2];
    for (Mode mode : {Mode::checked, Mode::fast}) {
        std::vector<float>& y = results[mode == Mode::fast ? 1 : 0];
        y.assign(16, -7.0f);
        KernelRun run(mode, "matvec_q4");
        auto trap = run.buffer(y).buffer(weights).buffer(x).value(columns).value(rows).run(4, 128);
        ASSERT_FALSE(trap) << trap->message();
        for (int row = 0; row < rows; ++row) {
            double sum = 0;
            for (int i = 0; i < columns; ++i) {
                const Block& block = weights[static_cast<std::size_t>((row * columns + i) / 32)];
                const int at = i % 32;
                const int nibble = at < 16 ? block.values[at] & 15 : block.values[at - 16] >> 4;
                sum += static_cast<double>(block.scale) * (nibble - 8) *
                       static_cast<double>(x[static_cast<std::size_t>(i)]);
            }
            EXPECT_NEAR(y[static_cast<std::size_t>(row)], sum, 1e-4);
        }
        EXPECT_EQ(y[13], -7.0f);
    }
    EXPECT_EQ(std::memcmp(results[0].data(), results[1].data(), 64), 0);
}

TEST(Engine, GroupsAndPartialGroupsRunOnce) {
    for (u32 workers : {1u, 2u, 5u})
        for (u32 grid : {1u, 31u, 33u, 64u, 100u, 1000u}) {
            GroupRun run(Mode::checked, workers);
            run.words().assign(1100, 0);
            const std::string count = R"(
                s_load_b64 s[4:5], s[0:1], null
                s_lshl_b32 s2, s2, 6
                v_add_nc_u32 v1, s2, v0
                v_lshlrev_b32 v1, 2, v1
                v_mov_b32 v2, 1
                s_waitcnt lgkmcnt(0)
                global_atomic_add_u32 v1, v2, s[4:5])";
            auto trap = run.run(count, grid, 64);
            ASSERT_FALSE(trap) << trap->message();
            for (u32 k = 0; k < 1100; ++k) EXPECT_EQ(run.words()[k], k < grid ? 1u : 0u) << grid << " " << k;
        }
}

TEST(Engine, WavesThatWaitForEachOtherInMemoryGoOn) {
    // wave 0 spins until wave 1 has written
    GroupRun run;
    run.words().assign(2, 0);
    auto trap = run.run(R"(
        s_load_b64 s[4:5], s[0:1], null
        v_mov_b32 v1, 0
        v_mov_b32 v2, 1
        v_readfirstlane_b32 s6, v0
        s_waitcnt lgkmcnt(0)
        s_cmp_lg_u32 s6, 0
        s_cbranch_scc1 writer
        again:
        global_load_b32 v3, v1, s[4:5] glc
        s_waitcnt vmcnt(0)
        v_readfirstlane_b32 s7, v3
        s_cmp_eq_u32 s7, 0
        s_cbranch_scc1 again
        s_endpgm
        writer:
        global_store_b32 v1, v2, s[4:5])",
                        64, 64);
    EXPECT_FALSE(trap) << trap->message();
}

TEST(Engine, WavesThatEndDoNotHoldTheBarrier) {
    GroupRun run;
    auto trap = run.run(
        "v_readfirstlane_b32 s6, v0\ns_cmp_eq_u32 s6, 0\ns_cbranch_scc1 done\ns_barrier\ns_barrier\ndone:", 96, 96);
    EXPECT_FALSE(trap) << trap->message();
}

TEST(Engine, SettingsFromTheEnvironment) {
    for (const char* name : {"ONEBIT_EMULATOR_MODE", "ONEBIT_EMULATOR_THREADS", "ONEBIT_EMULATOR_LIMIT"})
        unsetenv(name);
    EXPECT_EQ(settings_from_environment().mode, Mode::checked);
    EXPECT_EQ(settings_from_environment().workers, 2u);
    setenv("ONEBIT_EMULATOR_MODE", "fast", 1);
    setenv("ONEBIT_EMULATOR_THREADS", "3", 1);
    setenv("ONEBIT_EMULATOR_LIMIT", "1000", 1);
    EXPECT_EQ(settings_from_environment().mode, Mode::fast);
    EXPECT_EQ(settings_from_environment().workers, 3u);
    EXPECT_EQ(settings_from_environment().instructions_per_wave, 1000u);
    setenv("ONEBIT_EMULATOR_MODE", "quick", 1);
    setenv("ONEBIT_EMULATOR_THREADS", "0", 1);
    setenv("ONEBIT_EMULATOR_LIMIT", "-1", 1);
    EXPECT_EQ(settings_from_environment().mode, Mode::checked);
    EXPECT_EQ(settings_from_environment().workers, 2u);
    EXPECT_EQ(settings_from_environment().instructions_per_wave, u64{1} << 32);
    for (const char* name : {"ONEBIT_EMULATOR_MODE", "ONEBIT_EMULATOR_THREADS", "ONEBIT_EMULATOR_LIMIT"})
        unsetenv(name);
}

}  // namespace onebit::emulator
