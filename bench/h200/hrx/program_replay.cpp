// Measures what replaying a program costs: usage: hrx-program-replay DRIVER KERNEL_FOLDER RESULT.json
// Each figure is the median of 21 runs after 3 that do not count, by the host's clock; the raw runs go into the file.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string>
#include <vector>

#include "hrx/runtime/hrx.hpp"

namespace {

using namespace onebit;
using namespace onebit::hrx;
using Clock = std::chrono::steady_clock;

constexpr int warm_up = 3, runs = 21;

template <typename T>
T must(Result<T> result) {
    if (!result.ok()) throw std::runtime_error(result.error().message());
    return std::move(result).value();
}
void must(const Result<void>& result) {
    if (!result.ok()) throw std::runtime_error(result.error().message());
}

double microseconds(Clock::time_point begin, Clock::time_point end) {
    return std::chrono::duration<double, std::micro>(end - begin).count();
}

class Report {
public:
    // unit: of one value; the values are divided by `per` already.
    void add(const std::string& name, const std::string& unit, std::vector<double> values) {
        std::string raw;
        for (const double value : values) raw += (raw.empty() ? "" : ",") + std::to_string(value);
        std::sort(values.begin(), values.end());
        const double median = values[values.size() / 2];
        std::printf("%-64s %10.3f %-6s (%.3f to %.3f)\n", name.c_str(), median, unit.c_str(), values.front(),
                    values.back());
        std::fflush(stdout);
        lines_ += std::string(lines_.empty() ? "" : ",\n") + "  {\"name\": \"" + name + "\", \"unit\": \"" + unit +
                  "\", \"median\": " + std::to_string(median) + ", \"runs\": [" + raw + "]}";
    }
    void write(const std::string& path, const std::string& head) const {
        std::ofstream(path) << "{" << head << ",\n \"results\": [\n" << lines_ << "\n]}\n";
    }

private:
    std::string lines_;
};

template <typename Body>
std::vector<double> repeat(Body&& body) {
    std::vector<double> values;
    for (int i = 0; i < warm_up + runs; ++i) {
        const double value = body();
        if (i >= warm_up) values.push_back(value);
    }
    return values;
}

struct Bench {
    Device device;
    Queue queue;
    Executable kernels;
    Report report;

    hrx_dispatch call(const char* name, const std::vector<hrx_binding>& bindings,
                      const std::vector<uint32_t>& constants) const {
        hrx_dispatch dispatch{};
        dispatch.executable = kernels.get();
        dispatch.kernel = must(kernels.find(name));
        for (int i = 0; i < 3; ++i) dispatch.workgroup_count[i] = dispatch.workgroup_size[i] = 1;
        dispatch.workgroup_size[0] = 32;
        dispatch.bindings = bindings.data();
        dispatch.binding_count = static_cast<uint32_t>(bindings.size());
        dispatch.constants = constants.data();
        dispatch.constant_bytes = static_cast<uint32_t>(constants.size() * 4);
        return dispatch;
    }

    Program empty_kernels(int count, bool barriers) const {
        const std::vector<uint32_t> constants = {0};
        const hrx_dispatch dispatch = call("cts_empty", {}, constants);
        Program program = must(device.create_program());
        for (int i = 0; i < count; ++i) {
            must(program.dispatch(dispatch));
            if (barriers) must(program.barrier());
        }
        must(program.finish());
        return program;
    }

    double submit_and_wait(const Program& program, int times) const {
        const auto begin = Clock::now();
        for (int i = 0; i < times; ++i) must(queue.submit(program));
        must(queue.wait_idle());
        return microseconds(begin, Clock::now());
    }

    void replay(const std::string& way, int count, bool barriers) {
        const auto recorded = Clock::now();
        const Program program = empty_kernels(count, barriers);
        const double record = microseconds(recorded, Clock::now());
        const std::string name =
            way + ", " + std::to_string(count) + " empty kernels" + (barriers ? " with barriers" : "");
        report.add(name + ": record and finish, each", "us", {record / count});
        report.add(name + ": 10 replays, each dispatch", "us",
                   repeat([&] { return submit_and_wait(program, 10) / 10 / count; }));
        report.add(name + ": one replay and wait", "us", repeat([&] { return submit_and_wait(program, 1); }));
    }

    // 1,000 dispatches of one binding and three constants; 100 bindings change before a replay.
    void patch() {
        constexpr uint32_t count = 1000, changed = 100;
        const Buffer one = must(device.allocate(4096)), two = must(device.allocate(4096));
        const std::vector<hrx_binding> bindings = {bind(one)};
        const std::vector<uint32_t> constants = {0, 1, 1};
        const hrx_dispatch dispatch = call("cts_index", bindings, constants);
        const Program program = must(device.create_program());
        for (uint32_t i = 0; i < count; ++i) {
            must(program.dispatch(dispatch));
            must(program.barrier());
        }
        must(program.finish());
        for (const bool spread : {false, true}) {
            std::vector<hrx_patch> patches[2];
            for (uint32_t i = 0; i < changed; ++i) {
                patches[0].push_back({spread ? i * (count / changed) : i, 0, bind(two)});
                patches[1].push_back({spread ? i * (count / changed) : i, 0, bind(one)});
            }
            const std::string where = spread ? "spread over the program" : "next to each other";
            std::vector<double> patching, submitting, plain;
            for (int i = 0; i < warm_up + runs; ++i) {
                const auto a = Clock::now();
                must(program.patch(patches[i % 2]));
                const auto b = Clock::now();
                must(queue.submit(program));
                const auto c = Clock::now();
                must(queue.wait_idle());
                const auto d = Clock::now();
                must(queue.submit(program));
                const auto e = Clock::now();
                must(queue.wait_idle());
                if (i < warm_up) continue;
                patching.push_back(microseconds(a, b));
                submitting.push_back(microseconds(b, c));
                plain.push_back(microseconds(d, e));
            }
            std::vector<double> whole;
            for (size_t i = 0; i < patching.size(); ++i) whole.push_back(patching[i] + submitting[i] - plain[i]);
            report.add("patch 100 bindings " + where + ": the call", "us", patching);
            report.add("patch 100 bindings " + where + ": submit after it", "us", submitting);
            report.add("patch 100 bindings " + where + ": submit without", "us", plain);
            report.add("patch 100 bindings " + where + ": call + added to submit", "us", whole);
        }
    }

