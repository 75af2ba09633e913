// The result of loom-pack: one file with all bytes of a kernel family, and a C++ file whose tables point into it.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "base/result.h"
#include "hrx/loom/pack/bitcode.h"

namespace onebit::loom {

struct PackedImage {
    std::string target;
    std::vector<std::byte> bytes;
};

struct PackedEntry {
    PackedKernel kernel;
    std::vector<PackedImage> images;
};

// Writes FOLDER/FAMILY.pack and FOLDER/FAMILY.cpp. Each in one step, but not both at once: a build that stopped between
// them runs loom-pack again. The C++ file names the other without a folder.
Result<void> write_pack(const std::filesystem::path& folder, const std::string& family, const std::string& source,
                        const std::vector<PackedEntry>& entries);

}  // namespace onebit::loom
