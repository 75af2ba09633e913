// SHA-256 of bytes and files (FIPS 180-4), by OpenSSL.
#pragma once

#include <array>
#include <cstddef>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"

namespace onebit {

using Digest = std::array<std::byte, 32>;

class Sha256 {
public:
    Sha256();
    ~Sha256();
    Sha256(Sha256&&) noexcept;
    Sha256& operator=(Sha256&&) noexcept;
    void update(std::span<const std::byte> bytes);
    Digest finish();  // once; the object is spent afterwards

private:
    struct State;
    std::unique_ptr<State> state_;
};

Digest sha256(std::span<const std::byte> bytes);
Digest sha256(std::string_view text);
// Reads the file in pieces; error io or not_found with the path as subject.
Result<Digest> sha256_file(const std::filesystem::path& path);
std::string to_hex(const Digest& digest);  // 64 lower-case digits

}  // namespace onebit
