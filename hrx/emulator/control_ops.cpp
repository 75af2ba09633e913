// Branches, waits, barriers, the end of a wave, and hints that change nothing here (SOPP, SOP1, SOPK).
#include "hrx/emulator/bind.h"
#include "hrx/emulator/checks.h"
#include "hrx/emulator/lds_races.h"
#include "hrx/emulator/signal.h"
#include "hrx/emulator/trap.h"
#include "hrx/emulator/wave.h"

namespace onebit::emulator {
namespace {

void go_to(Wave& wave, const Instruction& i, u32 target) {
    if (target == Program::kNoInstruction)
        raise_trap(TrapKind::bad_state, wave, i, -1, "the target of the branch is not the start of an instruction");
    wave.next = target;
}

template <auto Taken>
void branch(Wave& wave, const Instruction& i) {
    if (Taken(wave)) go_to(wave, i, i.target);
}

void nothing(Wave&, const Instruction&) {}
void end_program(Wave& wave, const Instruction&) { wave.state = WaveState::done; }

void barrier(Wave& wave, const Instruction&) {
    if (wave.checks != nullptr && wave.group->races != nullptr)
        for (const auto& store : wave.checks->pending_lds_stores())
            wave.group->races->carry_over(wave, store.address, store.bytes);
    wave.state = WaveState::at_barrier;
}

// simm16 of s_waitcnt on gfx11: EXPCNT 2:0, LGKMCNT 9:4, VMCNT 15:10
void wait_counters(Wave& wave, const Instruction& i) {
    if (wave.checks == nullptr) return;
    wave.checks->wait_loads(i.immediate >> 10 & 63);
    wave.checks->wait_lgkm(i.immediate >> 4 & 63);
}
void wait_stores(Wave& wave, const Instruction& i) {
    if (wave.checks != nullptr) wave.checks->wait_stores(i.immediate);
}
void wait_loads(Wave& wave, const Instruction& i) {
    if (wave.checks != nullptr) wave.checks->wait_loads(i.immediate);
}
void wait_lgkm(Wave& wave, const Instruction& i) {
    if (wave.checks != nullptr) wave.checks->wait_lgkm(i.immediate);
}
void wait_all(Wave& wave, const Instruction&) {
    if (wave.checks == nullptr) return;
    wave.checks->wait_loads(0);
    wave.checks->wait_lgkm(0);
    wave.checks->wait_stores(0);
}

void padding(Wave& wave, const Instruction& i) {
    raise_trap(TrapKind::bad_state, wave, i, -1, "the wave ran into the padding behind the code; s_endpgm is missing");
}
void software_trap(Wave& wave, const Instruction& i) {
    raise_trap(TrapKind::bad_state, wave, i, -1, "the kernel asked for trap " + std::to_string(i.immediate));
}

void get_pc(Wave& wave, const Instruction& i) { wave.set_scalar64(i.destination, i.next_pc); }
void set_pc(Wave& wave, const Instruction& i) { go_to(wave, i, wave.program->at(wave.scalar64(i.source[0]))); }
void swap_pc(Wave& wave, const Instruction& i) {
    const u64 target = wave.scalar64(i.source[0]);
    wave.set_scalar64(i.destination, i.next_pc);
    go_to(wave, i, wave.program->at(target));
}
void call(Wave& wave, const Instruction& i) {
    wave.set_scalar64(i.destination, i.next_pc);
    go_to(wave, i, i.target);
}

std::string take_immediate(BindContext& context) {
    if (context.decoded.immediates.empty()) return "no immediate";
    context.out.immediate = static_cast<u16>(context.decoded.immediates.back());
    return {};
}

std::string bind_simple(BindContext& context, const Operation& operation) {
    if (!context.decoded.immediates.empty())
        context.out.immediate = static_cast<u16>(context.decoded.immediates.back());
    context.out.handler = operation.handler;
    return {};
}

// Resolved to an instruction once all are known (program.cpp).
std::string bind_branch(BindContext& context, const Operation& operation) {
    if (auto problem = take_immediate(context); !problem.empty()) return problem;
    context.out.handler = operation.handler;
    context.out.target = Program::kNoInstruction;
    context.out.offset = 4 * static_cast<i32>(static_cast<i16>(context.out.immediate));
    if (operation.value == kVcc || operation.value == kExec)
        note_read(context, scalar_register(static_cast<u16>(operation.value)));
    if (operation.value == 1)
        return bind_destination(context, context.text.operands[0], 2, false, context.out.destination);
    return {};
}

// s_waitcnt_vscnt and its kin: the count is the immediate plus a register, of which only null is read.
std::string bind_wait(BindContext& context, const Operation& operation) {
    const auto& operands = context.text.operands;
    if (operands.size() != 2 || operands[0].kind != AsmOperand::Kind::sgpr || operands[0].index != kNull)
        return "a wait counter in a register";
    if (auto problem = take_immediate(context); !problem.empty()) return problem;
    context.out.handler = operation.handler;
    return {};
}

// Only the modes that kernels are started with: denormals kept, round to nearest even.
std::string bind_mode(BindContext& context, const Operation& operation) {
    if (auto problem = take_immediate(context); !problem.empty()) return problem;
    if (context.out.immediate != operation.value) return "a floating-point mode other than that of HSA kernels";
    context.out.handler = nothing;
    return {};
}

std::string bind_message(BindContext& context, const Operation&) {
    if (auto problem = take_immediate(context); !problem.empty()) return problem;
    if (context.out.immediate != 3) return "a message other than MSG_DEALLOC_VGPRS";
    context.out.handler = nothing;
    return {};
}

// MSG_RTN_GET_REALTIME: a clock of 100 MHz, the one of HSA's agent timestamps.
void send_message_return(Wave& wave, const Instruction& i) { wave.set_scalar64(i.destination, now() / 10); }
std::string bind_message_return(BindContext& context, const Operation& operation) {
    if (auto problem = take_immediate(context); !problem.empty()) return problem;
    if (context.out.immediate != 0x83) return "a message other than MSG_RTN_GET_REALTIME";
    if (context.text.operands.empty()) return "no operands";
    context.details.counter = Counter::scalar;
    context.out.handler = operation.handler;
    return bind_destination(context, context.text.operands[0], 2, false, context.out.destination);
}

std::string bind_pc(BindContext& context, const Operation& operation) {
    const auto& operands = context.text.operands;
    std::size_t next = 0;
    if (operation.value != 2) {
        if (operands.empty()) return "no operands";
        if (auto problem = bind_destination(context, operands[next++], 2, false, context.out.destination);
            !problem.empty())
            return problem;
    }
    if (operation.value != 1) {
        if (next >= operands.size()) return "too few operands";
        if (auto problem = bind_source(context, operands[next], 'q', context.out.source[0]); !problem.empty())
            return problem;
        if (context.out.source[0].kind != OperandKind::sgpr) return "target " + operands[next].text;
    }
    context.out.handler = operation.handler;
    return {};
}

#define SIMPLE(name, handler) \
    { name, "", bind_simple, nullptr, nullptr, nullptr, handler }
#define BRANCH(name, value, condition)                                                       \
    {                                                                                        \
        name, "", bind_branch, nullptr, nullptr, nullptr, branch<[](const Wave& w) -> bool { \
            (void)w;                                                                         \
            return condition;                                                                \
        }>,                                                                                  \
            value                                                                            \
    }

const Operation kOperations[] = {
    BRANCH("s_branch", 0, true),
    BRANCH("s_cbranch_scc0", 0, !w.scc),
    BRANCH("s_cbranch_scc1", 0, w.scc),
    BRANCH("s_cbranch_vccz", kVcc, w.s[kVcc] == 0),
    BRANCH("s_cbranch_vccnz", kVcc, w.s[kVcc] != 0),
    BRANCH("s_cbranch_execz", kExec, w.exec() == 0),
    BRANCH("s_cbranch_execnz", kExec, w.exec() != 0),
    {"s_call_b64", "", bind_branch, nullptr, nullptr, nullptr, call, 1},
    {"s_getpc_b64", "", bind_pc, nullptr, nullptr, nullptr, get_pc, 1},
    {"s_setpc_b64", "", bind_pc, nullptr, nullptr, nullptr, set_pc, 2},
    {"s_swappc_b64", "", bind_pc, nullptr, nullptr, nullptr, swap_pc, 3},
    SIMPLE("s_endpgm", end_program),
    SIMPLE("s_barrier", barrier),
    SIMPLE("s_waitcnt", wait_counters),
    {"s_waitcnt_vscnt", "", bind_wait, nullptr, nullptr, nullptr, wait_stores},
    {"s_waitcnt_vmcnt", "", bind_wait, nullptr, nullptr, nullptr, wait_loads},
    {"s_waitcnt_lgkmcnt", "", bind_wait, nullptr, nullptr, nullptr, wait_lgkm},
    {"s_waitcnt_expcnt", "", bind_wait, nullptr, nullptr, nullptr, nothing},
    SIMPLE("s_wait_idle", wait_all),
    SIMPLE("s_waitcnt_depctr", nothing),
    SIMPLE("s_delay_alu", nothing),
    SIMPLE("s_nop", nothing),
    SIMPLE("s_clause", nothing),
    SIMPLE("s_sleep", nothing),
    SIMPLE("s_setprio", nothing),
    SIMPLE("s_set_inst_prefetch_distance", nothing),
    SIMPLE("s_icache_inv", nothing),
    SIMPLE("s_dcache_inv", nothing),
    SIMPLE("s_gl1_inv", nothing),
    SIMPLE("s_version", nothing),
    SIMPLE("buffer_gl0_inv", nothing),
    SIMPLE("buffer_gl1_inv", nothing),
    SIMPLE("v_nop", nothing),
    SIMPLE("s_code_end", padding),
    SIMPLE("s_trap", software_trap),
    {"s_denorm_mode", "", bind_mode, nullptr, nullptr, nullptr, nullptr, 15},
    {"s_round_mode", "", bind_mode, nullptr, nullptr, nullptr, nullptr, 0},
    {"s_sendmsg", "", bind_message},
    {"s_sendmsg_rtn_b64", "", bind_message_return, nullptr, nullptr, nullptr, send_message_return},
};

}  // namespace

std::span<const Operation> control_operations() { return kOperations; }

}  // namespace onebit::emulator
