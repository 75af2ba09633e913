// Additions with carry masks, and the 32 by 32 to 64 bit multiply-adds, of whose 65-bit sums the top bit is a mask too.
#include "hrx/emulator/vector_core.h"

namespace onebit::emulator {
namespace {

// Sum in d, carries behind it.
template <auto F>
void with_carry(u32* d, const u32* a, const u32* b, const u32* c) {
    u32 result[2 * kLanes];
    for (int lane = 0; lane < kLanes; ++lane) {
        const u64 sum = F(u64{a[lane]}, u64{b[lane]}, u64{c[lane]});
        result[lane] = static_cast<u32>(sum);
        result[kLanes + lane] = static_cast<u32>(sum >> 32) & 1;
    }
    for (int k = 0; k < 2 * kLanes; ++k) d[k] = result[k];
}

template <bool Signed>
void multiply_add(u32* d, const u32* a, const u32* b, const u32* c) {
    for (int lane = 0; lane < kLanes; ++lane) {
        const u64 addend = wide_at(c, lane);
        const u64 product = Signed ? static_cast<u64>(i64{static_cast<i32>(a[lane])} * static_cast<i32>(b[lane]))
                                   : u64{a[lane]} * b[lane];
        const u64 sum = product + addend;
        d[lane] = static_cast<u32>(sum);
        d[kLanes + lane] = static_cast<u32>(sum >> 32);
        // signed operands are extended to 65 bits: the top one is the sign of the exact sum
        const bool overflow = static_cast<i64>((product ^ sum) & (addend ^ sum)) < 0;
        const bool top = Signed ? (static_cast<i64>(sum) < 0) != overflow : sum < addend;
        d[2 * kLanes + lane] = top ? 1 : 0;
    }
}

std::string bind_multiply_add(BindContext& context, const Operation& operation) {
    if (auto problem = bind_vector(context, operation); !problem.empty()) return problem;
    propagate_undefined(context);
    return {};
}

#define CARRY(e)                         \
    with_carry<[](u64 a, u64 b, u64 c) { \
        (void)c;                         \
        return (e);                      \
    }>

const Operation kOperations[] = {
    {"v_add_co_u32", "uc:uu", bind_vector, CARRY(a + b)},
    {"v_sub_co_u32", "uc:uu", bind_vector, CARRY(a - b)},
    {"v_subrev_co_u32", "uc:uu", bind_vector, CARRY(b - a)},
    {"v_add_co_ci_u32", "uc:uum", bind_vector, CARRY(a + b + c)},
    {"v_sub_co_ci_u32", "uc:uum", bind_vector, CARRY(a - b - c)},
    {"v_subrev_co_ci_u32", "uc:uum", bind_vector, CARRY(b - a - c)},
    {"v_mad_u64_u32", "qc:uuq", bind_multiply_add, multiply_add<false>},
    {"v_mad_i64_i32", "qc:uuq", bind_multiply_add, multiply_add<true>},
};

}  // namespace

std::span<const Operation> vector_carry_operations() { return kOperations; }

}  // namespace onebit::emulator
