// Takes the bitcode of a kernel file apart: one small module for each kernel, and what the kernels declare.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"

namespace onebit::loom {

struct PackedConstant {
    std::string name;
    bool is_option = false;
    uint32_t offset = 0, standard = 0, minimum = 0, maximum = 0;
    bool operator==(const PackedConstant&) const = default;
};

struct PackedKernel {
    std::string name;
    uint32_t workgroup = 0, argument_bytes = 0;
    std::vector<PackedConstant> constants;  // sorted by name
    std::vector<std::byte> amdgcn, nvptx;   // sealed (hrx/loom/bitcode_seal.h), empty where it was not built
    bool same_declaration(const PackedKernel& other) const {
        return workgroup == other.workgroup && argument_bytes == other.argument_bytes && constants == other.constants;
    }
};

// file: what clang makes of a kernel file with HRX_LOOM and without optimising. source: its name in the repository,
// which goes into the modules instead of the path. The modules are inlined, cleaned and stripped, since that is done
// once here and would be done for each image later. Into the field for the target that the file names; sorted by name.
Result<std::vector<PackedKernel>> split_bitcode(const std::string& file, const std::string& source);

}  // namespace onebit::loom
