#include "hrx/emulator/worker.h"

#include <algorithm>

namespace onebit::emulator {
namespace {

// What registers and LDS hold before anything writes them: the same in both modes, and no useful number.
constexpr u32 kPoison = 0xdeadbeefu;
// A wave gives way to the others of its group after so many instructions, since they may wait for each other in memory.
constexpr u32 kQuantum = 8192;

enum Property : u32 {
    kPrivateSegmentBuffer = 1,
    kDispatchPointer = 2,
    kQueuePointer = 4,
    kKernargPointer = 8,
    kDispatchId = 16,
    kFlatScratch = 32,
    kPrivateSegmentSize = 64,
};

}  // namespace

// User registers in the order of the kernel descriptor's properties, then the group's number.
void Engine::Worker::start_registers(const Dispatch& dispatch, Wave& wave) {
    const KernelDescriptor& d = dispatch.kernel->descriptor;
    u16 next = 0;
    auto put = [&](u64 value, u32 words) {
        for (u32 k = 0; k < words; ++k) wave.s[next + k] = static_cast<u32>(value >> 32 * k);
        if (wave.checks != nullptr) wave.checks->define_scalar(next, words);
        next = static_cast<u16>(next + words);
    };
    if ((d.properties & kPrivateSegmentBuffer) != 0) {
        put(0, 2);
        put(0, 2);
    }
    if ((d.properties & kDispatchPointer) != 0) put(dispatch.packet, 2);
    if ((d.properties & kQueuePointer) != 0) put(dispatch.queue, 2);
    if ((d.properties & kKernargPointer) != 0) put(dispatch.kernarg, 2);
    if ((d.properties & kDispatchId) != 0) put(dispatch.id, 2);
    if ((d.properties & kFlatScratch) != 0) put(0, 2);
    if ((d.properties & kPrivateSegmentSize) != 0) put(dispatch.private_bytes, 1);
    next = static_cast<u16>(d.user_registers());
    for (int k = 0; k < 3; ++k)
        if ((d.rsrc2 >> (7 + k) & 1) != 0) put(group_.id[k], 1);
}

void Engine::Worker::start_wave(const Dispatch& dispatch, Slot& slot, u32 number, const u32* size) {
    Wave& wave = *slot.wave;
    const u32 registers = group_.vector_registers;
    std::fill(&wave.v[0][0], &wave.v[0][0] + std::size_t{registers} * kLanes, kPoison);
    std::fill(std::begin(wave.s), std::end(wave.s), kPoison);
    wave.s[kNull] = 0;
    wave.scc = false;
    wave.state = WaveState::running;
    wave.next = dispatch.kernel->entry;
    wave.number = number;
    wave.barriers = 0;
    wave.instructions = 0;
    wave.program = dispatch.kernel->program;
    wave.group = &group_;
    wave.checks = settings_.mode == Mode::checked ? &slot.checks : nullptr;
    slot.scratch.assign(std::size_t{dispatch.private_bytes} * kLanes, 0xcd);
    wave.scratch = &slot.scratch;
    wave.scratch_bytes = dispatch.private_bytes;

    u32 exec = 0;
    for (u32 lane = 0; lane < kLanes; ++lane) {
        const u32 item = number * kLanes + lane;
        if (item >= size[0] * size[1] * size[2]) continue;
        exec |= 1u << lane;
        const u32 x = item % size[0];
        const u32 y = item / size[0] % size[1];
        const u32 z = item / size[0] / size[1];
        wave.v[0][lane] = x | y << 10 | z << 20;
    }
    wave.s[kExec] = exec;
    if (wave.checks != nullptr) {
        wave.checks->reset(registers);
        wave.checks->define_vector(0, exec);
    }
    start_registers(dispatch, wave);
}

void Engine::Worker::run_fast(Wave& wave, u32 quantum) {
    const Instruction* code = wave.program->code.data();
    u32 left = quantum;
    while (left != 0 && wave.state == WaveState::running) {
        --left;
        const Instruction& instruction = code[wave.next++];
        instruction.handler(wave, instruction);
    }
    wave.instructions += quantum - left;
}

void Engine::Worker::run_checked(Wave& wave, u32 quantum) {
    const Program& program = *wave.program;
    u32 left = quantum;
    while (left != 0 && wave.state == WaveState::running) {
        --left;
        const Instruction& instruction = program.code[wave.next++];
        const Details& details = program.details[instruction.index];
        wave.checks->before(wave, instruction, details);
        instruction.handler(wave, instruction);
        wave.checks->after(wave, instruction, details);
    }
    wave.instructions += quantum - left;
}

// Runs every wave for a while. True when all have ended.
bool Engine::Worker::step_all(u32 waves) {
    u32 done = 0;
    u32 running = 0;
    for (u32 k = 0; k < waves; ++k) {
        Wave& wave = *slots_[k].wave;
        if (wave.state == WaveState::running) {
            settings_.mode == Mode::checked ? run_checked(wave, kQuantum) : run_fast(wave, kQuantum);
            if (wave.instructions > settings_.instructions_per_wave)
                raise_trap(TrapKind::runaway, wave, wave.program->code[wave.next], -1,
                           "the wave has run " + std::to_string(wave.instructions) +
                               " instructions; raise ONEBIT_EMULATOR_LIMIT if it is not an endless loop");
        }
        done += wave.state == WaveState::done ? 1 : 0;
        running += wave.state == WaveState::running ? 1 : 0;
    }
    if (done == waves) return true;
    if (running != 0) return false;
    // a barrier waits for the waves that have not ended
    for (u32 k = 0; k < waves; ++k) {
        Wave& wave = *slots_[k].wave;
        if (wave.state != WaveState::at_barrier) continue;
        wave.state = WaveState::running;
        ++wave.barriers;
    }
    return false;
}

u64 Engine::Worker::run_group(const Dispatch& dispatch, u32 x, u32 y, u32 z) {
    const u32 id[3] = {x, y, z};
    u32 size[3];
    for (int k = 0; k < 3; ++k) {
        group_.id[k] = id[k];
        size[k] = std::min(dispatch.group[k], dispatch.grid[k] - id[k] * dispatch.group[k]);
    }
    const u32 waves = (size[0] * size[1] * size[2] + kLanes - 1) / kLanes;
    group_.kernel = dispatch.kernel->name.c_str();
    group_.memory = &port_;
    group_.vector_registers = std::min(dispatch.kernel->descriptor.vector_registers(), 256u);
    group_.lds.assign(dispatch.group_bytes, 0xcd);
    group_.races = settings_.mode == Mode::checked ? &races_ : nullptr;
    if (group_.races != nullptr) races_.reset(dispatch.group_bytes);
    if (slots_.size() < waves) slots_.resize(waves);
    group_.waves.clear();
    for (u32 k = 0; k < waves; ++k) {
        start_wave(dispatch, slots_[k], k, size);
        group_.waves.push_back(slots_[k].wave.get());
    }
    while (!step_all(waves)) {
    }
    u64 instructions = 0;
    for (u32 k = 0; k < waves; ++k) instructions += slots_[k].wave->instructions;
    return instructions;
}

}  // namespace onebit::emulator
