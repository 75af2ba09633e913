// If this fails, prompts are read on the slow member, tokens are made on the wrong one, or a kernel runs where there is
// none.
#include "tandem/route.h"

#include <gtest/gtest.h>

#include <memory>
#include <set>

#include "ggml-backend-impl.h"
#include "ggml-cpu.h"
#include "ggml.h"

namespace onebit::tandem {
namespace {

// weights x columns → SILU → ADD, with the weights in a buffer that says so.
class Graph {
public:
    explicit Graph(int64_t columns, bool weights = true) {
        context_.reset(ggml_init({ggml_tensor_overhead() * 16 + ggml_graph_overhead(), nullptr, true}));
        weights_context_.reset(ggml_init({ggml_tensor_overhead() * 4, nullptr, true}));
        ggml_tensor* weight = ggml_new_tensor_2d(weights_context_.get(), GGML_TYPE_F32, 8, 8);
        buffer_.reset(ggml_backend_alloc_ctx_tensors_from_buft(weights_context_.get(), ggml_backend_cpu_buffer_type()));
        if (weights) ggml_backend_buffer_set_usage(buffer_.get(), GGML_BACKEND_BUFFER_USAGE_WEIGHTS);
        ggml_tensor* input = ggml_new_tensor_2d(context_.get(), GGML_TYPE_F32, 8, columns);
        ggml_tensor* product = ggml_mul_mat(context_.get(), weight, input);
        ggml_tensor* view = ggml_reshape_1d(context_.get(), ggml_silu(context_.get(), product), 8 * columns);
        graph_ = ggml_new_graph(context_.get());
        ggml_build_forward_expand(graph_, ggml_add(context_.get(), view, view));
    }
    const ggml_cgraph* get() const { return graph_; }

private:
    struct Free {
        void operator()(ggml_context* context) const { ggml_free(context); }
        void operator()(ggml_backend_buffer_t buffer) const { ggml_backend_buffer_free(buffer); }
    };
    std::unique_ptr<ggml_context, Free> context_, weights_context_;
    std::unique_ptr<ggml_backend_buffer, Free> buffer_;
    ggml_cgraph* graph_ = nullptr;
};

const Supports everything = [](size_t, const ggml_tensor*) { return true; };
Supports all_but(size_t who, ggml_op op) {
    return [=](size_t member, const ggml_tensor* node) { return member != who || node->op != op; };
}

TEST(Route, TokensAreTheColumnsThatMeetWeights) {
    for (const int64_t columns : {1, 2, 31, 511, 512, 513}) EXPECT_EQ(graph_tokens(Graph(columns).get()), columns);
    EXPECT_EQ(graph_tokens(Graph(7, false).get()), 0);
}

TEST(Route, PhaseChangesAtTheThreshold) {
    const RouteRule rule{1, 0, 512, Segments::automatic, false};
    const std::pair<int64_t, size_t> cases[] = {{1, 0}, {511, 0}, {512, 1}, {513, 1}, {2048, 1}};
    for (const auto& [columns, member] : cases) {
        const Plan plan = make_plan(Graph(columns).get(), rule, 2, everything);
        ASSERT_EQ(plan.pieces.size(), 1u);
        EXPECT_EQ(plan.pieces[0].member, member) << columns;
        EXPECT_EQ(plan.phase, columns >= 512 ? Phase::prefill : Phase::decode);
        EXPECT_EQ(plan.fallback, "");
    }
}

TEST(Route, AGraphWithoutWeightsIsDecode) {
    const Plan plan = make_plan(Graph(4096, false).get(), {1, 0, 1, Segments::automatic, false}, 2, everything);
    EXPECT_EQ(plan.phase, Phase::decode);
    EXPECT_EQ(plan.pieces.at(0).member, 0u);
}

TEST(Route, AGraphThatItsMemberCannotRunGoesWholeToOneThatCan) {
    const Plan plan = make_plan(Graph(8).get(), {1, 0, 1, Segments::automatic, false}, 2, all_but(1, GGML_OP_UNARY));
    ASSERT_EQ(plan.pieces.size(), 1u);
    EXPECT_EQ(plan.pieces[0].member, 0u);
    EXPECT_NE(plan.fallback.find("SILU"), std::string::npos) << plan.fallback;
}

TEST(Route, AlwaysCutsOutOnlyWhatTheMemberCannotRun) {
    const Graph graph(8);
    const Plan plan = make_plan(graph.get(), {1, 0, 1, Segments::always, false}, 2, all_but(1, GGML_OP_UNARY));
    ASSERT_EQ(plan.pieces.size(), 3u);
    EXPECT_EQ(plan.pieces[0].member, 1u);
    EXPECT_EQ(plan.pieces[1].member, 0u);
    EXPECT_EQ(plan.pieces[2].member, 1u);
    int next = 0;
    for (const Piece& piece : plan.pieces) {
        EXPECT_EQ(piece.first, next);
        EXPECT_GT(piece.last, piece.first);
        next = piece.last;
    }
    EXPECT_EQ(next, graph.get()->n_nodes);
}

TEST(Route, TwoMembersThatLackDifferentOpsShareTheGraph) {
    const Supports supports = [](size_t member, const ggml_tensor* node) {
        return member == 0 ? node->op != GGML_OP_MUL_MAT : node->op != GGML_OP_ADD;
    };
    for (const Segments segments : {Segments::automatic, Segments::always})
        EXPECT_EQ(make_plan(Graph(8).get(), {1, 0, 1, segments, false}, 2, supports).pieces.size(), 2u);
    EXPECT_TRUE(make_plan(Graph(8).get(), {1, 0, 1, Segments::never, false}, 2, supports).pieces.empty());
}

TEST(Route, AnOpThatNobodyHasIsRefusedNotRun) {
    const Supports nobody = [](size_t, const ggml_tensor* node) { return node->op != GGML_OP_ADD; };
    for (const Segments segments : {Segments::automatic, Segments::always, Segments::never}) {
        const Plan plan = make_plan(Graph(8).get(), {1, 0, 1, segments, false}, 2, nobody);
        EXPECT_TRUE(plan.pieces.empty());
        EXPECT_NE(plan.fallback.find("ADD"), std::string::npos);
    }
}

TEST(Route, StrictRefusesEveryFallback) {
    EXPECT_TRUE(
        make_plan(Graph(8).get(), {1, 0, 1, Segments::automatic, true}, 2, all_but(1, GGML_OP_ADD)).pieces.empty());
    EXPECT_EQ(make_plan(Graph(8).get(), {1, 0, 1, Segments::automatic, true}, 2, everything).pieces.size(), 1u);
}

TEST(Route, OpsThatComputeNothingNeedNoMember) {
    const Supports supports = [](size_t, const ggml_tensor* node) { return node->op != GGML_OP_RESHAPE; };
    EXPECT_EQ(make_plan(Graph(8).get(), {1, 0, 1, Segments::automatic, false}, 2, supports).pieces.size(), 1u);
}

}  // namespace
}  // namespace onebit::tandem
