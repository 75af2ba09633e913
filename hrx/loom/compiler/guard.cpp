#include "hrx/loom/compiler/guard.h"

#include <llvm/Support/ErrorHandling.h>

#include <csetjmp>
#include <mutex>
#include <new>

namespace onebit::loom {
namespace {

struct Frame {
    std::jmp_buf back;
    bool out_of_memory = false;
    char reason[256] = {};
};

thread_local Frame* current = nullptr;

// Text is copied without allocating: memory may be what is missing.
[[noreturn]] void leave(const char* reason, bool out_of_memory) {
    Frame* frame = current;
    frame->out_of_memory = out_of_memory;
    size_t length = 0;
    while (reason[length] != 0 && length + 1 < sizeof frame->reason) {
        frame->reason[length] = reason[length];
        length++;
    }
    frame->reason[length] = 0;
    std::longjmp(frame->back, 1);
}

void install_once() {
    static std::once_flag once;
    std::call_once(once, [] {
        llvm::install_fatal_error_handler([](void*, const char* reason, bool) {
            if (current != nullptr) leave(reason, false);
        });
        llvm::install_bad_alloc_error_handler([](void*, const char* reason, bool) {
            if (current != nullptr) leave(reason, true);
        });
    });
}

}  // namespace

Fatal run_guarded(const std::function<void()>& work) {
    install_once();
    Frame frame;
    Frame* const outer = current;
    current = &frame;
    if (setjmp(frame.back) == 0) {
        try {
            work();
        } catch (const std::bad_alloc&) {
            current = outer;
            return {true, true, "memory"};
        } catch (const std::exception& problem) {
            current = outer;
            return {true, false, problem.what()};
        }
        current = outer;
        return {};
    }
    current = outer;
    return {true, frame.out_of_memory, frame.reason};
}

}  // namespace onebit::loom
