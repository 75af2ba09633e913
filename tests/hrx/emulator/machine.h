// One wave with chosen registers, which runs assembly; and helpers that run an instruction over edge values.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "hrx/emulator/checks.h"
#include "hrx/emulator/lds_races.h"
#include "hrx/emulator/program.h"
#include "hrx/emulator/trap.h"
#include "hrx/emulator/wave.h"

namespace onebit::emulator {

// A single wave of 32 lanes in a group of its own, in checked mode. Registers that the test does not set are undefined.
class Machine {
public:
    Machine();

    Machine& v(u16 index, const std::function<u32(int)>& value_of_lane);
    Machine& v(u16 index, u32 value);
    Machine& v64(u16 index, const std::function<u64(int)>& value_of_lane);
    Machine& s(u16 index, u32 value);
    Machine& s64(u16 index, u64 value);
    Machine& exec(u32 lanes);
    Machine& lds(u32 bytes);  // zeroed and defined
    Machine& scratch(u32 bytes_of_a_lane);

    // Appends s_endpgm and runs. A trap is returned, not thrown.
    std::optional<Trap> run(const std::string& assembly);
    // As run, and fails the test on a trap.
    Machine& ok(const std::string& assembly);

    u32 get_v(u16 index, int lane) const { return wave_->v[index][lane]; }
    u64 get_v64(u16 index, int lane) const {
        return get_v(index, lane) | static_cast<u64>(get_v(index + 1, lane)) << 32;
    }
    u32 get_s(u16 index) const { return wave_->s[index]; }
    u64 get_s64(u16 index) const { return get_s(index) | static_cast<u64>(get_s(index + 1)) << 32; }
    bool scc() const { return wave_->scc; }
    Machine& set_scc(bool value) {
        wave_->scc = value;
        return *this;
    }
    std::vector<u8>& lds_bytes() { return group_.lds; }
    MemoryMap& memory() { return memory_; }

private:
    MemoryMap memory_;
    MemoryPort port_{memory_};
    LdsRaces races_;
    WaveChecks checks_;
    Workgroup group_;
    std::vector<u8> scratch_;
    std::unique_ptr<Wave> wave_ = std::make_unique<Wave>();
};

// Mnemonics that were run by any machine of this process, as the decoder prints them.
std::set<std::string>& exercised();

inline constexpr u32 kHalfExec = 0x5a5af00fu;

// Runs `assembly` with v1, v2, v3 holding edge values for 32 lanes in many combinations and v0 a known old value;
// checks v0 of enabled lanes against expected(v1, v2, v3, old) and that disabled lanes keep theirs. Scalars s4, s5 and
// vcc_lo may be set through `prepare`.
using Expected1 = std::function<u32(u32, u32, u32, u32)>;
void check_words(const std::string& assembly, const std::vector<u32>& edges, const Expected1& expected,
                 const std::function<void(Machine&)>& prepare = {});
// The same for 64-bit values: v[2:3], v[4:5], v[6:7], result in v[0:1].
using Expected64 = std::function<u64(u64, u64, u64)>;
void check_wide(const std::string& assembly, const std::vector<u64>& edges, const Expected64& expected);

extern const std::vector<u32> kIntegerEdges;
extern const std::vector<u32> kFloatEdges;
extern const std::vector<u32> kHalfEdges;  // low half an f16, high half another
extern const std::vector<u64> kInteger64Edges;
extern const std::vector<u64> kDoubleEdges;

// Equal bits, or both NaN.
bool same_f32(u32 a, u32 b);
bool same_f16(u32 a, u32 b);
bool same_f64(u64 a, u64 b);

}  // namespace onebit::emulator
