// What times the kernels of hrx-kernel-bench: dispatches, samples of results, and the report.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

#include "hrx/kernels/kernel_set.h"
#include "hrx/kernels/shape.h"
#include "hrx/runtime/hrx.hpp"
#include "tests/must.h"

namespace onebit::hrx::kernels::bench {

constexpr int warm_up = 2, runs = 9;
// What an H200 reaches: measured read bandwidth, and matrix products of bf16 by the vendor's library.
constexpr double limit_gb = 4600, limit_tflop = 790;

// One dispatch.
struct Call {
    std::string kernel;
    Launch launch{};
    std::vector<std::byte> constants;
    std::vector<hrx_binding> bindings;
    uint32_t lds = 0;
};

template <typename Block>
Call call(const std::string& kernel, const Block& block, const Launch& launch, std::vector<hrx_binding> bindings,
          uint32_t lds = 0) {
    const auto constants = constants_of(block);
    return {kernel, launch, {constants.begin(), constants.end()}, std::move(bindings), lds};
}
template <typename Block>
Call call(const std::string& kernel, const Block& block, std::vector<hrx_binding> bindings) {
    return call(kernel, block, launch(block), std::move(bindings));
}

// How far a sampled result is from the reference, as a part of what is allowed.
struct Sample {
    size_t at;
    double want, allowed;
};

struct Work {
    std::string name;
    std::vector<Call> calls;     // run after each other, over and over
    double bytes = 0, flop = 0;  // of one call; one of them is 0
    Buffer out;
    std::vector<Sample> samples;  // of the first call
    bool barriers = true;
};

class Bench {
public:
    Bench(const std::string& driver, bool small) : small(small), device_(must(Device::open(driver.c_str(), 0))) {
        info_ = must(device_.info());
        queue_ = must(device_.create_queue());
        std::printf("%s, %s, %u compute units\n%-44s %10s %12s %8s  %s\n", info_.name, info_.architecture,
                    info_.compute_units, "kernel", "us", "rate", "of limit", "worst of samples / allowed");
    }
    const bool small;
    const hrx_device_info& info() const { return info_; }
    uint32_t scaled(uint32_t full, uint32_t little) const { return small ? little : full; }

    template <typename T>
    Buffer upload(const std::vector<T>& values, uint32_t copies = 1) const {
        Buffer buffer = must(device_.allocate(values.size() * sizeof(T) * copies));
        for (uint32_t i = 0; i < copies; ++i) {
            must(buffer.write(std::span<const T>(values), uint64_t{i} * values.size() * sizeof(T)));
        }
        return buffer;
    }
    Buffer memory(uint64_t bytes) const { return must(device_.allocate(bytes)); }

    void measure(const Work& work) {
        const double check = worst(work);
        const uint32_t rounds = small ? 2 : std::max<uint32_t>(24, static_cast<uint32_t>(work.calls.size()));
        const Program program = must(device_.create_program());
        must(program.timestamp());
        for (uint32_t i = 0; i < rounds; ++i) {
            add(program, work.calls[i % work.calls.size()]);
            if (work.barriers) must(program.barrier());
        }
        must(program.timestamp());
        must(program.finish());
        std::vector<double> times;
        for (int i = 0; i < warm_up + runs; ++i) {
            submit(program);
            const auto stamps = must(program.timestamps(2));
            if (i >= warm_up) times.push_back(static_cast<double>(stamps[1] - stamps[0]) * 1e-3 / rounds);
        }
        report(work, times, check);
    }

    void write(const std::string& path) const {
        std::ofstream(path) << "{\"device\": \"" << info_.name << "\", \"architecture\": \"" << info_.architecture
                            << "\", \"statistic\": \"median of " << runs << "\", \"limit_gb\": " << limit_gb
                            << ", \"limit_tflop\": " << limit_tflop << ",\n \"results\": [\n"
                            << lines_ << "\n]}\n";
    }
    bool all_right() const { return all_right_; }

private:
    void add(const Program& program, const Call& call) {
        Executable& image = images_[call.kernel];
        if (!image) {
            const loom::Kernel& kernel = *must(loom::find_kernel(call.kernel));
            image = must(device_.load(must(loom::generic_image(kernel, info_.architecture)).bytes));
        }
        hrx_dispatch dispatch{};
        dispatch.executable = image.get();
        dispatch.kernel = must(image.find(call.kernel.c_str()));
        std::copy(std::begin(call.launch.groups), std::end(call.launch.groups), dispatch.workgroup_count);
        dispatch.workgroup_size[0] = call.launch.threads;
        dispatch.workgroup_size[1] = dispatch.workgroup_size[2] = 1;
        dispatch.dynamic_lds_bytes = call.lds;
        dispatch.bindings = call.bindings.data();
        dispatch.binding_count = static_cast<uint32_t>(call.bindings.size());
        dispatch.constants = call.constants.data();
        dispatch.constant_bytes = static_cast<uint32_t>(call.constants.size());
        must(program.dispatch(dispatch));
    }
    void submit(const Program& program) const {
        must(queue_.submit(program));
        must(queue_.wait_idle(100'000'000'000));
    }
    double worst(const Work& work) {
        const Program program = must(device_.create_program());
        add(program, work.calls.front());
        must(program.finish());
        submit(program);
        double most = 0;
        for (const Sample& sample : work.samples) {
            const double got = must(work.out.read<float>(1, sample.at * sizeof(float))).front();
            const double part = got == sample.want ? 0 : std::fabs(got - sample.want) / sample.allowed;
            most = std::isnan(part) ? INFINITY : std::max(most, part);
        }
        return most;
    }
    void report(const Work& work, std::vector<double> times, double check) {
        std::string raw;
        for (const double time : times) raw += (raw.empty() ? "" : ",") + std::to_string(time);
        std::sort(times.begin(), times.end());
        const double median = times[times.size() / 2];
        const double rate = work.flop > 0 ? work.flop / median * 1e-6 : work.bytes / median * 1e-3;
        const double part = rate / (work.flop > 0 ? limit_tflop : limit_gb) * 100;
        const char* unit = work.flop > 0 ? "TFLOP/s" : "GB/s";
        const bool right = check <= 1;
        all_right_ = all_right_ && right;
        char line[256];
        std::snprintf(line, sizeof line, "%-44s %10.2f %7.1f %s %6.1f %%  %.3f %s", work.name.c_str(), median, rate,
                      unit, part, check, right ? "right" : "WRONG");
        std::printf("%s\n", line);
        std::fflush(stdout);
        lines_ += std::string(lines_.empty() ? "" : ",\n") + "  {\"name\": \"" + work.name +
                  "\", \"us\": " + std::to_string(median) + ", \"rate\": " + std::to_string(rate) + ", \"unit\": \"" +
                  unit + "\", \"worst\": " + std::to_string(check) + ", \"right\": " + (right ? "true" : "false") +
                  ", \"runs\": [" + raw + "]}";
    }

    Device device_;
    Queue queue_;
    hrx_device_info info_{};
    std::map<std::string, Executable> images_;
    std::string lines_;
    bool all_right_ = true;
};

}  // namespace onebit::hrx::kernels::bench
