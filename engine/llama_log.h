// Keeps llama.cpp's log off the terminal while a one-shot command works with it.
#pragma once

#include <memory>
#include <mutex>
#include <string>

namespace onebit {

// While one lives, llama.cpp's and ggml's lines go to our log at level verbose, and errors are kept for a message.
// They nest; llama.cpp's logger is global to the process, so only one thread may make them.
class LlamaLog {
public:
    LlamaLog();
    ~LlamaLog();
    LlamaLog(const LlamaLog&) = delete;
    LlamaLog& operator=(const LlamaLog&) = delete;

    // The first error since the start, which as a rule is the cause and not a consequence; empty if there was none.
    std::string first_error() const;

private:
    static void receive(int level, const char* text, void* self);
    mutable std::mutex mutex_;
    std::string line_, error_;
    struct Previous;
    std::unique_ptr<Previous> previous_;
};

}  // namespace onebit
