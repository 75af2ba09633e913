#include "tests/hrx/emulator/machine.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "hrx/emulator/asm_text.h"
#include "tests/hrx/emulator/assembler.h"

namespace onebit::emulator {

const std::vector<u32> kIntegerEdges = {0,          1,          2,          7,          31,         32,
                                        33,         0x7f,       0x80,       0xff,       0x100,      0x7fff,
                                        0x8000,     0xffff,     0x10000,    0x7fffff,   0x800000,   0xffffff,
                                        0x1000000,  0x7ffffffe, 0x7fffffff, 0x80000000, 0x80000001, 0xfffffffe,
                                        0xffffffff, 0x12345678, 0xdeadbeef, 0x0f0f0f0f};
// zeros, denormals, small, one and its neighbours, halves, large, infinities, NaN
const std::vector<u32> kFloatEdges = {
    0x00000000, 0x80000000, 0x00000001, 0x807fffff, 0x00800000, 0x3f800000, 0xbf800000, 0x3f7fffff, 0x3f800001,
    0x3f000000, 0x3fc00000, 0xc0200000, 0x40490fdb, 0x42f6e979, 0x4b800000, 0x4f000000, 0x4f7fffff, 0xcf000000,
    0x7f7fffff, 0x7f800000, 0xff800000, 0x7fc00000, 0x34000000, 0x3e22f983, 0xc2c80000, 0x477fe000};
const std::vector<u32> kHalfEdges = {0x00000000, 0x80003c00, 0x3c000001, 0x7bff0400, 0x7c008000,
                                     0x38003e00, 0xc000fc00, 0x3555b555, 0x7e003c00, 0x00014248,
                                     0x03ff5640, 0x640003ff, 0xfbff3c01, 0x2e66ae66};
const std::vector<u64> kInteger64Edges = {0,
                                          1,
                                          63,
                                          64,
                                          0xffffffff,
                                          0x100000000,
                                          0x7fffffffffffffff,
                                          0x8000000000000000,
                                          0xffffffffffffffff,
                                          0x123456789abcdef0,
                                          0x80000000};
const std::vector<u64> kDoubleEdges = {0,
                                       0x8000000000000000,
                                       0x3ff0000000000000,
                                       0xbff0000000000000,
                                       0x3fe0000000000000,
                                       0x4004000000000000,
                                       0xc008000000000000,
                                       0x400921fb54442d18,
                                       0x41dfffffffc00000,
                                       0x7fefffffffffffff,
                                       0x7ff0000000000000,
                                       0xfff0000000000000,
                                       0x7ff8000000000000,
                                       0x0010000000000000,
                                       0x43e0000000000000};

bool same_f32(u32 a, u32 b) { return a == b || (std::isnan(as_f32(a)) && std::isnan(as_f32(b))); }
bool same_f16(u32 a, u32 b) {
    auto nan = [](u32 x) { return (x & 0x7fff) > 0x7c00; };
    return (a & 0xffff) == (b & 0xffff) || (nan(a) && nan(b));
}
bool same_f64(u64 a, u64 b) { return a == b || (std::isnan(as_f64(a)) && std::isnan(as_f64(b))); }

std::set<std::string>& exercised() {
    static std::set<std::string> names;
    return names;
}

Machine::Machine() {
    checks_.reset(256);
    races_.reset(0);
    group_.memory = &port_;
    group_.races = &races_;
    group_.kernel = "test";
    group_.waves = {wave_.get()};
    Wave& wave = *wave_;
    for (auto& row : wave.v)
        for (u32& value : row) value = 0xdeadbeef;
    for (u32& value : wave.s) value = 0xdeadbeef;
    wave.s[kNull] = 0;
    wave.group = &group_;
    wave.checks = &checks_;
    wave.scratch = &scratch_;
    exec(kAllLanes);
}

Machine& Machine::v(u16 index, const std::function<u32(int)>& value_of_lane) {
    for (int lane = 0; lane < kLanes; ++lane) wave_->v[index][lane] = value_of_lane(lane);
    checks_.define_vector(index, kAllLanes);
    return *this;
}
Machine& Machine::v(u16 index, u32 value) {
    return v(index, [=](int) { return value; });
}
Machine& Machine::v64(u16 index, const std::function<u64(int)>& value_of_lane) {
    v(index, [&](int lane) { return static_cast<u32>(value_of_lane(lane)); });
    return v(static_cast<u16>(index + 1), [&](int lane) { return static_cast<u32>(value_of_lane(lane) >> 32); });
}
Machine& Machine::s(u16 index, u32 value) {
    wave_->s[index] = value;
    checks_.define_scalar(index);
    return *this;
}
Machine& Machine::s64(u16 index, u64 value) {
    return s(index, static_cast<u32>(value)).s(static_cast<u16>(index + 1), static_cast<u32>(value >> 32));
}
Machine& Machine::exec(u32 lanes) {
    wave_->s[kExec] = lanes;
    return *this;
}
Machine& Machine::lds(u32 bytes) {
    group_.lds.assign(bytes, 0);
    races_.reset(bytes);
    Instruction none;
    races_.write(*wave_, none, 0, 0, bytes, false);
    return *this;
}
Machine& Machine::scratch(u32 bytes_of_a_lane) {
    scratch_.assign(std::size_t{bytes_of_a_lane} * kLanes, 0);
    wave_->scratch_bytes = bytes_of_a_lane;
    return *this;
}

namespace {

// Assembled and bound once for each text, since tests run one over many values.
const Program* program_of(const std::string& assembly) {
    static std::map<std::string, std::unique_ptr<Program>> programs;
    auto& program = programs[assembly];
    if (program != nullptr) return program.get();
    auto bytes = assemble(assembly + "\ns_endpgm\n");
    bytes.insert(bytes.end(), 64, 0);
    auto built = build_program(bytes, 0x10000, 0, "gfx1151");
    if (!built) {
        ADD_FAILURE() << built.error().message();
        return nullptr;
    }
    program = std::move(built).value();
    return program.get();
}

}  // namespace

std::optional<Trap> Machine::run(const std::string& assembly) {
    const Program* program = program_of(assembly);
    if (program == nullptr) return Trap{};
    wave_->program = program;
    wave_->next = 0;
    wave_->state = WaveState::running;
    try {
        for (int steps = 0; wave_->state != WaveState::done; ++steps) {
            if (steps > 100000) {
                ADD_FAILURE() << "'" << assembly << "' does not end";
                return std::nullopt;
            }
            const Instruction& instruction = program->code[wave_->next++];
            const Details& details = program->details[instruction.index];
            if (auto parts = parse_assembly(details.text))
                for (const AsmInstruction& part : *parts) exercised().insert(part.mnemonic);
            checks_.before(*wave_, instruction, details);
            instruction.handler(*wave_, instruction);
            checks_.after(*wave_, instruction, details);
            if (wave_->state == WaveState::at_barrier) {
                wave_->state = WaveState::running;
                ++wave_->barriers;
            }
        }
    } catch (const TrapError& error) {
        return error.trap();
    }
    return std::nullopt;
}

Machine& Machine::ok(const std::string& assembly) {
    if (auto trap = run(assembly)) ADD_FAILURE() << trap->message();
    return *this;
}

void check_words(const std::string& assembly, const std::vector<u32>& edges, const Expected1& expected,
                 const std::function<void(Machine&)>& prepare) {
    const std::size_t n = edges.size();
    // shifts between the three sources go through pairs of edges without running all triples
    for (std::size_t round = 0; round < n; ++round) {
        for (std::size_t start = 0; start < n; start += kLanes) {
            auto pick = [&](std::size_t lane, std::size_t shift) { return edges[(start + lane + shift) % n]; };
            auto a = [&](int lane) { return pick(static_cast<std::size_t>(lane), 0); };
            auto b = [&](int lane) { return pick(static_cast<std::size_t>(lane), round); };
            auto c = [&](int lane) { return pick(static_cast<std::size_t>(lane), 3 * round + 1); };
            auto old = [](int lane) { return 0x3f000000u + 0x10001u * static_cast<u32>(lane); };
            const u32 exec = round % 2 == 0 ? kAllLanes : kHalfExec;
            Machine machine;
            machine.v(0, old).v(1, a).v(2, b).v(3, c).exec(exec);
            if (prepare) prepare(machine);
            if (auto trap = machine.run(assembly)) {
                ADD_FAILURE() << trap->message();
                return;
            }
            for (int lane = 0; lane < kLanes; ++lane) {
                const bool enabled = (exec >> lane & 1) != 0;
                const u32 wanted = enabled ? expected(a(lane), b(lane), c(lane), old(lane)) : old(lane);
                const u32 found = machine.get_v(0, lane);
                if (found == wanted || (enabled && same_f32(found, wanted))) continue;
                // packed NaN halves may differ in payload
                if (enabled && same_f16(found, wanted) && same_f16(found >> 16, wanted >> 16)) continue;
                ADD_FAILURE() << assembly << std::hex << ": sources 0x" << a(lane) << " 0x" << b(lane) << " 0x"
                              << c(lane) << ", expected 0x" << wanted << ", found 0x" << found << std::dec
                              << " in lane " << lane;
                return;
            }
        }
    }
}

void check_wide(const std::string& assembly, const std::vector<u64>& edges, const Expected64& expected) {
    const std::size_t n = edges.size();
    for (std::size_t round = 0; round < n; ++round) {
        auto a = [&](int lane) { return edges[static_cast<std::size_t>(lane) % n]; };
        auto b = [&](int lane) { return edges[(static_cast<std::size_t>(lane) + round) % n]; };
        auto c = [&](int lane) { return edges[(static_cast<std::size_t>(lane) + 2 * round + 1) % n]; };
        const u32 exec = round % 2 == 0 ? kAllLanes : kHalfExec;
        Machine machine;
        machine.v64(0, [](int) { return u64{0x1122334455667788}; }).v64(2, a).v64(4, b).v64(6, c).exec(exec);
        if (auto trap = machine.run(assembly)) {
            ADD_FAILURE() << trap->message();
            return;
        }
        for (int lane = 0; lane < kLanes; ++lane) {
            const u64 wanted = (exec >> lane & 1) != 0 ? expected(a(lane), b(lane), c(lane)) : 0x1122334455667788;
            const u64 found = machine.get_v64(0, lane);
            if (same_f64(found, wanted)) continue;
            ADD_FAILURE() << assembly << std::hex << ": sources 0x" << a(lane) << " 0x" << b(lane) << " 0x" << c(lane)
                          << ", expected 0x" << wanted << ", found 0x" << found << std::dec << " in lane " << lane;
            return;
        }
    }
}

}  // namespace onebit::emulator
