// The order of the nodes and the lifetimes that the members ask of ggml's scheduler (graph_optimize), learnt from the
// first graphs of a form and given to every later one. So graphs of both phases fit one plan of the memory, also where
// a member's wishes depend on the number of tokens, and nobody arranges thousands of nodes anew for each ubatch.
#pragma once

#include <cstdint>
#include <functional>
#include <list>
#include <set>
#include <tuple>
#include <vector>

#include "ggml-backend-impl.h"
#include "ggml-impl.h"

namespace onebit::tandem {

// Of one stream, used by its thread.
class Arrangements {
public:
    // One member's graph_optimize, which may reorder graph->nodes.
    using Ask = std::function<void(size_t member, ggml_cgraph* graph, ggml_backend_graph_optimize_params* parameters)>;
    struct Members {
        size_t count = 0;
        bool owners_order = false;  // the nodes get the order of member 0, and keep theirs otherwise
        Ask ask;
    };

    // Reorders the nodes of the graph, none of which is allocated, and hands on the wishes of all members that were
    // learnt from graphs of its form: the same operations with the same sources, whatever their shapes. tokens: see
    // graph_tokens(); the members are asked again for each number that is new. A graph whose form cannot be compared
    // (sources from outside that are results themselves) is arranged by asking each time.
    void arrange(ggml_cgraph* graph, int64_t tokens, const Members& members,
                 ggml_backend_graph_optimize_params* parameters);

    uint64_t asked() const { return asked_; }  // graphs for which the members were asked

private:
    static constexpr int kLinks = GGML_MAX_SRC + 1;  // the sources, and what the node is a view of
    struct Node {
        ggml_op op = GGML_OP_NONE;
        ggml_type type = GGML_TYPE_F32;
        int32_t flags = 0, function = 0;
        int32_t links[kLinks] = {};  // the place of a node; kNone; or a leaf by number, see leaf()
    };
    // A tensor by its place in the arranged graph: node `node` itself (link -1) or one of its links, and the node up to
    // which it is kept.
    using Wish = std::tuple<int, int, int>;  // until, node, link
    struct Form {
        bool owners_order = false;
        std::vector<Node> nodes;
        std::vector<std::pair<int, int>> leaves;  // where each was met first: node, link
        std::vector<int> order;                   // places before, in the new order
        std::set<Wish> wishes;
        std::set<int64_t> tokens;
    };

    static bool read(const ggml_cgraph* graph, Form& form);
    bool matches(const ggml_cgraph* graph, const Form& form);
    void learn(Form& form, bool first, ggml_cgraph* graph, const Members& members);

    std::list<Form> forms_;  // the last used first
    std::vector<const ggml_tensor*> leaves_;
    uint64_t asked_ = 0;
};

}  // namespace onebit::tandem
