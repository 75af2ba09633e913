// D = A * B + C over 16x16x16 matrices held by a wave of 32 (WMMA of RDNA3; layout from the ISA reference's chapter on
// wave matrix multiply-accumulate). Row i of A lies in lane i and again in lane i + 16, column j of B likewise; element
// (i, j) of C and D lies in lane 16 * (i % 2) + j of register i / 2. 16-bit results lie in the low halves, or with
// op_sel in the high halves, of as many registers.
#include <algorithm>
#include <cstring>

#if defined(__F16C__)
#include <immintrin.h>
#endif

#include "hrx/emulator/checks.h"
#include "hrx/emulator/math.h"
#include "hrx/emulator/trap.h"
#include "hrx/emulator/vector_core.h"

namespace onebit::emulator {
namespace {

constexpr int kSize = 16;

enum Element : u32 { kF16, kBf16, kIu8, kIu4 };
enum Accumulator : u32 { kToF32, kToF16, kToBf16, kToI32 };

struct alignas(64) Matrix {
    float f[kSize][kSize];
};

// The two copies of A and of B must agree; a difference is a mistake that hardware answers with nonsense.
void require_copies(const Wave& wave, const Instruction& i) {
    if (wave.checks == nullptr) return;
    for (int k = 0; k < 2; ++k) {
        for (int word = 0; word < i.source[k].words; ++word) {
            const u32* lanes = wave.v[i.source[k].index + word];
            for (int lane = 0; lane < kSize; ++lane)
                if (lanes[lane] != lanes[lane + kSize])
                    raise_trap(TrapKind::bad_state, wave, i, lane + kSize,
                               "lanes " + std::to_string(lane) + " and " + std::to_string(lane + kSize) + " of v" +
                                   std::to_string(i.source[k].index + word) +
                                   " differ; a matrix operand must be the same in both halves of the wave");
        }
    }
}

// out[k][index]: element k of row (or column) `index`.
void load_float(const Wave& wave, const Operand& operand, bool brain, Matrix& out) {
    for (int word = 0; word < kSize / 2; ++word) {
        const u32* lanes = wave.v[operand.index + word];
        if (brain) {
            for (int n = 0; n < kSize; ++n) {
                out.f[2 * word][n] = bf16_to_f32(lanes[n] & 0xffff);
                out.f[2 * word + 1][n] = bf16_to_f32(lanes[n] >> 16);
            }
            continue;
        }
#if defined(__F16C__)
        for (int n = 0; n < kSize; n += 8) {
            const __m256i words = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(lanes + n));
            const __m256i low = _mm256_and_si256(words, _mm256_set1_epi32(0xffff));
            const __m256i high = _mm256_srli_epi32(words, 16);
            auto narrow = [](__m256i v) {
                return _mm_packus_epi32(_mm256_castsi256_si128(v), _mm256_extracti128_si256(v, 1));
            };
            _mm256_store_ps(&out.f[2 * word][n], _mm256_cvtph_ps(narrow(low)));
            _mm256_store_ps(&out.f[2 * word + 1][n], _mm256_cvtph_ps(narrow(high)));
        }
#else
        for (int n = 0; n < kSize; ++n) {
            out.f[2 * word][n] = static_cast<float>(as_f16(lanes[n]));
            out.f[2 * word + 1][n] = static_cast<float>(as_f16(lanes[n] >> 16));
        }
#endif
    }
}

// Register r holds rows 2r (lanes 0-15) and 2r + 1 (lanes 16-31).
void execute_float(Wave& wave, const Instruction& i) {
    require_copies(wave, i);
    const bool brain = (i.immediate & 0xff) == kBf16;
    const u32 accumulator = i.immediate >> 8;
    Matrix a;
    Matrix b;
    Matrix d;
    load_float(wave, i.source[0], brain, a);
    load_float(wave, i.source[1], brain, b);
    alignas(64) u32 buffer[2 * kLanes];
    const Operand& c = i.source[2];
    for (int r = 0; r < kSize / 2; ++r) {
        const u32* lanes = c.kind == OperandKind::vgpr ? wave.v[c.index + r] : fetch_raw(wave, c, buffer);
        for (int lane = 0; lane < kLanes; ++lane) {
            const u32 half = i.dpp.control != 0 && c.kind == OperandKind::vgpr ? lanes[lane] >> 16 : lanes[lane];
            float value = accumulator == kToF32   ? as_f32(lanes[lane])
                          : accumulator == kToF16 ? static_cast<float>(as_f16(half))
                                                  : bf16_to_f32(half & 0xffff);
            if (c.absolute) value = std::fabs(value);
            if (c.negate) value = -value;
            d.f[2 * r + lane / kSize][lane % kSize] = value;
        }
    }
    for (int row = 0; row < kSize; ++row) {
        for (int k = 0; k < kSize; ++k) {
            const float factor = i.source[0].negate ? -a.f[k][row] : a.f[k][row];
            for (int n = 0; n < kSize; ++n) d.f[row][n] = __builtin_fmaf(factor, b.f[k][n], d.f[row][n]);
        }
    }
    for (int r = 0; r < kSize / 2; ++r) {
        u32* lanes = wave.v[i.destination.index + r];
        for (int lane = 0; lane < kLanes; ++lane) {
            const float value = d.f[2 * r + lane / kSize][lane % kSize];
            if (accumulator == kToF32) {
                lanes[lane] = bits_of(value);
                continue;
            }
            const u32 half = accumulator == kToF16 ? bits_of(static_cast<f16>(value)) : f32_to_bf16(value);
            lanes[lane] = i.dpp.control != 0 ? (lanes[lane] & 0xffff) | half << 16 : (lanes[lane] & 0xffff0000u) | half;
        }
    }
}

void execute_integer(Wave& wave, const Instruction& i) {
    require_copies(wave, i);
    const int bits = (i.immediate & 0xff) == kIu8 ? 8 : 4;
    const int each = 32 / bits;
    i32 factors[2][kSize][kSize];
    for (int m = 0; m < 2; ++m) {
        // neg_lo marks signed elements
        const bool is_signed = i.source[m].negate;
        for (int k = 0; k < kSize; ++k) {
            const u32* lanes = wave.v[i.source[m].index + k / each];
            for (int n = 0; n < kSize; ++n) {
                const u32 top = lanes[n] >> bits * (k % each) << (32 - bits);
                factors[m][k][n] =
                    is_signed ? static_cast<i32>(top) >> (32 - bits) : static_cast<i32>(top >> (32 - bits));
            }
        }
    }
    alignas(64) u32 buffer[2 * kLanes];
    const Operand& c = i.source[2];
    u32 result[kSize / 2][kLanes];
    for (int r = 0; r < kSize / 2; ++r) {
        const u32* lanes = c.kind == OperandKind::vgpr ? wave.v[c.index + r] : fetch_raw(wave, c, buffer);
        for (int lane = 0; lane < kLanes; ++lane) {
            const int row = 2 * r + lane / kSize;
            i64 sum = static_cast<i32>(lanes[lane]);
            for (int k = 0; k < kSize; ++k) sum += i64{factors[0][k][row]} * factors[1][k][lane % kSize];
            if (i.clamp) sum = std::clamp<i64>(sum, INT32_MIN, INT32_MAX);
            result[r][lane] = static_cast<u32>(sum);
        }
    }
    std::memcpy(wave.v[i.destination.index], result, sizeof(result));
}

// value: element, accumulator in the next byte.
std::string bind_wmma(BindContext& context, const Operation& operation) {
    const auto& operands = context.text.operands;
    Instruction& out = context.out;
    const u32 kind = operation.value & 0xff;
    const u8 words = kind == kIu8 ? 4 : kind == kIu4 ? 2 : 8;
    const bool integer = kind == kIu8 || kind == kIu4;
    if (operands.size() != 4) return "operand count";
    out.destination = vector_register(operands[0].index, 8);
    if (operands[0].kind != AsmOperand::Kind::vgpr || operands[0].words != 8) return "destination " + operands[0].text;
    for (int k = 0; k < 2; ++k) {
        if (operands[1 + k].kind != AsmOperand::Kind::vgpr || operands[1 + k].words != words)
            return "source " + operands[1 + k].text;
        out.source[k] = vector_register(operands[1 + k].index, words);
        if (operands[1 + k].index < out.destination.index + 8 && out.destination.index < operands[1 + k].index + words)
            return "a result over " + operands[1 + k].text + ", which hardware still reads";
        note_read(context, out.source[k], true);
    }
    if (operands[3].kind == AsmOperand::Kind::vgpr) {
        const u16 first = operands[3].index;
        if (operands[3].words != 8) return "source " + operands[3].text;
        if (first != out.destination.index && first < out.destination.index + 8 && out.destination.index < first + 8)
            return "a result over part of " + operands[3].text + ", which hardware still reads";
        out.source[2] = vector_register(operands[3].index, 8);
        note_read(context, out.source[2], true);
    } else {
        const u32 accumulator = operation.value >> 8;
        const char letter = accumulator == kToF32 ? 'f' : accumulator == kToF16 ? 'h' : 'u';
        if (auto problem = bind_source(context, operands[3], letter, out.source[2]); !problem.empty()) return problem;
        if (out.source[2].kind != OperandKind::constant) return "accumulator " + operands[3].text;
        if (accumulator == kToBf16 && operands[3].kind == AsmOperand::Kind::real)
            return "accumulator " + operands[3].text;
        finish_source(context, out.source[2]);
    }
    note_write(context, out.destination, true);
    for (const auto& [name, value] : context.text.modifiers) {
        if (name == "clamp" && integer) {
            out.clamp = true;
            continue;
        }
        auto bits = parse_list(value);
        if (!bits || bits->size() < 2) return "modifier " + name;
        if (name == "neg_lo" && integer) {
            for (int k = 0; k < 2; ++k) out.source[k].negate = (*bits)[k] != 0;
        } else if (name == "op_sel" && bits->size() == 3 && !integer) {
            if ((*bits)[0] != 0 || (*bits)[1] != 0) return "op_sel on A or B";
            out.dpp.control = (*bits)[2] != 0 ? 1 : 0;
        } else if ((name == "neg_lo" || name == "neg_hi") && bits->size() == 3) {
            // A and B: neg_lo and neg_hi negate even and odd elements; only both at once are read. C: neg, abs
            const std::string* other = context.text.modifier(name == "neg_lo" ? "neg_hi" : "neg_lo");
            auto twin = other == nullptr ? std::optional(std::vector<int>(3, 0)) : parse_list(*other);
            if (!twin || twin->size() != 3 || (*twin)[0] != (*bits)[0] || (*twin)[1] != (*bits)[1])
                return "neg_lo and neg_hi that differ on A or B";
            out.source[0].negate = ((*bits)[0] != 0) != ((*bits)[1] != 0);
            (name == "neg_lo" ? out.source[2].negate : out.source[2].absolute) = (*bits)[2] != 0;
            if (out.source[2].kind == OperandKind::constant && (*bits)[2] != 0) return "negated constant";
        } else {
            return "modifier " + name + ":" + value;
        }
    }
    out.immediate = static_cast<u16>(operation.value);
    out.handler = operation.handler;
    return {};
}

constexpr u32 kind(Element element, Accumulator accumulator) { return element | accumulator << 8; }

const Operation kOperations[] = {
    {"v_wmma_f32_16x16x16_f16", "", bind_wmma, nullptr, nullptr, nullptr, execute_float, kind(kF16, kToF32)},
    {"v_wmma_f32_16x16x16_bf16", "", bind_wmma, nullptr, nullptr, nullptr, execute_float, kind(kBf16, kToF32)},
    {"v_wmma_f16_16x16x16_f16", "", bind_wmma, nullptr, nullptr, nullptr, execute_float, kind(kF16, kToF16)},
    {"v_wmma_bf16_16x16x16_bf16", "", bind_wmma, nullptr, nullptr, nullptr, execute_float, kind(kBf16, kToBf16)},
    {"v_wmma_i32_16x16x16_iu8", "", bind_wmma, nullptr, nullptr, nullptr, execute_integer, kind(kIu8, kToI32)},
    {"v_wmma_i32_16x16x16_iu4", "", bind_wmma, nullptr, nullptr, nullptr, execute_integer, kind(kIu4, kToI32)},
};

}  // namespace

std::span<const Operation> wmma_operations() { return kOperations; }

}  // namespace onebit::emulator
