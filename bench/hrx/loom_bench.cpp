// How long Loom takes to specialise a kernel, in milliseconds of the thread's CPU time, and a hit of the disk cache.
// usage: loom-bench TARGET REPEATS KERNEL[:NAME=VALUE,...]...; prints one JSON line a kernel. warm: the minimum over
// REPEATS compilations after the first, which is cold.
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <sstream>

#include "hrx/loom/image_cache.h"
#include "hrx/loom/library.h"

namespace {

using namespace onebit;
using namespace onebit::loom;

template <typename T>
T must(Result<T> result) {
    if (!result.ok()) {
        std::fprintf(stderr, "%s\n", result.error().message().c_str());
        std::exit(1);
    }
    return std::move(result).value();
}

double thread_ms() {
    timespec time{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return static_cast<double>(time.tv_sec) * 1e3 + static_cast<double>(time.tv_nsec) / 1e6;
}

double sum(const loom_times& times) {
    return static_cast<double>(times.parse + times.substitute + times.optimise + times.generate + times.link) / 1e6;
}

Request parse_request(const std::string& text, const std::string& target) {
    const size_t colon = text.find(':');
    Constants constants;
    std::istringstream list(colon == std::string::npos ? "" : text.substr(colon + 1));
    for (std::string item; std::getline(list, item, ',');) constants.insert(must(parse_constant(item)));
    return must(make_request(*must(find_kernel(text.substr(0, colon))), target, std::move(constants)));
}

void measure(const Library& library, ImageCache& cache, const Request& request, int repeats) {
    double start = thread_ms();
    auto compiled = must(library.compile(request, LOOM_IMAGE));
    const double cold = thread_ms() - start;
    double warm = std::numeric_limits<double>::max(), total = 0, hit = warm;
    loom_times best{};
    for (int i = 0; i < repeats; i++) {
        start = thread_ms();
        compiled = must(library.compile(request, LOOM_IMAGE));
        const double taken = thread_ms() - start;
        total += taken;
        if (taken < warm) {
            warm = taken;
            best = compiled.times;
        }
    }
    if (auto kept = cache.put(request, compiled.bytes); !kept.ok())
        std::fprintf(stderr, "%s\n", kept.error().message().c_str());
    for (int i = 0; i < repeats; i++) {
        start = thread_ms();
        if (!cache.get(request)) std::exit(1);
        hit = std::min(hit, thread_ms() - start);
    }
    const auto ms = [](uint64_t ns) { return static_cast<double>(ns) / 1e6; };
    std::printf(
        "{\"request\":\"%s\",\"cold_ms\":%.2f,\"warm_min_ms\":%.2f,\"warm_mean_ms\":%.2f,\"repeats\":%d,"
        "\"parse_ms\":%.2f,\"substitute_ms\":%.2f,\"optimise_ms\":%.2f,\"generate_ms\":%.2f,\"link_ms\":%.2f,"
        "\"image_bytes\":%zu,\"cache_hit_ms\":%.3f}\n",
        request.name().c_str(), cold, warm, total / repeats, repeats, ms(best.parse), ms(best.substitute),
        ms(best.optimise), ms(best.generate), ms(best.link), compiled.bytes.size(), hit);
    std::fflush(stdout);
    if (sum(best) > warm * 1.01) std::fprintf(stderr, "the phases add up to more than the whole\n");
}

}  // namespace

int main(int argc, char** argv) {
    if (argc < 4) {
        std::fprintf(stderr, "usage: loom-bench TARGET REPEATS KERNEL[:NAME=VALUE,...]...\n");
        return 2;
    }
    const int repeats = std::max(1, std::atoi(argv[2]));
    const auto library = must(Library::open());
    const auto folder = std::filesystem::temp_directory_path() / ("loom-bench." + std::to_string(getpid()));
    auto cache = must(ImageCache::open(folder));
    for (int i = 3; i < argc; i++) measure(*library, cache, parse_request(argv[i], argv[1]), repeats);
    std::filesystem::remove_all(folder);
    return 0;
}
