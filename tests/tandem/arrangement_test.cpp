// If this fails, nodes run before what they read, the memory of a fused operation is given away too early, or each
// ubatch costs another plan of the memory.
#include "tandem/arrangement.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "ggml-backend-impl.h"
#include "ggml-cpu.h"
#include "ggml.h"

namespace onebit::tandem {
namespace {

using Wishes = std::vector<std::pair<const ggml_tensor*, const ggml_tensor*>>;

// Nodes: first = a + b, second = silu(a), third = first * second, and with `scaled` fourth = third * 2.
struct Graph {
    explicit Graph(int64_t columns, bool scaled = false, bool one_leaf = false) {
        context.reset(ggml_init({ggml_tensor_overhead() * 32 + ggml_graph_overhead(), nullptr, true}));
        a = ggml_new_tensor_2d(context.get(), GGML_TYPE_F32, 8, columns);
        b = one_leaf ? a : ggml_new_tensor_2d(context.get(), GGML_TYPE_F32, 8, columns);
        first = ggml_add(context.get(), a, b);
        second = ggml_silu(context.get(), a);
        third = ggml_mul(context.get(), first, second);
        graph = ggml_new_graph(context.get());
        ggml_build_forward_expand(graph, scaled ? ggml_scale(context.get(), third, 2.0f) : third);
    }
    struct Free {
        void operator()(ggml_context* one) const { ggml_free(one); }
    };
    std::unique_ptr<ggml_context, Free> context;
    ggml_tensor *a, *b, *first, *second, *third;
    ggml_cgraph* graph;
};

// Two members: the owner turns the first two nodes round and wants `a` kept up to the third; the guest wants `first`
// kept up to the third for single columns only.
struct Asked {
    int owner = 0, guest = 0;
    Arrangements::Members members(bool owners_order = true) {
        return {2, owners_order,
                [this](size_t member, ggml_cgraph* graph, ggml_backend_graph_optimize_params* parameters) {
                    ggml_tensor* third = *std::find_if(graph->nodes, graph->nodes + graph->n_nodes,
                                                       [](const ggml_tensor* node) { return node->op == GGML_OP_MUL; });
                    if (member == 0) {
                        ++owner;
                        std::swap(graph->nodes[0], graph->nodes[1]);
                        parameters->add_alloc_dep(parameters->user_data, third->src[0]->src[0], third);
                    } else {
                        ++guest;
                        if (third->ne[1] == 1) parameters->add_alloc_dep(parameters->user_data, third->src[0], third);
                    }
                }};
    }
};

Wishes arrange(Arrangements& arrangements, Graph& graph, Asked& asked, bool owners_order = true) {
    Wishes wishes;
    ggml_backend_graph_optimize_params parameters = {[](void* to, ggml_tensor* tensor, ggml_tensor* until) {
                                                         static_cast<Wishes*>(to)->emplace_back(tensor, until);
                                                     },
                                                     &wishes};
    arrangements.arrange(graph.graph, graph.third->ne[1], asked.members(owners_order), &parameters);
    return wishes;
}

std::vector<const ggml_tensor*> order(const Graph& graph) {
    return {graph.graph->nodes, graph.graph->nodes + graph.graph->n_nodes};
}

TEST(Arrangement, GraphsOfOneFormAreArrangedAlikeWhateverTheirShapes) {
    Arrangements arrangements;
    Asked asked;
    for (const int64_t columns : {512, 1, 512, 1, 31, 512}) {
        Graph graph(columns);
        arrange(arrangements, graph, asked);
        EXPECT_EQ(order(graph), (std::vector<const ggml_tensor*>{graph.second, graph.first, graph.third})) << columns;
    }
    EXPECT_EQ(arrangements.asked(), 3u);  // once for each number of columns
    EXPECT_EQ(asked.owner, 3);
    EXPECT_EQ(asked.guest, 3);
}

TEST(Arrangement, WishesOfEveryMemberAndShapeCountForAll) {
    Arrangements arrangements;
    Asked asked;
    Graph prompt(512), token(1), next(512);
    EXPECT_EQ(arrange(arrangements, prompt, asked), (Wishes{{prompt.a, prompt.third}}));
    EXPECT_EQ(arrange(arrangements, token, asked), (Wishes{{token.a, token.third}, {token.first, token.third}}));
    EXPECT_EQ(arrange(arrangements, next, asked), (Wishes{{next.a, next.third}, {next.first, next.third}}));
}

TEST(Arrangement, WithoutTheOwnersOrderTheNodesKeepTheirs) {
    Arrangements arrangements;
    Asked asked;
    for (int i = 0; i < 2; ++i) {
        Graph graph(1);
        EXPECT_EQ(arrange(arrangements, graph, asked, false).size(), 2u);
        EXPECT_EQ(order(graph), (std::vector<const ggml_tensor*>{graph.first, graph.second, graph.third}));
    }
    Graph graph(1);  // the order is part of the form
    arrange(arrangements, graph, asked, true);
    EXPECT_EQ(order(graph).front(), graph.second);
    EXPECT_EQ(arrangements.asked(), 2u);
}

TEST(Arrangement, AnotherFormIsAskedFor) {
    Arrangements arrangements;
    Asked asked;
    Graph plain(4), scaled(4, true), alias(4, false, true), flagged(4);
    flagged.first->flags |= GGML_TENSOR_FLAG_OUTPUT;
    uint64_t count = 0;
    for (Graph* graph : {&plain, &scaled, &alias, &flagged}) {
        arrange(arrangements, *graph, asked);
        EXPECT_EQ(arrangements.asked(), ++count);
    }
    Graph again(4, false, true), first(4);
    arrange(arrangements, again, asked);
    arrange(arrangements, first, asked);
    EXPECT_EQ(arrangements.asked(), count);
    Graph other(4);  // two leaves that became one, and the other way round, are other forms
    other.third->src[1] = other.first;
    arrange(arrangements, other, asked);
    EXPECT_EQ(arrangements.asked(), count + 1);
}

// A tensor with memory needs no wish; a wish that would end before its tensor begins is none.
TEST(Arrangement, WishesWithoutMeaningAreLeftOut) {
    Graph graph(4);
    std::vector<float> memory(32);
    graph.a->data = memory.data();
    Arrangements arrangements;
    Wishes wishes;
    ggml_backend_graph_optimize_params parameters = {[](void* to, ggml_tensor* tensor, ggml_tensor* until) {
                                                         static_cast<Wishes*>(to)->emplace_back(tensor, until);
                                                     },
                                                     &wishes};
    ggml_tensor stranger = {};
    arrangements.arrange(graph.graph, 4,
                         {1, true,
                          [&](size_t, ggml_cgraph*, ggml_backend_graph_optimize_params* wish) {
                              wish->add_alloc_dep(wish->user_data, graph.a, graph.third);
                              wish->add_alloc_dep(wish->user_data, graph.third, graph.first);
                              wish->add_alloc_dep(wish->user_data, &stranger, graph.third);
                              wish->add_alloc_dep(wish->user_data, graph.b, &stranger);
                              wish->add_alloc_dep(wish->user_data, graph.b, graph.second);
                          }},
                         &parameters);
    EXPECT_EQ(wishes, (Wishes{{graph.b, graph.second}}));
}

// What is computed in another part of the graph cannot be told from a leaf by its place: nothing is remembered.
TEST(Arrangement, SourcesFromOutsideAreNotRemembered) {
    Arrangements arrangements;
    Asked asked;
    for (uint64_t count = 1; count <= 3; ++count) {
        Graph graph(4);
        ggml_cgraph part = ggml_graph_view(graph.graph, 1, 3);
        Wishes wishes;
        ggml_backend_graph_optimize_params parameters = {[](void* to, ggml_tensor* tensor, ggml_tensor* until) {
                                                             static_cast<Wishes*>(to)->emplace_back(tensor, until);
                                                         },
                                                         &wishes};
        arrangements.arrange(&part, 4, {1, true, [](size_t, ggml_cgraph*, ggml_backend_graph_optimize_params*) {}},
                             &parameters);
        arrange(arrangements, graph, asked);
        EXPECT_EQ(arrangements.asked(), count + 1);
    }
}

TEST(Arrangement, ManyFormsAndTokenCountsAreBounded) {
    Arrangements arrangements;
    Asked asked;
    for (int64_t columns = 1; columns <= 200; ++columns) {
        Graph graph(columns);
        EXPECT_EQ(arrange(arrangements, graph, asked).size(), 2u);
        EXPECT_EQ(order(graph).front(), graph.second);
    }
    EXPECT_EQ(arrangements.asked(), 64u);
}

TEST(Arrangement, AGraphWithoutNodes) {
    Arrangements arrangements;
    Graph graph(1);
    ggml_cgraph none = ggml_graph_view(graph.graph, 0, 0);
    arrangements.arrange(&none, 0, {1, true, [](size_t, ggml_cgraph*, ggml_backend_graph_optimize_params*) {}},
                         nullptr);
    EXPECT_EQ(arrangements.asked(), 1u);
}

}  // namespace
}  // namespace onebit::tandem
