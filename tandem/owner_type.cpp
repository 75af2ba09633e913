#include "tandem/owner_type.h"

#include <algorithm>
#include <map>
#include <mutex>
#include <shared_mutex>

namespace onebit::tandem {
namespace {

struct Answer {
    ggml_backend_buffer_type_i original = {};
    std::vector<ggml_backend_buffer_type_t> others;
};

std::shared_mutex mutex;
std::map<ggml_backend_buffer_type_t, Answer>& answers() {
    static auto* all = new std::map<ggml_backend_buffer_type_t, Answer>;
    return *all;
}

size_t alignment(ggml_backend_buffer_type_t type) {
    const std::shared_lock lock(mutex);
    const Answer& answer = answers().at(type);
    size_t most = answer.original.get_alignment(type);
    for (ggml_backend_buffer_type_t other : answer.others)
        most = std::max(most, ggml_backend_buft_get_alignment(other));
    return most;
}

size_t alloc_size(ggml_backend_buffer_type_t type, const ggml_tensor* tensor) {
    const std::shared_lock lock(mutex);
    const Answer& answer = answers().at(type);
    size_t most =
        answer.original.get_alloc_size != nullptr ? answer.original.get_alloc_size(type, tensor) : ggml_nbytes(tensor);
    for (ggml_backend_buffer_type_t other : answer.others)
        most = std::max(most, ggml_backend_buft_get_alloc_size(other, tensor));
    return most;
}

}  // namespace

void ask_all_members(ggml_backend_buffer_type_t owner, const std::vector<ggml_backend_buffer_type_t>& types) {
    const std::unique_lock lock(mutex);
    const auto [entry, added] = answers().try_emplace(owner);
    Answer& answer = entry->second;
    for (ggml_backend_buffer_type_t type : types)
        if (type != owner && std::find(answer.others.begin(), answer.others.end(), type) == answer.others.end())
            answer.others.push_back(type);
    if (!added) return;
    answer.original = owner->iface;
    owner->iface.get_alignment = &alignment;
    owner->iface.get_alloc_size = &alloc_size;
}

}  // namespace onebit::tandem
