// Values that cross lanes: lane reads and writes, row permutations, counts of lanes below.
#include <bit>

#include "hrx/emulator/checks.h"
#include "hrx/emulator/trap.h"
#include "hrx/emulator/vector_core.h"

namespace onebit::emulator {
namespace {

void require(const Wave& wave, const Instruction& i, const Operand& operand, u32 lanes) {
    if (wave.checks != nullptr && operand.kind == OperandKind::vgpr)
        wave.checks->require_lanes(wave, i, operand.index, lanes);
}

u32 value_of_lane(const Wave& wave, const Operand& operand, u32 lane) {
    return operand.kind == OperandKind::vgpr ? wave.v[operand.index][lane] : wave.scalar(operand);
}

void execute_readlane(Wave& wave, const Instruction& i) {
    const u32 lane = wave.scalar(i.source[1]) & 31;
    require(wave, i, i.source[0], 1u << lane);
    wave.set_scalar(i.destination, value_of_lane(wave, i.source[0], lane));
}

void execute_readfirstlane(Wave& wave, const Instruction& i) {
    const u32 lane = wave.exec() == 0 ? 0 : static_cast<u32>(std::countr_zero(wave.exec()));
    require(wave, i, i.source[0], 1u << lane);
    wave.set_scalar(i.destination, value_of_lane(wave, i.source[0], lane));
}

void execute_writelane(Wave& wave, const Instruction& i) {
    const u32 lane = wave.scalar(i.source[1]) & 31;
    wave.v[i.destination.index][lane] = wave.scalar(i.source[0]);
    if (wave.checks != nullptr) wave.checks->wrote_lanes(i.destination.index, 1, 1u << lane);
}

// value: 0 within the row of 16, 1 from the other row.
void execute_permlane16(Wave& wave, const Instruction& i) {
    const u64 selectors = wave.scalar(i.source[1]) | static_cast<u64>(wave.scalar(i.source[2])) << 32;
    const u32 exec = wave.exec();
    alignas(64) u32 out[kLanes];
    u32 read = 0;
    u32 written = exec;
    for (int lane = 0; lane < kLanes; ++lane) {
        const int row = i.immediate == 1 ? (lane & 16) ^ 16 : lane & 16;
        const int from = row | static_cast<int>(selectors >> 4 * (lane & 15) & 15);
        const bool valid = i.dpp.fetch_inactive || (exec >> from & 1) != 0;
        out[lane] = valid ? wave.v[i.source[0].index][from] : 0;
        if (valid && (exec >> lane & 1) != 0) read |= 1u << from;
        if (!valid && !i.dpp.bound_control) written &= ~(1u << lane);
    }
    require(wave, i, i.source[0], read);
    store_lanes(wave, i.destination.index, out, written);
    if (wave.checks != nullptr) wave.checks->wrote_lanes(i.destination.index, 1, written);
}

// Swaps the halves of 64 lanes: a wave of 32 has one half and keeps its values.
void execute_permlane64(Wave& wave, const Instruction& i) {
    require(wave, i, i.source[0], wave.exec());
    alignas(64) u32 out[kLanes];
    for (int lane = 0; lane < kLanes; ++lane) out[lane] = wave.v[i.source[0].index][lane];
    store_lanes(wave, i.destination.index, out, wave.exec());
    if (wave.checks != nullptr) wave.checks->wrote_lanes(i.destination.index, 1, wave.exec());
}

void mbcnt_low(u32* d, const u32* a, const u32* b, const u32*) {
    for (int lane = 0; lane < kLanes; ++lane)
        d[lane] = b[lane] + static_cast<u32>(std::popcount(a[lane] & ((1u << lane) - 1)));
}
// Lanes 32 to 63 do not exist in a wave of 32.
void mbcnt_high(u32* d, const u32*, const u32* b, const u32*) {
    for (int lane = 0; lane < kLanes; ++lane) d[lane] = b[lane];
}

std::string bind_readlane(BindContext& context, const Operation& operation) {
    const auto& operands = context.text.operands;
    Instruction& out = context.out;
    if (operands.size() != operation.value || !context.text.modifiers.empty()) return "operands";
    if (auto problem = bind_destination(context, operands[0], 1, false, out.destination); !problem.empty())
        return problem;
    if (auto problem = bind_source(context, operands[1], 'u', out.source[0]); !problem.empty()) return problem;
    // which lane is read is known when it runs
    if (!context.details.reads.empty()) context.details.reads.back().checked_by_handler = true;
    if (operands.size() > 2)
        if (auto problem = bind_source(context, operands[2], 'u', out.source[1]); !problem.empty()) return problem;
    if (out.source[1].kind == OperandKind::vgpr) return "lane number in a vector register";
    out.handler = operation.handler;
    return {};
}

std::string bind_writelane(BindContext& context, const Operation& operation) {
    const auto& operands = context.text.operands;
    Instruction& out = context.out;
    if (operands.size() != 3 || !context.text.modifiers.empty()) return "operands";
    if (auto problem = bind_destination(context, operands[0], 1, true, out.destination); !problem.empty())
        return problem;
    context.details.writes.back().checked_by_handler = true;
    for (int k = 0; k < 2; ++k) {
        if (auto problem = bind_source(context, operands[1 + k], 'u', out.source[k]); !problem.empty()) return problem;
        if (out.source[k].kind == OperandKind::vgpr) return "scalar operand in a vector register";
    }
    out.handler = operation.handler;
    return {};
}

std::string bind_permlane(BindContext& context, const Operation& operation) {
    const auto& operands = context.text.operands;
    Instruction& out = context.out;
    const bool selectors = operation.value < 2;
    if (operands.size() != (selectors ? 4u : 2u)) return "operands";
    if (auto problem = bind_destination(context, operands[0], 1, true, out.destination); !problem.empty())
        return problem;
    context.details.writes.back().checked_by_handler = true;
    if (operands[1].kind != AsmOperand::Kind::vgpr) return "source " + operands[1].text;
    if (auto problem = bind_source(context, operands[1], 'u', out.source[0]); !problem.empty()) return problem;
    context.details.reads.back().checked_by_handler = true;
    for (int k = 2; selectors && k < 4; ++k) {
        if (auto problem = bind_source(context, operands[k], 'u', out.source[k - 1]); !problem.empty()) return problem;
        if (out.source[k - 1].kind == OperandKind::vgpr) return "selector in a vector register";
    }
    // op_sel:[FI,BOUND_CTRL]
    for (const auto& [name, value] : context.text.modifiers) {
        auto bits = parse_list(value);
        if (name != "op_sel" || !bits || bits->size() < 2) return "modifier " + name;
        out.dpp.fetch_inactive = (*bits)[0] != 0;
        out.dpp.bound_control = (*bits)[1] != 0;
    }
    out.immediate = static_cast<u16>(operation.value);
    out.handler = operation.handler;
    return {};
}

const Operation kOperations[] = {
    {"v_readlane_b32", "", bind_readlane, nullptr, nullptr, nullptr, execute_readlane, 3},
    {"v_readfirstlane_b32", "", bind_readlane, nullptr, nullptr, nullptr, execute_readfirstlane, 2},
    {"v_writelane_b32", "", bind_writelane, nullptr, nullptr, nullptr, execute_writelane},
    {"v_permlane16_b32", "", bind_permlane, nullptr, nullptr, nullptr, execute_permlane16, 0},
    {"v_permlanex16_b32", "", bind_permlane, nullptr, nullptr, nullptr, execute_permlane16, 1},
    {"v_permlane64_b32", "", bind_permlane, nullptr, nullptr, nullptr, execute_permlane64, 2},
    {"v_mbcnt_lo_u32_b32", "u:uu", bind_vector, mbcnt_low},
    {"v_mbcnt_hi_u32_b32", "u:uu", bind_vector, mbcnt_high},
};

}  // namespace

std::span<const Operation> lane_operations() { return kOperations; }

}  // namespace onebit::emulator
