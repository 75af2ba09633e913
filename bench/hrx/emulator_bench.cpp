// How many wave instructions a second the emulator executes, for the mix of a mat-vec kernel (Q4_0, one wave a row).
// usage: emulator-bench KERNELS.hsaco [SECONDS]   (kernels of tests/hrx/emulator/kernels.cc); prints one JSON line a
// mode.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <vector>

#include "hrx/emulator/engine.h"

namespace {

using namespace onebit::emulator;

struct Block {
    f16 scale;
    u8 values[16];
};

double measure(const Kernel& kernel, const MemoryMap& memory, Mode mode, u64 arguments, u32 rows, double seconds) {
    Settings settings;
    settings.mode = mode;
    Engine engine(memory, settings);
    Dispatch dispatch;
    dispatch.kernel = &kernel;
    dispatch.grid[0] = rows / 4 * 128;
    dispatch.group[0] = 128;
    dispatch.kernarg = arguments;
    if (auto trap = engine.run(dispatch)) {
        std::fprintf(stderr, "%s\n", trap->message().c_str());
        std::exit(1);
    }
    const u64 before = engine.instructions();
    const auto start = std::chrono::steady_clock::now();
    double elapsed = 0;
    while (elapsed < seconds) {
        engine.run(dispatch);
        elapsed = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    }
    return static_cast<double>(engine.instructions() - before) / elapsed / 1e6;
}

}  // namespace

int main(int argc, char** argv) {
    if (argc < 2) {
        std::fprintf(stderr, "usage: emulator-bench KERNELS.hsaco [SECONDS]\n");
        return 2;
    }
    const double seconds = argc > 2 ? std::atof(argv[2]) : 3.0;
    std::ifstream file(argv[1], std::ios::binary);
    const std::vector<u8> bytes{std::istreambuf_iterator<char>(file), {}};
    MemoryMap memory;
    auto object = CodeObject::load(bytes, memory);
    if (!object) {
        std::fprintf(stderr, "%s: %s\n", argv[1], object.error().message().c_str());
        return 1;
    }
    const Kernel* kernel = (*object)->kernel("matvec_q4");
    if (kernel == nullptr) {
        std::fprintf(stderr, "%s: expected a kernel matvec_q4, found none\n", argv[1]);
        return 1;
    }
    const int columns = 4096;
    const int rows = 512;
    std::vector<Block> weights(static_cast<std::size_t>(rows) * columns / 32);
    std::vector<float> x(columns);
    std::vector<float> y(rows);
    u32 state = 1;
    auto next = [&] { return state = state * 1664525 + 1013904223; };
    for (Block& block : weights) {
        block.scale = static_cast<f16>(static_cast<float>(next() >> 16) / 65536.0f);
        for (u8& value : block.values) value = static_cast<u8>(next() >> 24);
    }
    for (float& value : x) value = static_cast<float>(next() >> 16) / 65536.0f;
    struct {
        u64 y, weights, x;
        int columns, rows;
    } arguments{reinterpret_cast<u64>(y.data()), reinterpret_cast<u64>(weights.data()), reinterpret_cast<u64>(x.data()),
                columns, rows};
    memory.add({arguments.y, y.size() * 4, true});
    memory.add({arguments.weights, weights.size() * sizeof(Block), false});
    memory.add({arguments.x, x.size() * 4, false});
    memory.add({reinterpret_cast<u64>(&arguments), sizeof(arguments), false});
    for (Mode mode : {Mode::checked, Mode::fast})
        std::printf(
            "{\"mode\": \"%s\", \"workers\": 2, \"kernel\": \"matvec_q4\", \"columns\": %d, \"rows\": %d, "
            "\"million_wave_instructions_per_s\": %.2f}\n",
            mode == Mode::checked ? "checked" : "fast", columns, rows,
            measure(*kernel, memory, mode, reinterpret_cast<u64>(&arguments), rows, seconds));
    return 0;
}
