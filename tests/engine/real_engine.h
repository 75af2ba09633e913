// The base of tests that start real engine processes: the program and the built-in model.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "models/builtin_model.h"
#include "tests/server/engine_fixture.h"

namespace onebit {

class RealEngine : public ::testing::Test {
protected:
    void SetUp() override {
        const char* named = std::getenv("ONEBIT_PROGRAM");
        ASSERT_NE(named, nullptr) << "ONEBIT_PROGRAM names the program 1bit; CTest sets it";
        program = named;
        auto file = builtin_model();
        ASSERT_TRUE(file.ok()) << file.error().message();
        model = *file;
    }

    RuntimeFolder folder;
    std::filesystem::path program, model;
};

}  // namespace onebit