    void transfers() {
        constexpr uint64_t size = uint64_t{1} << 30, part = uint64_t{256} << 20;
        const Buffer a = must(device.allocate(size)), b = must(device.allocate(size));
        const Buffer host = must(device.allocate(part, HRX_MEMORY_HOST));
        const auto rate = [&](const std::string& name, uint64_t bytes, const Program& program) {
            must(program.finish());
            report.add(name, "GB/s",
                       repeat([&] { return static_cast<double>(bytes) / submit_and_wait(program, 1) * 1e-3; }));
        };
        const auto fresh = [&] { return must(device.create_program()); };
        Program program = fresh();
        must(program.copy(a, 0, b, 0, size));
        rate("copy 1 GiB on the device (read + written)", 2 * size, program);
        program = fresh();
        must(program.copy(a, 0, b, 3, size - 3));
        rate("copy 1 GiB on the device, ends not aligned alike", 2 * size, program);
        program = fresh();
        must(program.fill(a, 0, size, 7));
        rate("fill 1 GiB", size, program);
        program = fresh();
        must(program.copy(a, 0, host, 0, part));
        rate("copy 256 MiB from the host", part, program);
        program = fresh();
        must(program.copy(host, 0, a, 0, part));
        rate("copy 256 MiB to the host", part, program);
    }

    void hand_over() {
        const Queue second = must(device.create_queue());
        const Semaphore turn = must(device.create_semaphore());
        uint64_t value = 0;
        report.add("semaphore: submit without a program, signal, host waits", "us", repeat([&] {
                       const auto begin = Clock::now();
                       const hrx_semaphore_value signals[] = {at(turn, ++value)};
                       must(queue.submit({}, {}, signals));
                       must(turn.wait(value));
                       return microseconds(begin, Clock::now());
                   }));
        const Program program = empty_kernels(1, false);
        report.add("semaphore: 200 turns between two queues, each", "us", repeat([&] {
                       const auto begin = Clock::now();
                       for (int i = 0; i < 200; ++i) {
                           const hrx_semaphore_value waits[] = {at(turn, value)}, signals[] = {at(turn, value + 1)};
                           must((i % 2 == 0 ? queue : second).submit(program, waits, signals));
                           value++;
                       }
                       must(turn.wait(value));
                       return microseconds(begin, Clock::now()) / 200;
                   }));
    }
};

std::vector<std::byte> read_file(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    if (!file) throw std::runtime_error("cannot read " + path);
    const std::vector<char> text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
    const auto bytes = std::as_bytes(std::span(text));
    return {bytes.begin(), bytes.end()};
}

void set(const char* replay, const char* lanes) {
    setenv("ONEBIT_HRX_CUDA_REPLAY", replay, 1);
    setenv("ONEBIT_HRX_CUDA_LANES", lanes, 1);
}

int run(const std::string& driver, const std::string& folder, const std::string& output) {
    Bench bench;
    bench.device = must(Device::open(driver.c_str(), 0));
    const hrx_device_info info = must(bench.device.info());
    const std::string architecture = info.architecture;
    bench.kernels = must(bench.device.load(
        read_file(folder + "/cts." + (driver == "cuda" ? std::string("sm_80.ptx") : architecture + ".hsaco"))));
    bench.queue = must(bench.device.create_queue());
    std::printf("%s, %s, %u compute units\n", info.name, info.architecture, info.compute_units);
    if (driver == "cuda") {
        for (const char* lanes : {"1", "2", "4", "16", "1000"}) {
            set("graph", lanes);
            bench.replay(std::string("graph, ") + lanes + " lanes", 1000, false);
        }
        set("stream", "");
        bench.replay("stream", 1000, false);
        set("graph", "");
        bench.replay("graph", 1000, true);
        // where a graph begins to pay
        for (const int count : {1, 2, 3, 4, 6, 10, 30}) {
            set("graph", "");
            bench.replay("graph", count, true);
            set("stream", "");
            bench.replay("stream", count, true);
        }
        set("", "");
    }
    for (const int count : {1, 10, 100, 1000, 5000}) bench.replay("as chosen", count, true);
    bench.replay("as chosen", 1000, false);
    bench.patch();
    bench.hand_over();
    bench.transfers();
    bench.report.write(output, std::string("\"device\": \"") + info.name + "\", \"architecture\": \"" + architecture +
                                   "\", \"statistic\": \"median of " + std::to_string(runs) + "\"");
    return 0;
}

}  // namespace

int main(int argc, char** argv) {
    if (argc != 4) {
        std::fprintf(stderr, "usage: hrx-program-replay DRIVER KERNEL_FOLDER RESULT.json\n");
        return 2;
    }
    try {
        return run(argv[1], argv[2], argv[3]);
    } catch (const std::exception& error) {
        std::fprintf(stderr, "%s\n", error.what());
        return 1;
    }
}
