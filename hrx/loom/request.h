// What is asked of Loom: one kernel, one chip, constants. Checked against what the kernel declares, before any compiler
// is loaded. Plain values, no thread rules.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "base/result.h"
#include "hrx/kernels/kernel_set.h"
#include "hrx/loom/targets.h"

namespace onebit::loom {

// By the names of LOOM_ARGUMENT and LOOM_OPTION.
using Constants = std::map<std::string, uint32_t, std::less<>>;

struct Request {
    const Kernel* kernel = nullptr;
    const Target* target = nullptr;
    Constants constants;  // options all, arguments those that are fixed

    // Work-items of a group: the option workgroup, or what the kernel says.
    uint32_t workgroup() const;
    std::span<const std::byte> bitcode() const { return target->is_amd() ? kernel->amdgcn : kernel->nvptx; }
    // All that decides which image comes out, compiler included, as text; the key of the disk cache.
    std::string key() const;
    // "rms_norm_f32 for gfx1151 with columns=4096"
    std::string name() const;
};

// kernel: must outlive the request. architecture: of a device; NVIDIA's that are newer than all targets get the newest.
// constants: options that are missing get their defaults. Errors name kernel and constant, the range and what was
// found: usage for constants, unsupported for an architecture that the kernel has no bitcode for.
Result<Request> make_request(const Kernel& kernel, std::string_view architecture, Constants constants);

// "columns=4096" into a name and a value.
Result<std::pair<std::string, uint32_t>> parse_constant(std::string_view text);

// The target that a device of this architecture runs. Error unsupported with the names of all.
Result<const Target*> target_for(std::string_view architecture);

}  // namespace onebit::loom
