// What atomics compute, for memory and LDS alike. T: u32 or u64.
#pragma once

#include <algorithm>

#include "hrx/emulator/math.h"
#include "hrx/emulator/types.h"

namespace onebit::emulator {

template <typename T>
using Modify = T (*)(T old, T data, T compare);

template <typename T>
using SignedOf = std::make_signed_t<T>;

template <typename T>
T atomic_inc(T old, T data, T) {
    return old >= data ? 0 : old + 1;
}
template <typename T>
T atomic_dec(T old, T data, T) {
    return old == 0 || old > data ? data : old - 1;
}
template <typename T>
T atomic_min_signed(T old, T data, T) {
    return static_cast<T>(std::min(static_cast<SignedOf<T>>(old), static_cast<SignedOf<T>>(data)));
}
template <typename T>
T atomic_max_signed(T old, T data, T) {
    return static_cast<T>(std::max(static_cast<SignedOf<T>>(old), static_cast<SignedOf<T>>(data)));
}

inline u32 atomic_add_f32(u32 old, u32 data, u32) { return bits_of(as_f32(old) + as_f32(data)); }
inline u32 atomic_min_f32(u32 old, u32 data, u32) { return bits_of(ieee_min(as_f32(old), as_f32(data))); }
inline u32 atomic_max_f32(u32 old, u32 data, u32) { return bits_of(ieee_max(as_f32(old), as_f32(data))); }

#define ATOMIC(T, e)                          \
    [](T old, T data, T compare) -> T {       \
        (void)old, (void)data, (void)compare; \
        return (e);                           \
    }

}  // namespace onebit::emulator
