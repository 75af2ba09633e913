// If this fails, plan's figures are not those of llama.cpp, or bench does not measure and compare a real model.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "engine/bench.h"
#include "engine/devices.h"
#include "engine/plan.h"
#include "tests/engine/temp_tree.h"

namespace onebit {
namespace {

using testing::Contains;
using testing::HasSubstr;

constexpr uint64_t MiB = 1ull << 20;

std::string model_file() {
    const char* folder = std::getenv("ONEBIT_TEST_DATA");
    return std::string(folder != nullptr ? folder : ".") + "/onebit-tiny-F16.gguf";
}

PlanRequest request_of(uint32_t context) {
    PlanRequest request;
    request.model_file = model_file();
    request.devices = {"CPU"};
    request.context = context;
    return request;
}

TEST(ListDevices, TheCpuIsFirstAndKnowsItsMemory) {
    const auto devices = list_devices();
    ASSERT_TRUE(devices.ok()) << devices.error().message();
    ASSERT_FALSE(devices->empty());
    EXPECT_EQ(devices->front().kind, DeviceKind::cpu);
    ASSERT_TRUE(devices->front().total_bytes && devices->front().free_bytes);
    EXPECT_LE(*devices->front().free_bytes, *devices->front().total_bytes);
    for (const PhysicalDevice& device : *devices) {
        EXPECT_FALSE(device.kind == DeviceKind::software_gpu && device.chosen_by_default);  // DEV13
    }
}

// 8 layers, 2 heads of 64, keys and values, 2 bytes each: 4 KiB a token
TEST(PlanModel, CacheIsAsComputedByHand) {
    const auto plan = plan_model(request_of(4096));
    ASSERT_TRUE(plan.ok()) << plan.error().message();
    ASSERT_EQ(plan->rows.size(), 1u);
    EXPECT_EQ(plan->rows[0].device, "CPU");
    EXPECT_EQ(plan->rows[0].kv_cache, 16 * MiB);
    EXPECT_GT(plan->rows[0].weights, 13 * MiB);
    EXPECT_LT(plan->rows[0].weights, 15 * MiB);
    EXPECT_TRUE(plan->fits);
    EXPECT_EQ(plan->context, 4096u);
    const auto twice = plan_model(request_of(8192));
    ASSERT_TRUE(twice.ok());
    EXPECT_EQ(twice->rows[0].kv_cache, 32 * MiB);
}

TEST(PlanModel, WithoutAContextItIsTheModelsOwn) {
    const auto plan = plan_model(request_of(0));
    ASSERT_TRUE(plan.ok());
    EXPECT_EQ(plan->context, 4096u);
    EXPECT_EQ(plan->rows[0].kv_cache, 16 * MiB);
}

TEST(PlanModel, AContextAboveTheTrainedOneIsSaid) {
    const auto told = [](const PlanRequest& request) {
        const auto plan = plan_model(request);
        EXPECT_TRUE(plan.ok());
        std::string notes;
        if (plan.ok())
            for (const std::string& note : plan->notes) notes += note + "\n";
        return notes.find("was trained for 4096 tokens") != std::string::npos;
    };
    EXPECT_FALSE(told(request_of(4096)));
    EXPECT_TRUE(told(request_of(4097)));
    PlanRequest shared = request_of(16384);
    shared.parallel = 4;
    shared.shared = true;
    EXPECT_FALSE(told(shared)) << "4096 for each";
}

TEST(PlanModel, TheContextIsThatOfEachSlot) {
    PlanRequest request = request_of(1024);
    request.parallel = 4;
    const auto cache = [&] {
        const auto plan = plan_model(request);
        EXPECT_TRUE(plan.ok()) << plan.error().message();
        return plan.ok() ? plan->rows[0].kv_cache : 0;
    };
    EXPECT_EQ(cache(), 16 * MiB);
    request.context = 1025;  // each slot has the next multiple of 256
    EXPECT_EQ(cache(), 20 * MiB);
    request.context = 0;  // the model's own, for each
    EXPECT_EQ(cache(), 64 * MiB);
    EXPECT_EQ(plan_model(request)->context, 4096u);
    EXPECT_EQ(plan_model(request)->slots, 4u);
    request.shared = true;  // as llama.cpp counts it
    EXPECT_EQ(cache(), 16 * MiB);
    request.context = 1024;
    EXPECT_EQ(cache(), 4 * MiB);
    // what one slot may have, all of them may not
    request.shared = false;
    request.context = 2000000000;
    request.parallel = 256;
    const auto plan = plan_model(request);
    ASSERT_TRUE(plan.ok()) << plan.error().message();
    EXPECT_FALSE(plan->fits);
}

TEST(PlanModel, WhatDoesNotFitSaysWhatWould) {  // DEV01
    const auto plan = plan_model(request_of(2000000000));
    ASSERT_TRUE(plan.ok()) << plan.error().message();
    EXPECT_FALSE(plan->fits);
    EXPECT_THAT(plan->notes, Contains(HasSubstr("too little")));
    EXPECT_THAT(plan->notes, Contains(HasSubstr("would fit: --ctx-size ")));
}

TEST(PlanModel, WrongRequestsAreNamed) {
    PlanRequest request = request_of(512);
    request.devices = {"HRX9"};
    auto plan = plan_model(request);
    ASSERT_FALSE(plan.ok());
    EXPECT_THAT(plan.error().message(), HasSubstr("HRX9"));
    request = request_of(512);
    request.cache_type_v = "q9_9";
    plan = plan_model(request);
    ASSERT_FALSE(plan.ok());
    EXPECT_EQ(plan.error().code, ErrorCode::usage);
    EXPECT_THAT(plan.error().message(), HasSubstr("--cache-type-v"));
}

TEST(PlanModel, DamagedFilesAreErrorsWithTheirName) {
    const TempTree tree;
    tree.write("empty.gguf", "");
    tree.write("text.gguf", "GGUF but no more");
    for (const char* name : {"empty.gguf", "text.gguf", "missing.gguf"}) {
        PlanRequest request = request_of(512);
        request.model_file = tree.path(name);
        const auto plan = plan_model(request);
        ASSERT_FALSE(plan.ok()) << name;
        EXPECT_THAT(plan.error().message(), HasSubstr(name));
    }
}

BenchRequest small_bench() {
    BenchRequest request;
    request.model_file = model_file();
    request.devices = {"CPU"};
    request.prompts = {16};
    request.depths = {0, 8};
    request.generate = 2;
    request.repeat = 2;
    request.check_tokens = 16;
    request.threads = 1;  // two would wait for each other on a busy machine
    return request;
}

TEST(RunBench, MeasuresEveryCellAndComparesTheCpuWithItself) {
    const auto report = run_bench(small_bench());
    ASSERT_TRUE(report.ok()) << report.error().message();
    ASSERT_EQ(report->cells.size(), 4u);
    for (const BenchCell& cell : report->cells) {
        ASSERT_EQ(cell.samples.size(), 2u);
        for (const double sample : cell.samples) EXPECT_GT(sample, 0);
    }
    ASSERT_EQ(report->checks.size(), 1u);
    EXPECT_GE(report->checks[0].comparison.tokens, 16u);
    EXPECT_EQ(report->checks[0].comparison.mean_kl, 0);
    // a model that has learnt something, and one whose tokens are in order
    EXPECT_GT(report->checks[0].comparison.perplexity, 1.5);
    EXPECT_LT(report->checks[0].comparison.perplexity, 1000);
    EXPECT_TRUE(report->right());
    EXPECT_THAT(bench_to_text(*report), HasSubstr("SHA-256: "));
}

TEST(RunBench, WrongSizesAreNamed) {
    BenchRequest request = small_bench();
    request.depths = {1 << 20};
    auto report = run_bench(request);
    ASSERT_FALSE(report.ok());
    EXPECT_THAT(report.error().message(), HasSubstr("4096"));
    request = small_bench();
    request.devices = {"Vulkan99"};
    report = run_bench(request);
    ASSERT_FALSE(report.ok());
    EXPECT_THAT(report.error().message(), HasSubstr("Vulkan99"));
    request = small_bench();
    request.text = "a";
    report = run_bench(request);
    ASSERT_FALSE(report.ok());
    EXPECT_THAT(report.error().message(), HasSubstr("--text"));
}

}  // namespace
}  // namespace onebit
