// Counted objects behind the C handles, and Ref, which owns one count.
#pragma once

#include <atomic>
#include <cstdint>
#include <utility>

namespace onebit::hrx::runtime {

// Starts with one owner. Counting is safe from any thread.
class Counted {
public:
    Counted() = default;
    Counted(const Counted&) = delete;
    Counted& operator=(const Counted&) = delete;

    void retain() { count_.fetch_add(1, std::memory_order_relaxed); }
    void release() {
        if (count_.fetch_sub(1, std::memory_order_acq_rel) == 1) delete this;
    }

protected:
    virtual ~Counted() = default;

private:
    std::atomic<uint32_t> count_{1};
};

template <typename T>
class Ref {
public:
    Ref() = default;
    // Takes over the count that the caller has.
    static Ref adopt(T* object) {
        Ref ref;
        ref.object_ = object;
        return ref;
    }
    // Adds a count of its own.
    static Ref share(T* object) {
        if (object != nullptr) object->retain();
        return adopt(object);
    }
    Ref(const Ref& other) : object_(other.object_) {
        if (object_ != nullptr) object_->retain();
    }
    Ref(Ref&& other) noexcept : object_(std::exchange(other.object_, nullptr)) {}
    Ref& operator=(Ref other) noexcept {
        std::swap(object_, other.object_);
        return *this;
    }
    ~Ref() {
        if (object_ != nullptr) object_->release();
    }

    T* get() const { return object_; }
    T* operator->() const { return object_; }
    T& operator*() const { return *object_; }
    explicit operator bool() const { return object_ != nullptr; }
    T* leak() { return std::exchange(object_, nullptr); }

private:
    T* object_ = nullptr;
};

}  // namespace onebit::hrx::runtime
