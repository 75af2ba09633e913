// The program make-model.
#include <chrono>
#include <cstdio>

#include "tools/make-model/arguments.h"

int main(int argc, char** argv) {
    using namespace onebit;
    const auto report = [](const Error& error) {
        std::fprintf(stderr, "error: %s\n", error.message().c_str());
        return exit_code(error.code);
    };
    const std::vector<std::string> arguments(argv + (argc > 0 ? 1 : 0), argv + argc);
    const auto parsed = parse_make_model(arguments);
    if (!parsed.ok()) return report(parsed.error());
    if (parsed->help) {
        std::fputs(make_model_usage().c_str(), stdout);
        return 0;
    }
    const ModelRequest& request = parsed->request;
    const auto start = std::chrono::steady_clock::now();
    const auto plan = write_model(request);
    if (!plan.ok()) return report(plan.error());
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
    std::printf("%s: %s %s, %u layers, %.2f billion parameters, %.2f GB, %.1f s\n", request.file.c_str(),
                request.shape.name.c_str(), request.type.name.c_str(), request.shape.layers,
                static_cast<double>(plan->parameters) * 1e-9, static_cast<double>(plan->tensor_bytes) * 1e-9,
                seconds.count());
    return std::fflush(stdout) == 0 ? 0 : 1;
}
