// Host memory in which the inputs of the next graph wait, and stay until the graph is known to be right: delivered with
// the graph instead of by a submit of their own, and delivered again when the graph is repeated.
#pragma once

#include <cstddef>
#include <vector>

#include "ggml-backend.h"

namespace onebit::tandem {

// One thread at a time. Addresses stay valid until reset().
class Staging {
public:
    // device: whose host buffers are used, so that its copies from there need no staging of its own.
    explicit Staging(ggml_backend_dev_t device) : device_(device) {}
    Staging(const Staging&) = delete;
    Staging& operator=(const Staging&) = delete;
    ~Staging();

    // Memory of that many bytes, aligned to 64; null when more than the limit is in use.
    char* take(size_t bytes);
    void reset();

private:
    struct Block {
        ggml_backend_buffer_t buffer = nullptr;
        size_t used = 0;
    };
    ggml_backend_dev_t device_;
    std::vector<Block> blocks_;
    size_t total_ = 0;
};

}  // namespace onebit::tandem
