#include "base/hash.h"

#include <fcntl.h>
#include <openssl/evp.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstdlib>
#include <vector>

#include "base/log.h"
#include "base/unique_fd.h"

namespace onebit {

namespace {

// OpenSSL fails here only without memory or without its own default provider: nothing can go on after either.
void require(bool right) {
    if (right) return;
    log_error("base",
              "SHA-256: expected a digest from OpenSSL, found an error; the installation of libcrypto is broken");
    std::abort();
}

}  // namespace

struct Sha256::State {
    EVP_MD_CTX* context = EVP_MD_CTX_new();
    ~State() { EVP_MD_CTX_free(context); }
};

Sha256::Sha256() : state_(std::make_unique<State>()) {
    require(state_->context && EVP_DigestInit_ex(state_->context, EVP_sha256(), nullptr) == 1);
}
Sha256::~Sha256() = default;
Sha256::Sha256(Sha256&&) noexcept = default;
Sha256& Sha256::operator=(Sha256&&) noexcept = default;

void Sha256::update(std::span<const std::byte> bytes) {
    require(state_ && EVP_DigestUpdate(state_->context, bytes.data(), bytes.size()) == 1);
}

Digest Sha256::finish() {
    Digest digest{};
    require(state_ &&
            EVP_DigestFinal_ex(state_->context, reinterpret_cast<unsigned char*>(digest.data()), nullptr) == 1);
    state_.reset();
    return digest;
}

Digest sha256(std::span<const std::byte> bytes) {
    Sha256 hash;
    hash.update(bytes);
    return hash.finish();
}

Digest sha256(std::string_view text) { return sha256(std::as_bytes(std::span(text))); }

Result<Digest> sha256_file(const std::filesystem::path& path) {
    // O_NONBLOCK: opening a FIFO without a writer must not hang
    UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
    if (!fd) return error_from_errno(errno, path.string());
    struct stat status {};
    if (::fstat(fd.get(), &status) != 0) return error_from_errno(errno, path.string());
    if (!S_ISREG(status.st_mode)) {
        return Error{ErrorCode::io, path.string(), "a regular file", "a folder, device or pipe", "name a file"};
    }
    ::posix_fadvise(fd.get(), 0, 0, POSIX_FADV_SEQUENTIAL);
    Sha256 hash;
    std::vector<std::byte> piece(1 << 20);
    for (;;) {
        const ssize_t count = ::read(fd.get(), piece.data(), piece.size());
        if (count < 0 && errno == EINTR) continue;
        if (count < 0) return error_from_errno(errno, path.string());
        if (count == 0) return hash.finish();
        hash.update(std::span(piece).first(static_cast<size_t>(count)));
    }
}

std::string to_hex(const Digest& digest) {
    constexpr char digits[] = "0123456789abcdef";
    std::string text;
    text.reserve(2 * digest.size());
    for (const std::byte byte : digest) {
        text += digits[std::to_integer<unsigned>(byte) >> 4];
        text += digits[std::to_integer<unsigned>(byte) & 0x0F];
    }
    return text;
}

}  // namespace onebit
