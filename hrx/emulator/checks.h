// What checked mode knows about a wave beside its registers: which lanes and registers hold defined values, and which
// registers belong to memory instructions in flight (counters VMCNT, LGKMCNT and VSCNT of the ISA reference). The
// emulator performs loads at once; a program that reads the result before the wait that hardware needs is trapped here.
// Registers that only move (v_mov, s_mov) carry "undefined" along; any other use traps.
#pragma once

#include <vector>

#include "hrx/emulator/instruction.h"
#include "hrx/emulator/types.h"

namespace onebit::emulator {

struct Wave;
struct Instruction;
struct Details;

class WaveChecks {
public:
    // Nothing is defined and nothing in flight.
    void reset(u32 vector_registers);
    void define_scalar(u16 index, u32 words = 1);
    void define_vector(u16 index, u32 lanes);

    // Before and after the handler of an instruction.
    void before(Wave& wave, const Instruction& instruction, const Details& details);
    void after(Wave& wave, const Instruction& instruction, const Details& details);

    // For handlers that know better which lanes they touch.
    void require_lanes(const Wave& wave, const Instruction& instruction, u16 index, u32 lanes) const;
    void wrote_lanes(u16 index, u32 words, u32 lanes);

    // Waits of s_waitcnt and its kin: at most that many stay in flight.
    void wait_loads(u32 left) { loads_.wait(left); }
    void wait_stores(u32 left) { stores_.wait(left); }
    void wait_lgkm(u32 left);

    // An LDS store of this wave; it is ordered by a barrier only if the wave waited for it before.
    struct PendingStore {
        u32 address, bytes, sequence;
    };
    void lds_store(u32 address, u32 bytes);
    const std::vector<PendingStore>& pending_lds_stores() const { return lds_stores_; }

private:
    // Numbers the instructions of one counter; those up to `done` have finished.
    struct InFlight {
        u32 issued = 0;
        u32 done = 0;
        u32 unordered = 0;  // newest that may finish out of order
        u32 issue(bool in_order) {
            ++issued;
            if (!in_order) unordered = issued;
            return issued;
        }
        void wait(u32 left) {
            // with out-of-order ones in flight only a wait for all says which have finished
            if (left != 0 && unordered > done) return;
            const u32 finished = issued > left ? issued - left : 0;
            if (finished > done) done = finished;
        }
    };
    [[noreturn]] void missing_wait(const Wave& wave, const Instruction& instruction, const RegisterUse& use, int word,
                                   bool write) const;

    InFlight loads_, stores_, lgkm_;
    u32 vector_registers_ = 256;
    u32 vector_defined_[256] = {};  // lanes
    bool scalar_defined_[kScalarRegisters] = {};
    u32 vector_load_[256] = {};  // number in loads_ of the newest load into the register
    u32 vector_lgkm_[256] = {};
    u32 scalar_lgkm_[kScalarRegisters] = {};
    bool load_in_order_[256] = {};
    bool lgkm_in_order_[256] = {};
    std::vector<PendingStore> lds_stores_;
};

}  // namespace onebit::emulator
