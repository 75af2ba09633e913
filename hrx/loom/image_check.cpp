#include "hrx/loom/image_check.h"

#include <string>

#include "hrx/loom/elf_view.h"

namespace onebit::loom {
namespace {

constexpr uint64_t descriptor_bytes = 64;
constexpr uint32_t machine_mask = 0xff;  // EF_AMDGPU_MACH

}  // namespace

Result<void> check_image(std::string_view kernel, const Target& target, std::span<const std::byte> image) {
    const auto refuse = [&](const std::string& expected, const std::string& found) {
        return Error{ErrorCode::invalid, "image of " + std::string(kernel), expected, found, "1bit kernels clear"};
    };
    if (!target.is_amd()) {
        const std::string_view text(reinterpret_cast<const char*>(image.data()), image.size());
        if (text.find('\0') != std::string_view::npos ||
            text.find(".target " + std::string(target.name) + "\n") == std::string_view::npos) {
            return refuse("PTX for " + std::string(target.name), "other bytes");
        }
        if (text.find(".entry " + std::string(kernel) + "(") == std::string_view::npos) {
            return refuse("an entry of this name", "none");
        }
        return {};
    }
    const auto elf = ElfView::open(image);
    if (!elf) return refuse("an HSACO for " + std::string(target.name), "other bytes");
    if ((elf->flags() & machine_mask) != target.machine) {
        return refuse("an HSACO for " + std::string(target.name), "one for another chip");
    }
    const auto code = elf->find_symbol(kernel);
    const auto descriptor = elf->find_symbol(std::string(kernel) + ".kd");
    if (!code || !elf->at(code->address, code->size) || !descriptor ||
        !elf->at(descriptor->address, descriptor_bytes)) {
        return refuse("its code and descriptor", "none");
    }
    return {};
}

}  // namespace onebit::loom
