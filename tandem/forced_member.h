// A member that runs all graphs of one thread, whatever the route says: for measuring.
#pragma once

#include <cstddef>
#include <optional>

namespace onebit::tandem {

// While one lives, graphs that its thread computes on any tandem go to that member (0: the owner) and are not counted.
// A graph that it cannot run falls back as usual. They do not nest.
class ForcedMember {
public:
    explicit ForcedMember(size_t member) { current_ = member; }
    ~ForcedMember() { current_.reset(); }
    ForcedMember(const ForcedMember&) = delete;
    ForcedMember& operator=(const ForcedMember&) = delete;

    // Of the calling thread.
    static std::optional<size_t> current() { return current_; }

private:
    static inline thread_local std::optional<size_t> current_;
};

}  // namespace onebit::tandem
