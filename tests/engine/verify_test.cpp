// If this fails, verify does not see a broken KV cache, or finds a fault where two devices compute the same.
#include "engine/verify.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>

#include "engine/verify_split.h"
#include "ggml-backend.h"
#include "tests/base/scratch.h"
#include "tests/engine/slot_state.h"
#include "tools/make-model/model_writer.h"

namespace onebit {
namespace {

using test::ScratchFolder;
using test::SlotState;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// Random weights in four layers, whose logits have a deviation of 6.
class Verifying : public testing::Test {
protected:
    static void SetUpTestSuite() {
        ::setenv("GGML_VK_VISIBLE_DEVICES", "0", 0);  // else ggml hides software Vulkan
        folder_ = new ScratchFolder;
    }
    static void TearDownTestSuite() {
        delete folder_;
        folder_ = nullptr;
    }

    static VerifyDevice device(const std::string& name) {
        VerifyDevice device;
        device.label = name;
        device.devices = {name};
        return device;
    }
    static std::string model_of(const char* type) {
        ModelRequest model;
        model.shape = *find_shape("tiny");
        model.shape.context = 512;
        model.type = *find_file_type(type);
        model.file = *folder_ / type;
        if (std::filesystem::exists(model.file)) return model.file;
        const auto written = write_model(model);
        EXPECT_TRUE(written.ok()) << written.error().message();
        return model.file;
    }
    static VerifyRequest request_of(const char* type = "F16") {
        VerifyRequest request;
        request.model_file = model_of(type);
        request.tested = request.reference = device("CPU");
        request.prompts = {33};
        request.slots = {1};
        request.generate = 16;
        request.ubatch = 32;
        request.threads = 1;
        request.flash_attention = "on";
        return request;
    }
    static VerifyReport verify(const VerifyRequest& request) {
        auto report = run_verify(request);
        EXPECT_TRUE(report.ok()) << report.error().message();
        return report.ok() ? *report : VerifyReport{};
    }

