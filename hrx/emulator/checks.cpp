#include "hrx/emulator/checks.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "hrx/emulator/trap.h"
#include "hrx/emulator/wave.h"

namespace onebit::emulator {
namespace {

std::string register_name(bool vector, u32 index) {
    if (!vector && index == kVcc) return "vcc_lo";
    if (!vector && index == kM0) return "m0";
    if (!vector && index == kExec) return "exec_lo";
    return (vector ? "v" : "s") + std::to_string(index);
}

}  // namespace

void WaveChecks::reset(u32 vector_registers) {
    *this = WaveChecks();
    vector_registers_ = vector_registers;
    scalar_defined_[kExec] = scalar_defined_[kNull] = true;
}

void WaveChecks::define_scalar(u16 index, u32 words) {
    for (u32 k = 0; k < words && index + k < kScalarRegisters; ++k) scalar_defined_[index + k] = true;
}
void WaveChecks::define_vector(u16 index, u32 lanes) { vector_defined_[index] |= lanes; }

void WaveChecks::missing_wait(const Wave& wave, const Instruction& instruction, const RegisterUse& use, int word,
                              bool write) const {
    const u32 index = use.index + static_cast<u32>(word);
    const bool load = use.vector && vector_load_[index] > loads_.done;
    raise_trap(TrapKind::missing_wait, wave, instruction, -1,
               register_name(use.vector, index) + (write ? " is written" : " is read") +
                   " while a memory instruction that fills it is in flight; expected s_waitcnt " +
                   (load ? "vmcnt" : "lgkmcnt") + " before");
}

void WaveChecks::before(Wave& wave, const Instruction& instruction, const Details& details) {
    const u32 exec = wave.exec();
    for (const RegisterUse& use : details.reads) {
        for (int word = 0; word < use.words; ++word) {
            const u32 index = use.index + static_cast<u32>(word);
            if (use.vector) {
                if (index >= vector_registers_)
                    raise_trap(TrapKind::register_range, wave, instruction, -1,
                               register_name(true, index) + " is read, the kernel allocates v0 to v" +
                                   std::to_string(vector_registers_ - 1));
                if (vector_load_[index] > loads_.done || vector_lgkm_[index] > lgkm_.done)
                    missing_wait(wave, instruction, use, word, false);
                if (use.checked_by_handler || use.propagates || details.copies) continue;
                const u32 undefined = (use.all_lanes ? kAllLanes : exec) & ~vector_defined_[index];
                if (undefined != 0)
                    raise_trap(TrapKind::uninitialised, wave, instruction, std::countr_zero(undefined),
                               register_name(true, index) + " is read before anything wrote this lane");
            } else if (index < kScalarRegisters) {
                if (scalar_lgkm_[index] > lgkm_.done) missing_wait(wave, instruction, use, word, false);
                if (!scalar_defined_[index] && !use.propagates && !details.copies)
                    raise_trap(TrapKind::uninitialised, wave, instruction, -1,
                               register_name(false, index) + " is read before anything wrote it");
            }
        }
    }
    const bool load = details.counter == Counter::vector_load;
    const bool lds = details.counter == Counter::lds;
    for (const RegisterUse& use : details.writes) {
        for (int word = 0; word < use.words; ++word) {
            const u32 index = use.index + static_cast<u32>(word);
            if (use.vector) {
                if (index >= vector_registers_)
                    raise_trap(TrapKind::register_range, wave, instruction, -1,
                               register_name(true, index) + " is written, the kernel allocates v0 to v" +
                                   std::to_string(vector_registers_ - 1));
                // loads of one kind return in order, so a second one into the same register needs no wait
                const bool pending = (vector_load_[index] > loads_.done && !(load && load_in_order_[index])) ||
                                     (vector_lgkm_[index] > lgkm_.done && !(lds && lgkm_in_order_[index]));
                if (pending) missing_wait(wave, instruction, use, word, true);
            } else if (index < kScalarRegisters && scalar_lgkm_[index] > lgkm_.done) {
                missing_wait(wave, instruction, use, word, true);
            }
        }
    }
}

void WaveChecks::after(Wave& wave, const Instruction& instruction, const Details& details) {
    (void)instruction;
    u32 load = 0;
    u32 lgkm = 0;
    bool in_order = true;
    switch (details.counter) {
        case Counter::none:
            break;
        case Counter::vector_load:
            load = loads_.issue(true);
            break;
        case Counter::vector_store:
            stores_.issue(true);
            break;
        case Counter::lds:
            lgkm = lgkm_.issue(true);
            break;
        case Counter::scalar:
            lgkm = lgkm_.issue(false);
            in_order = false;
            break;
        case Counter::flat_load:
            load = loads_.issue(false);
            lgkm = lgkm_.issue(false);
            in_order = false;
            break;
        case Counter::flat_store:
            stores_.issue(true);
            lgkm = lgkm_.issue(false);
            break;
    }
    // lanes whose low, and whose low and high words are defined in all sources that propagate
    u32 words_defined[2] = {kAllLanes, kAllLanes};
    for (const RegisterUse& use : details.reads) {
        if (!use.propagates) continue;
        for (u32 word = 0; word < 2; ++word) {
            const u32 index = use.index + word;
            const u32 lanes = use.vector ? vector_defined_[index] : scalar_defined_[index] ? kAllLanes : 0;
            for (u32 k = word; k < 2; ++k) words_defined[k] &= lanes;
        }
    }
    const u32 exec = wave.exec();
    for (const RegisterUse& use : details.writes) {
        for (int word = 0; word < use.words; ++word) {
            const u32 index = use.index + static_cast<u32>(word);
            const u32 defined_lanes = use.words == 2 ? words_defined[word] : kAllLanes;
            if (use.vector) {
                vector_load_[index] = load;
                vector_lgkm_[index] = lgkm;
                load_in_order_[index] = lgkm_in_order_[index] = in_order;
                if (use.checked_by_handler) continue;
                u32 lanes = use.all_lanes ? kAllLanes : exec;
                if (details.copies && !details.reads.empty() && details.reads[0].vector) {
                    const u32 source = vector_defined_[details.reads[0].index + word];
                    vector_defined_[index] = (vector_defined_[index] & ~lanes) | (source & lanes);
                } else {
                    vector_defined_[index] = (vector_defined_[index] & ~lanes) | (lanes & defined_lanes);
                }
            } else if (index < kScalarRegisters) {
                scalar_lgkm_[index] = lgkm;
                bool defined = defined_lanes == kAllLanes;
                if (details.copies && !details.reads.empty() && !details.reads[0].vector)
                    defined = scalar_defined_[details.reads[0].index + word];
                scalar_defined_[index] = defined;
            }
        }
    }
}

void WaveChecks::require_lanes(const Wave& wave, const Instruction& instruction, u16 index, u32 lanes) const {
    const u32 undefined = lanes & ~vector_defined_[index];
    if (undefined != 0)
        raise_trap(TrapKind::uninitialised, wave, instruction, std::countr_zero(undefined),
                   register_name(true, index) + " is read before anything wrote this lane");
}

void WaveChecks::wrote_lanes(u16 index, u32 words, u32 lanes) {
    for (u32 word = 0; word < words; ++word) vector_defined_[index + word] |= lanes;
}

void WaveChecks::wait_lgkm(u32 left) {
    lgkm_.wait(left);
    std::erase_if(lds_stores_, [&](const PendingStore& store) { return store.sequence <= lgkm_.done; });
}

void WaveChecks::lds_store(u32 address, u32 bytes) { lds_stores_.push_back({address, bytes, lgkm_.issued + 1}); }

}  // namespace onebit::emulator
