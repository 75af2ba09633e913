// The base of tests that run the real binary: folders of its own, and software Vulkan where there is a driver.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "server/supervisor/run_program.h"

namespace onebit {

class RealProgram : public testing::Test {
protected:
    using Texts = std::vector<std::string>;

    void SetUp() override {
        const char* program = std::getenv("ONEBIT_PROGRAM");
        ASSERT_NE(program, nullptr) << "ONEBIT_PROGRAM names the program 1bit; CTest sets it";
        program_ = program;
        std::string name = testing::TempDir() + "program-XXXXXX";
        folder_ = mkdtemp(name.data());
        // the home keeps the driver's compiled shaders when no other place is named for them
        ::setenv("ONEBIT_MODELS", (folder_ / "models").c_str(), 1);
        ::setenv("ONEBIT_CACHE", (folder_ / "cache").c_str(), 1);
        ::setenv("GGML_VK_VISIBLE_DEVICES", "0", 0);
    }
    void TearDown() override { std::filesystem::remove_all(folder_); }

    ProgramResult run(const Texts& arguments) {
        // software Vulkan compiles its shaders at the first run
        Result<ProgramResult> result = run_program(program_, arguments, std::chrono::minutes(8));
        EXPECT_TRUE(result.ok()) << result.error().message();
        return result.ok() ? *result : ProgramResult{};
    }
    bool has_vulkan() { return run({"devices", "--json"}).output.find("\"Vulkan0\"") != std::string::npos; }

    // Entries of one of the program's caches on disk.
    size_t cached(const char* name) const {
        size_t count = 0;
        if (!std::filesystem::exists(folder_ / "cache" / name)) return 0;
        for (const auto& entry : std::filesystem::directory_iterator(folder_ / "cache" / name))
            count += entry.path().extension() == ".entry";
        return count;
    }

    std::filesystem::path program_, folder_;
};

}  // namespace onebit
