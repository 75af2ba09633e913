// The chips that kernels are compiled for. Used on both sides of loom.h; no LLVM here.
#pragma once

#include <array>
#include <charconv>
#include <cstdint>
#include <string_view>

namespace onebit::loom {

struct Target {
    std::string_view name;      // as hrx_device_info::architecture and LLVM spell it
    std::string_view features;  // for LLVM
    uint32_t generation;        // target_generation() of hrx/kernels/specialise.h
    uint32_t machine;           // EF_AMDGPU_MACH of an HSACO's ELF header; 0 on NVIDIA
    bool executed;              // whether the tests have run its images: in CI, or recorded under bench/h200

    bool is_amd() const { return name.starts_with("gfx"); }
};

// PTX versions are the lowest that know the chip (PTX ISA, release notes), so that older drivers take the text: 7.5 has
// all that the kernels use.
inline constexpr std::array targets{
    Target{"gfx1100", "", 11, 0x41, true},   Target{"gfx1101", "", 11, 0x46, true},
    Target{"gfx1102", "", 11, 0x47, true},   Target{"gfx1103", "", 11, 0x44, true},
    Target{"gfx1150", "", 11, 0x43, true},   Target{"gfx1151", "", 11, 0x4a, true},
    Target{"gfx1152", "", 11, 0x55, true},   Target{"gfx1200", "", 12, 0x48, false},
    Target{"gfx1201", "", 12, 0x4e, false},  Target{"sm_80", "+ptx75", 80, 0, false},
    Target{"sm_86", "+ptx75", 80, 0, false}, Target{"sm_89", "+ptx78", 80, 0, false},
    Target{"sm_90", "+ptx78", 90, 0, true},
};

// Null for a name that is not in the list.
constexpr const Target* find_target(std::string_view name) {
    for (const Target& target : targets) {
        if (target.name == name) return &target;
    }
    return nullptr;
}

// The number of "sm_90"; 0 when it is no such name.
inline uint32_t nvidia_number(std::string_view architecture) {
    uint32_t number = 0;
    if (!architecture.starts_with("sm_")) return 0;
    const std::string_view digits = architecture.substr(3);
    const auto [end, problem] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
    return problem == std::errc{} && end == digits.data() + digits.size() ? number : 0;
}

}  // namespace onebit::loom
