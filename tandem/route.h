// Which member runs a graph: a pure function of the graph and the rule.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "ggml-impl.h"
#include "tandem/settings.h"

namespace onebit::tandem {

enum class Phase { prefill, decode };

// Members are numbers: 0 is the owner, the guests follow.
struct RouteRule {
    size_t prefill = 0, decode = 0;
    int64_t min_tokens = 1;
    Segments segments = Segments::automatic;
    bool strict = false;
};

// Nodes [first, last) of a graph, run by one member.
struct Piece {
    int first = 0, last = 0;
    size_t member = 0;
};

struct Plan {
    Phase phase = Phase::decode;
    int64_t tokens = 0;         // of the graph; 0 when it multiplies no weights
    size_t member = 0;          // of the phase
    std::vector<Piece> pieces;  // empty: nobody can run it, or strict forbids it
    std::string fallback;       // why it does not run whole on the member of its phase; empty when it does
};

// The most columns that a node of the graph multiplies with weights: the tokens of the ubatch.
int64_t graph_tokens(const ggml_cgraph* graph);

// supports(member, node): whether the member can run the node, and is still in use.
using Supports = std::function<bool(size_t, const ggml_tensor*)>;
Plan make_plan(const ggml_cgraph* graph, const RouteRule& rule, size_t members, const Supports& supports);

}  // namespace onebit::tandem