    inline static ScratchFolder* folder_ = nullptr;
};

TEST_F(Verifying, OneDeviceIsTheSameAsItself) {
    VerifyRequest request = request_of();
    request.prompts = {0, 1, 31, 32, 33, 65};
    request.slots = {1, 4};
    request.third = device("CPU");
    const VerifyReport report = verify(request);
    EXPECT_TRUE(report.right()) << verify_to_text(report);
    ASSERT_EQ(report.cases.size(), 10u);  // 0 is raised to 1
    for (const VerifyCase& one : report.cases) {
        EXPECT_EQ(one.tested.tokens, one.slots * 17u);
        EXPECT_EQ(one.submitted, one.slots * (one.prompt + 16u));
        EXPECT_EQ(one.tested.mean_kl, 0);
        EXPECT_EQ(one.different, 0u);
        EXPECT_FALSE(one.first_divergence);
        EXPECT_EQ(one.tested.perplexity, one.tested.perplexity_reference);
        ASSERT_TRUE(one.third);
        EXPECT_EQ(one.third->max_kl, 0);
    }
    EXPECT_THAT(report.tokens, IsEmpty());
}

TEST_F(Verifying, EdgesAreTakenAsFarAsTheContextGoes) {
    VerifyRequest request = request_of();
    request.prompts.clear();
    request.tested.prefill_min_tokens = 8;
    request.beyond_4096 = true;
    request.generate = 1;
    std::string said;
    request.progress = [&said](const std::string& step) { said += step + "\n"; };
    const VerifyReport report = verify(request);
    EXPECT_TRUE(report.right());
    std::vector<uint32_t> prompts;
    for (const VerifyCase& one : report.cases) prompts.push_back(one.prompt);
    EXPECT_EQ(prompts, verify_edges(32, 8, false));
    EXPECT_THAT(said, HasSubstr("6 lengths of prompts are left out"));
}

// As a lost write into a shared cache would leave it.
void zero_row(llama_context* context, uint32_t slot, uint32_t layer, uint32_t cell) {
    SlotState state(context, slot);
    ASSERT_LT(cell, state.cells());
    std::ranges::fill(state.key(layer, cell), uint8_t{0});
    std::ranges::fill(state.value(layer, cell), uint8_t{0});
    state.write_back();
}

TEST_F(Verifying, OneZeroedRowIsFoundInAnyLayerAndPlace) {
    for (const uint32_t layer : {0u, 1u, 2u, 3u}) {
        for (const uint32_t cell : {0u, 5u, 32u}) {
            VerifyRequest request = request_of();
            request.tested.damage = [=](uint32_t slot, llama_context* context) {
                zero_row(context, slot, layer, cell);
            };
            const VerifyReport report = verify(request);
            EXPECT_FALSE(report.right()) << layer << " " << cell << "\n" << verify_to_text(report);
            EXPECT_GT(report.cases.at(0).tested.mean_kl, 0.0012);
        }
    }
}

TEST_F(Verifying, OneZeroedRowOfAQuantisedModelIsFound) {
    VerifyRequest request = request_of("Q4_K_M");
    request.cache_type_k = request.cache_type_v = "q8_0";
    request.tested.damage = [](uint32_t slot, llama_context* context) { zero_row(context, slot, 2, 20); };
    const VerifyReport report = verify(request);
    EXPECT_FALSE(report.right()) << verify_to_text(report);
}

TEST_F(Verifying, OneZeroedRowOfOneSlotOfFourIsFound) {
    VerifyRequest request = request_of();
    request.slots = {4};
    request.tested.damage = [](uint32_t slot, llama_context* context) {
        if (slot == 2) zero_row(context, slot, 0, 20);
    };
    const VerifyReport report = verify(request);
    EXPECT_FALSE(report.right()) << verify_to_text(report);
}

TEST_F(Verifying, TwoSwappedHeadsAreFound) {
    VerifyRequest request = request_of();
    request.tested.damage = [](uint32_t slot, llama_context* context) {
        SlotState state(context, slot);
        for (uint32_t cell = 0; cell < state.cells(); cell++) {
            // two heads of 64 numbers of 2 bytes
            const auto row = state.value(2, cell);
            ASSERT_EQ(row.size(), 256u);
            std::swap_ranges(row.begin(), row.begin() + 128, row.begin() + 128);
        }
        state.write_back();
    };
    const VerifyReport report = verify(request);
    EXPECT_FALSE(report.right()) << verify_to_text(report);
    ASSERT_TRUE(report.cases.at(0).first_divergence);
    EXPECT_GE(report.cases[0].first_divergence->position, 1u);  // the prompt's own position came before the damage
    EXPECT_NE(report.cases[0].tested.perplexity, report.cases[0].tested.perplexity_reference);
}

// reading a state and writing it back as it was must not be what the tests above find
TEST_F(Verifying, AnUndamagedStateWrittenBackIsRight) {
    VerifyRequest request = request_of();
    request.slots = {1, 4};
    request.tested.damage = [](uint32_t slot, llama_context* context) { SlotState(context, slot).write_back(); };
    const VerifyReport report = verify(request);
    EXPECT_TRUE(report.right()) << verify_to_text(report);
}

TEST_F(Verifying, NoNumbersAreFound) {
    VerifyRequest request = request_of();
    request.tested.damage = [](uint32_t slot, llama_context* context) {
        SlotState state(context, slot);
        std::ranges::fill(state.value(3, 5), uint8_t{0xff});
        state.write_back();
    };
    const VerifyReport report = verify(request);
    ASSERT_EQ(report.cases.size(), 1u);
    EXPECT_THAT(report.cases[0].faults, Contains(HasSubstr("no numbers")));
    EXPECT_EQ(report.cases[0].tested.not_finite, 16u);
}

// damage on the third side shows two devices that differ: it must not pass for the tested one's
TEST_F(Verifying, TheThirdIsComparedWithTheReferenceOnly) {
    VerifyRequest request = request_of();
    request.third = device("CPU");
    request.third->damage = [](uint32_t slot, llama_context* context) {
        SlotState state(context, slot);
        std::ranges::fill(state.key(1, 3), uint8_t{0});
        state.write_back();
    };
    const VerifyReport report = verify(request);
    EXPECT_TRUE(report.right());
    EXPECT_GT(report.cases.at(0).third->mean_kl, 0);
    EXPECT_EQ(report.cases[0].tested.mean_kl, 0);
}

// counters are read at the start, before and after each case, and at the end
TEST_F(Verifying, ASplitThatDidNotHappenFails) {
    VerifyRequest request = request_of();
    request.tested.split = true;
    request.tested.counters = [] { return std::vector<MemberTokens>{{"CPU", 0, 0}}; };
    const VerifyReport idle = verify(request);
    EXPECT_FALSE(idle.right());
    EXPECT_THAT(idle.faults, Contains(HasSubstr("no member")));
    EXPECT_THAT(idle.cases.at(0).faults, IsEmpty());
    uint64_t reading = 0;
    request.tested.counters = [&reading] {
        const uint64_t prefill = reading++ < 2 ? 0 : 33, decode = prefill == 0 ? 0 : 16;
        return std::vector<MemberTokens>{{"CPU", prefill, decode}};
    };
    const VerifyReport unsplit = verify(request);
    EXPECT_FALSE(unsplit.right());
    EXPECT_THAT(unsplit.faults, ElementsAre("a split was asked for but all tokens ran on CPU"));
}

TEST_F(Verifying, TokensPerMemberAreThoseOfTheCase) {
    VerifyRequest request = request_of();
    request.prompts = {33, 40};
    request.tested.split = true;
    // as a tandem would count: 40 + 16 tokens in the longer case, which is run first, and 33 + 16 in the other
    const std::vector<std::pair<uint64_t, uint64_t>> readings = {{0, 0},   {0, 0},   {40, 16},
                                                                 {40, 16}, {73, 32}, {73, 32}};
    size_t next = 0;
    request.tested.counters = [&] {
        const auto [prefill, decode] = readings.at(next++);
        return std::vector<MemberTokens>{{"CUDA0", prefill, 0}, {"Vulkan0", 0, decode}};
    };
    const VerifyReport report = verify(request);
    EXPECT_TRUE(report.right()) << verify_to_text(report);
    EXPECT_EQ(next, readings.size());
    ASSERT_EQ(report.cases.at(1).tokens.size(), 2u);
    EXPECT_EQ(report.cases[1].tokens[0].prefill, 40u);
    EXPECT_EQ(report.cases[1].tokens[1].decode, 16u);
    EXPECT_EQ(report.tokens[0].prefill, 73u);
}

TEST_F(Verifying, QuantisedCacheAndNoFlashAttention) {
    VerifyRequest request = request_of();
    request.cache_type_k = request.cache_type_v = "q8_0";
    EXPECT_TRUE(verify(request).right());
    request.cache_type_k = request.cache_type_v = "f16";
    request.flash_attention = "off";
    EXPECT_TRUE(verify(request).right());
}

TEST_F(Verifying, WhatCannotBeDoneIsAnError) {
    const auto error_of = [](const VerifyRequest& request) {
        auto report = run_verify(request);
        EXPECT_FALSE(report.ok());
        return report.ok() ? Error{} : report.error();
    };
    VerifyRequest request = request_of();
    request.prompts = {600};
    EXPECT_EQ(error_of(request).code, ErrorCode::usage);
    EXPECT_THAT(error_of(request).message(), HasSubstr("512"));
    request = request_of();
    request.slots = {0};
    EXPECT_EQ(error_of(request).code, ErrorCode::usage);
    request.slots = {};
    EXPECT_EQ(error_of(request).code, ErrorCode::usage);
    request = request_of();
    request.generate = 0;
    EXPECT_EQ(error_of(request).code, ErrorCode::usage);
    request = request_of();
    request.ubatch = 0;
    EXPECT_EQ(error_of(request).code, ErrorCode::usage);
    request = request_of();
    request.cache_type_k = "q9_0";
    EXPECT_THAT(error_of(request).message(), HasSubstr("'q9_0'"));
    request = request_of();
    request.tested = device("Nothing7");
    EXPECT_EQ(error_of(request).code, ErrorCode::not_found);
    request = request_of();
    request.text = " ";
    EXPECT_EQ(error_of(request).code, ErrorCode::usage);
    request = request_of();
    request.model_file += ".missing";
    EXPECT_EQ(error_of(request).code, ErrorCode::invalid);
}

// A tandem of the CPU's own memory and the CPU as its guest: one threshold, two members, the same numbers.
TEST_F(Verifying, ASplitOfTheCpuIsRightAndItsTokensAreCounted) {
    const auto split = make_split_device("CPU", "guest:CPU", 16);
    ASSERT_TRUE(split.ok()) << split.error().message();
    VerifyRequest request = request_of();
    request.tested = device(split->device);
    request.tested.split = true;
    request.tested.prefill_min_tokens = split->min_tokens;
    request.tested.counters = split->counters;
    request.prompts = {1, 15, 16, 17, 32, 33, 47, 48, 96};
    request.slots = {1, 4};
    const VerifyReport report = verify(request);
    EXPECT_TRUE(report.right()) << verify_to_text(report);
    const auto prefilled = [&report](uint32_t prompt, uint32_t slots) {
        uint64_t prefill = 0, decode = 0;
        for (const VerifyCase& one : report.cases) {
            if (one.prompt != prompt || one.slots != slots) continue;
            for (const MemberTokens& member : one.tokens) {
                (member.member == "guest:CPU" ? prefill : decode) += member.prefill + member.decode;
            }
            EXPECT_EQ(prefill + decode, one.submitted);
        }
        return prefill;
    };
    EXPECT_EQ(prefilled(15, 1), 0u);
    EXPECT_EQ(prefilled(16, 1), 16u);
    EXPECT_EQ(prefilled(33, 1), 32u);
    EXPECT_EQ(prefilled(47, 1), 32u);
    EXPECT_EQ(prefilled(48, 1), 48u);
    EXPECT_EQ(prefilled(96, 1), 96u);
    EXPECT_EQ(prefilled(96, 4), 384u);
    // damage to the one cache that both members use is found
    request.prompts = {33};
    request.tested.damage = [](uint32_t slot, llama_context* context) { zero_row(context, slot, 3, 5); };
    EXPECT_FALSE(verify(request).right());
    // prompts below the threshold never reach the other member
    request.tested.damage = nullptr;
    request.prompts = {8};
    request.slots = {1};
    const VerifyReport unsplit = verify(request);
    EXPECT_FALSE(unsplit.right());
    EXPECT_THAT(unsplit.faults, ElementsAre("a split was asked for but all tokens ran on CPU"));
}

// A real second device, which rounds differently; damage to it is found although.
TEST_F(Verifying, SoftwareVulkanAgreesWithTheCpuAndItsDefectsAreFound) {
    if (ggml_backend_dev_by_name("Vulkan0") == nullptr) GTEST_SKIP() << "no Vulkan0 on this machine";
    VerifyRequest request = request_of();
    request.tested = device("Vulkan0");
    request.prompts = {2, 33, 1};
    request.slots = {1, 2};
    request.generate = 4;
    request.limits = VerifyLimits::without_third();
    const VerifyReport right = verify(request);
    EXPECT_TRUE(right.right()) << verify_to_text(right);
    std::vector<std::pair<uint32_t, uint32_t>> order;
    for (const VerifyCase& one : right.cases) order.emplace_back(one.slots, one.prompt);
    EXPECT_TRUE(std::ranges::is_sorted(order) && order.size() == 6) << verify_to_text(right);
    EXPECT_GT(right.cases.at(2).tested.mean_kl, 0) << "not another device";
    // as for a split: its owner alone is the reference and the guest the third
    request.reference = device("Vulkan0");
    request.third = device("CPU");
    request.limits = {};
    request.prompts = {33};
    request.slots = {1};
    request.tested.damage = [](uint32_t slot, llama_context* context) { zero_row(context, slot, 1, 32); };
    const VerifyReport wrong = verify(request);
    EXPECT_FALSE(wrong.right()) << verify_to_text(wrong);
    EXPECT_GT(wrong.cases.at(0).third->mean_kl, 0);
}

}  // namespace
}  // namespace onebit
