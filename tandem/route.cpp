#include "tandem/route.h"

#include <algorithm>

#include "ggml-backend-impl.h"

namespace onebit::tandem {
namespace {

// The first node that the member cannot run, or n_nodes.
int first_refused(const ggml_cgraph* graph, size_t member, const Supports& supports) {
    for (int i = 0; i < graph->n_nodes; ++i) {
        const ggml_tensor* node = graph->nodes[i];
        if (!ggml_op_is_empty(node->op) && !supports(member, node)) return i;
    }
    return graph->n_nodes;
}

// Pieces as long as possible; nodes that compute nothing stay with the piece before them. Empty when a node has no
// member.
std::vector<Piece> cut(const ggml_cgraph* graph, size_t preferred, size_t members, const Supports& supports) {
    std::vector<Piece> pieces;
    for (int i = 0; i < graph->n_nodes; ++i) {
        const ggml_tensor* node = graph->nodes[i];
        size_t member = pieces.empty() ? preferred : pieces.back().member;
        if (!ggml_op_is_empty(node->op)) {
            member = preferred;
            for (size_t next = 0; !supports(member, node); ++next) {
                if (next == members) return {};
                member = next;
            }
        }
        if (pieces.empty() || pieces.back().member != member) pieces.push_back({i, i, member});
        pieces.back().last = i + 1;
    }
    return pieces;
}

}  // namespace

int64_t graph_tokens(const ggml_cgraph* graph) {
    int64_t tokens = 0;
    for (int i = 0; i < graph->n_nodes; ++i) {
        const ggml_tensor* node = graph->nodes[i];
        if ((node->op != GGML_OP_MUL_MAT && node->op != GGML_OP_MUL_MAT_ID) || node->src[0] == nullptr) continue;
        const ggml_tensor* weight = node->src[0]->view_src != nullptr ? node->src[0]->view_src : node->src[0];
        if (weight->buffer == nullptr || weight->buffer->usage != GGML_BACKEND_BUFFER_USAGE_WEIGHTS) continue;
        tokens = std::max(tokens, node->op == GGML_OP_MUL_MAT_ID ? node->ne[2] : node->ne[1]);
    }
    return tokens;
}

Plan make_plan(const ggml_cgraph* graph, const RouteRule& rule, size_t members, const Supports& supports) {
    Plan plan;
    plan.tokens = graph_tokens(graph);
    plan.phase = plan.tokens >= rule.min_tokens ? Phase::prefill : Phase::decode;
    const size_t preferred = plan.member = plan.phase == Phase::prefill ? rule.prefill : rule.decode;
    const int refused = first_refused(graph, preferred, supports);
    if (refused == graph->n_nodes) {
        plan.pieces.push_back({0, graph->n_nodes, preferred});
        return plan;
    }
    const ggml_tensor* node = graph->nodes[refused];
    plan.fallback = std::string("op ") + ggml_op_desc(node) + " (" + node->name + ")";
    if (rule.strict) return plan;
    if (rule.segments != Segments::always) {
        for (size_t member = 0; member < members; ++member) {
            if (member == preferred || first_refused(graph, member, supports) != graph->n_nodes) continue;
            plan.pieces.push_back({0, graph->n_nodes, member});
            return plan;
        }
        if (rule.segments == Segments::never) return plan;
    }
    plan.pieces = cut(graph, preferred, members, supports);
    return plan;
}

}  // namespace onebit::tandem
