// How fast the inputs of a graph reach Vulkan memory: ordinary and shareable memory, written at once or from pinned
// memory by the stream, by size. One line of JSON a case: medians of the repeats, and whether the bytes arrived.
//
// tandem-upload [--device NAME] [--backends FOLDER] [--repeats N] [--megabytes N,N,...]
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <iostream>
#include <sstream>
#include <string>
#include <vector>

#include "ggml-backend.h"
#include "ggml.h"
#include "tandem/owner.h"

namespace {

using Clock = std::chrono::steady_clock;

[[noreturn]] void fail(const std::string& text) {
    std::cerr << "tandem-upload: " << text << "\n";
    std::exit(1);
}

double median_us(int repeats, const std::function<void()>& work) {
    std::vector<double> times;
    for (int i = 0; i <= repeats; ++i) {  // the first is warm-up
        const auto start = Clock::now();
        work();
        times.push_back(std::chrono::duration<double, std::micro>(Clock::now() - start).count());
    }
    times.erase(times.begin());
    std::nth_element(times.begin(), times.begin() + times.size() / 2, times.end());
    return times[times.size() / 2];
}

struct Case {
    const char* memory;
    ggml_backend_buffer_t buffer;
};

void measure(ggml_backend_t backend, const Case& target, size_t bytes, int repeats) {
    ggml_backend_dev_t device = ggml_backend_get_device(backend);
    ggml_backend_buffer_t pinned = ggml_backend_buft_alloc_buffer(ggml_backend_dev_host_buffer_type(device), bytes);
    if (pinned == nullptr) fail("no pinned memory of " + std::to_string(bytes) + " bytes");
    auto* staged = static_cast<char*>(ggml_backend_buffer_get_base(pinned));
    std::vector<char> source(bytes), back(bytes);
    for (size_t i = 0; i < bytes; ++i) source[i] = static_cast<char>(i * 131 + (i >> 12));

    ggml_init_params params = {ggml_tensor_overhead(), nullptr, true};
    ggml_context* context = ggml_init(params);
    ggml_tensor* tensor = ggml_new_tensor_1d(context, GGML_TYPE_I8, static_cast<int64_t>(bytes));
    tensor->buffer = target.buffer;
    tensor->data = ggml_backend_buffer_get_base(target.buffer);

    const auto report = [&](const char* how, double us) {
        ggml_backend_tensor_get(tensor, back.data(), 0, bytes);
        const bool right = std::memcmp(back.data(), source.data(), bytes) == 0;
        std::printf("{\"memory\":\"%s\",\"how\":\"%s\",\"bytes\":%zu,\"us\":%.1f,\"gb_per_s\":%.2f,\"right\":%s}\n",
                    target.memory, how, bytes, us, static_cast<double>(bytes) / us / 1e3, right ? "true" : "false");
        std::fflush(stdout);
        ggml_backend_buffer_clear(target.buffer, 0);
    };
    report("written at once", median_us(repeats, [&] { ggml_backend_tensor_set(tensor, source.data(), 0, bytes); }));
    const double copied = median_us(repeats, [&] { std::memcpy(staged, source.data(), bytes); });
    report("stream, from pinned memory", median_us(repeats, [&] {
               ggml_backend_tensor_set_async(backend, tensor, staged, 0, bytes);
               ggml_backend_synchronize(backend);
           }));
    report("stream, from ordinary memory", median_us(repeats, [&] {
               ggml_backend_tensor_set_async(backend, tensor, source.data(), 0, bytes);
               ggml_backend_synchronize(backend);
           }));
    std::printf("{\"memory\":\"pinned\",\"how\":\"memcpy on the CPU\",\"bytes\":%zu,\"us\":%.1f,\"gb_per_s\":%.2f}\n",
                bytes, copied, static_cast<double>(bytes) / copied / 1e3);
    ggml_free(context);
    ggml_backend_buffer_free(pinned);
}

}  // namespace

int main(int argc, char** argv) {
    std::string name = "Vulkan0", backends;
    int repeats = 20;
    std::vector<size_t> megabytes = {1, 4, 16, 32};
    for (int i = 1; i + 1 < argc; i += 2) {
        const std::string flag = argv[i], value = argv[i + 1];
        if (flag == "--device")
            name = value;
        else if (flag == "--backends")
            backends = value;
        else if (flag == "--repeats")
            repeats = std::max(1, std::stoi(value));
        else if (flag == "--megabytes") {
            megabytes.clear();
            std::stringstream list(value);
            for (std::string item; std::getline(list, item, ',');) megabytes.push_back(std::stoul(item));
        } else
            fail("unknown flag " + flag);
    }
    if (!backends.empty()) ggml_backend_load_all_from_path(backends.c_str());
    ggml_backend_dev_t device = ggml_backend_dev_by_name(name.c_str());
    if (device == nullptr) fail("there is no device " + name);
    auto owner = onebit::tandem::make_vulkan_owner(device);
    if (!owner) fail(owner.error().message());
    ggml_backend_t backend = ggml_backend_dev_init(device, nullptr);
    if (backend == nullptr) fail(name + " cannot open a backend");

    const size_t most = *std::max_element(megabytes.begin(), megabytes.end()) << 20;
    const auto shareable = [&](onebit::tandem::MemoryKinds kinds) {
        auto buffer = (*owner)->allocate(most, kinds);
        if (!buffer) fail(buffer.error().message());
        return *buffer;
    };
    std::vector<Case> cases = {
        {"ordinary", ggml_backend_buft_alloc_buffer(ggml_backend_dev_buffer_type(device), most)}};
    if ((*owner)->kinds() & onebit::tandem::opaque_fd)
        cases.push_back({"opaque fd", shareable(onebit::tandem::opaque_fd)});
    if ((*owner)->kinds() & onebit::tandem::host_pointer)
        cases.push_back({"host", shareable(onebit::tandem::host_pointer)});
    for (const size_t size : megabytes)
        for (const Case& target : cases) measure(backend, target, size << 20, repeats);
    for (const Case& target : cases) ggml_backend_buffer_free(target.buffer);
    ggml_backend_free(backend);
    return 0;
}
