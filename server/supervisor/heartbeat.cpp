#include "server/supervisor/heartbeat.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <cerrno>
#include <new>
#include <string>
#include <utility>

namespace onebit {
namespace {

constexpr size_t kPageBytes = (sizeof(HeartbeatPage) + 4095) / 4096 * 4096;

void* map_page(int fd) { return ::mmap(nullptr, kPageBytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0); }

Error not_a_page(int fd, std::string found) {
    return {ErrorCode::invalid, "heartbeat descriptor " + std::to_string(fd),
            "the shared page that 1bit's supervisor made", std::move(found), "do not start '1bit engine' by hand"};
}

}  // namespace

Result<Heartbeat> Heartbeat::create() {
    UniqueFd fd(::memfd_create("1bit-heartbeat", MFD_CLOEXEC | MFD_ALLOW_SEALING));
    if (!fd) return error_from_errno(errno, "memfd_create");
    if (::ftruncate(fd.get(), kPageBytes) != 0) return error_from_errno(errno, "ftruncate of the heartbeat page");
    // a child that shrank the file would make the supervisor's next read a SIGBUS
    if (::fcntl(fd.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0)
        return error_from_errno(errno, "sealing the heartbeat page");
    void* memory = map_page(fd.get());
    if (memory == MAP_FAILED) return error_from_errno(errno, "mmap of the heartbeat page");
    auto* page = new (memory) HeartbeatPage{};
    page->version = HeartbeatPage::kVersion;
    page->magic = HeartbeatPage::kMagic;
    return Heartbeat(std::move(fd), page);
}

Result<Heartbeat> Heartbeat::attach(int fd) {
    struct stat status {};
    if (fd < 0 || ::fstat(fd, &status) != 0) return not_a_page(fd, "no open descriptor");
    if (!S_ISREG(status.st_mode) || status.st_size != static_cast<off_t>(kPageBytes))
        return not_a_page(fd, "something of " + std::to_string(status.st_size) + " bytes");
    void* memory = map_page(fd);
    if (memory == MAP_FAILED) return not_a_page(fd, "a file that cannot be mapped for writing");
    auto* page = static_cast<HeartbeatPage*>(memory);
    if (page->magic != HeartbeatPage::kMagic || page->version != HeartbeatPage::kVersion) {
        const std::string found = page->magic == HeartbeatPage::kMagic
                                      ? "a page of version " + std::to_string(page->version)
                                      : std::string("other content");
        ::munmap(memory, kPageBytes);
        return not_a_page(fd, found);
    }
    return Heartbeat(UniqueFd(fd), page);
}

Heartbeat::Heartbeat(Heartbeat&& other) noexcept
    : fd_(std::move(other.fd_)), page_(std::exchange(other.page_, nullptr)) {}

Heartbeat& Heartbeat::operator=(Heartbeat&& other) noexcept {
    if (this != &other) {
        if (page_ != nullptr) ::munmap(page_, kPageBytes);
        fd_ = std::move(other.fd_);
        page_ = std::exchange(other.page_, nullptr);
    }
    return *this;
}

Heartbeat::~Heartbeat() {
    if (page_ != nullptr) ::munmap(page_, kPageBytes);
}

}  // namespace onebit
