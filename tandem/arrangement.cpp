#include "tandem/arrangement.h"

#include <algorithm>
#include <unordered_map>
#include <utility>

namespace onebit::tandem {
namespace {

constexpr size_t kMaxForms = 16, kMaxTokenCounts = 64;
constexpr int32_t kNone = -1;

constexpr int32_t leaf(size_t number) { return -2 - static_cast<int32_t>(number); }
constexpr size_t leaf_number(int32_t link) { return static_cast<size_t>(-2 - link); }

ggml_tensor* link_of(const ggml_tensor* node, int link) {
    return link < GGML_MAX_SRC ? node->src[link] : node->view_src;
}

// What a fusion asks of a node beside its operation and sources; the parameters of other operations change with shapes.
int32_t function_of(const ggml_tensor* node) {
    return node->op == GGML_OP_UNARY || node->op == GGML_OP_GLU ? node->op_params[0] : 0;
}

bool has_memory(const ggml_tensor* tensor) {
    const ggml_tensor* base = tensor->view_src != nullptr ? tensor->view_src : tensor;
    return base->data != nullptr || base->buffer != nullptr;
}

// A leaf that is no view: two of them are the same memory only when they are the same tensor.
bool plain_leaf(const ggml_tensor* tensor) { return tensor->op == GGML_OP_NONE && tensor->view_src == nullptr; }

}  // namespace

// False when the form cannot be told from pointers alone.
bool Arrangements::read(const ggml_cgraph* graph, Form& form) {
    std::unordered_map<const ggml_tensor*, int32_t> places;
    places.reserve(static_cast<size_t>(graph->n_nodes) * 2);
    form.nodes.resize(static_cast<size_t>(graph->n_nodes));
    for (int i = 0; i < graph->n_nodes; ++i) {
        const ggml_tensor* node = graph->nodes[i];
        if (node->op == GGML_OP_NONE) return false;
        Node& entry = form.nodes[static_cast<size_t>(i)];
        entry.op = node->op;
        entry.type = node->type;
        entry.flags = node->flags;
        entry.function = function_of(node);
        for (int l = 0; l < kLinks; ++l) {
            const ggml_tensor* source = link_of(node, l);
            if (source == nullptr) {
                entry.links[l] = kNone;
                continue;
            }
            const auto [found, added] = places.try_emplace(source, leaf(form.leaves.size()));
            entry.links[l] = found->second;
            if (!added) continue;
            if (!plain_leaf(source)) return false;
            form.leaves.emplace_back(i, l);
        }
        if (!places.try_emplace(node, i).second) return false;
    }
    return true;
}

bool Arrangements::matches(const ggml_cgraph* graph, const Form& form) {
    if (form.nodes.size() != static_cast<size_t>(graph->n_nodes)) return false;
    leaves_.assign(form.leaves.size(), nullptr);
    for (int i = 0; i < graph->n_nodes; ++i) {
        const ggml_tensor* node = graph->nodes[i];
        const Node& entry = form.nodes[static_cast<size_t>(i)];
        if (node->op != entry.op || node->type != entry.type || node->flags != entry.flags ||
            function_of(node) != entry.function)
            return false;
        for (int l = 0; l < kLinks; ++l) {
            const ggml_tensor* source = link_of(node, l);
            const int32_t link = entry.links[l];
            if (link >= 0) {
                if (source != graph->nodes[link]) return false;
            } else if (link == kNone) {
                if (source != nullptr) return false;
            } else {
                const ggml_tensor*& known = leaves_[leaf_number(link)];
                if (known == nullptr) {
                    if (source == nullptr || !plain_leaf(source)) return false;
                    known = source;
                } else if (known != source) {
                    return false;
                }
            }
        }
    }
    // leaves that differ there differ here: otherwise a write to one would be a read of another
    std::sort(leaves_.begin(), leaves_.end());
    return std::adjacent_find(leaves_.begin(), leaves_.end()) == leaves_.end();
}

// Asks the members. The graph is in the form's order afterwards.
void Arrangements::learn(Form& form, bool first, ggml_cgraph* graph, const Members& members) {
    ++asked_;
    std::vector<std::pair<ggml_tensor*, ggml_tensor*>> asked;  // tensor, until
    ggml_backend_graph_optimize_params parameters = {
        [](void* to, ggml_tensor* tensor, ggml_tensor* until) {
            static_cast<decltype(asked)*>(to)->emplace_back(tensor, until);
        },
        &asked,
    };
    std::vector<ggml_tensor*> nodes;
    for (size_t member = 0; member < members.count; ++member) {
        nodes.assign(graph->nodes, graph->nodes + graph->n_nodes);
        ggml_cgraph copy = *graph;
        copy.nodes = nodes.data();
        members.ask(member, &copy, &parameters);
        if (member == 0 && first && members.owners_order) {
            std::unordered_map<const ggml_tensor*, int> before;
            before.reserve(nodes.size() * 2);
            for (int i = 0; i < graph->n_nodes; ++i) before.emplace(graph->nodes[i], i);
            for (size_t i = 0; i < nodes.size(); ++i) form.order[i] = before.at(nodes[i]);
            std::copy(nodes.begin(), nodes.end(), graph->nodes);
        }
    }

    std::unordered_map<const ggml_tensor*, std::pair<int, int>> places;  // where a tensor is met first
    places.reserve(nodes.size() * 4);
    for (int i = 0; i < graph->n_nodes; ++i) {
        for (int l = 0; l < kLinks; ++l)
            if (const ggml_tensor* source = link_of(graph->nodes[i], l); source != nullptr)
                places.try_emplace(source, i, l);
        places.try_emplace(graph->nodes[i], i, -1);
    }
    for (const auto& [tensor, until] : asked) {
        if (has_memory(tensor)) continue;
        const auto place = places.find(tensor), end = places.find(until);
        // a wish in another order may come too late in this one: it only makes a fusion possible, which is tested again
        if (place == places.end() || end == places.end() || end->second.second != -1) continue;
        if (place->second.first <= end->second.first)
            form.wishes.emplace(end->second.first, place->second.first, place->second.second);
    }
}

void Arrangements::arrange(ggml_cgraph* graph, int64_t tokens, const Members& members,
                           ggml_backend_graph_optimize_params* parameters) {
    const auto known = std::find_if(forms_.begin(), forms_.end(), [&](const Form& form) {
        return form.owners_order == members.owners_order && matches(graph, form);
    });
    const bool first = known == forms_.end();
    if (first) {
        Form form;
        form.owners_order = members.owners_order;
        if (!read(graph, form)) {
            ++asked_;
            std::vector<ggml_tensor*> nodes;
            for (size_t member = 0; member < members.count; ++member) {
                nodes.assign(graph->nodes, graph->nodes + graph->n_nodes);
                ggml_cgraph copy = *graph;
                copy.nodes = nodes.data();
                const bool in_place = member == 0 && members.owners_order;
                members.ask(member, in_place ? graph : &copy, parameters);
            }
            return;
        }
        form.order.resize(form.nodes.size());
        for (size_t i = 0; i < form.order.size(); ++i) form.order[i] = static_cast<int>(i);
        if (forms_.size() >= kMaxForms) forms_.pop_back();
        forms_.push_front(std::move(form));
    } else {
        forms_.splice(forms_.begin(), forms_, known);
        const std::vector<ggml_tensor*> nodes(graph->nodes, graph->nodes + graph->n_nodes);
        for (size_t i = 0; i < nodes.size(); ++i) graph->nodes[i] = nodes[static_cast<size_t>(forms_.front().order[i])];
    }
    Form& form = forms_.front();
    if (first || (form.tokens.size() < kMaxTokenCounts && form.tokens.count(tokens) == 0))
        learn(form, first, graph, members);
    form.tokens.insert(tokens);
    for (const auto& [until, node, link] : form.wishes) {
        ggml_tensor* tensor = link < 0 ? graph->nodes[node] : link_of(graph->nodes[node], link);
        parameters->add_alloc_dep(parameters->user_data, tensor, graph->nodes[until]);
    }
}

}  // namespace onebit::tandem
