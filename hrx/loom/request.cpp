#include "hrx/loom/request.h"

#include <charconv>

#include "hrx/loom/bitcode_seal.h"
#include "hrx/loom/targets.h"

namespace onebit::loom {
Result<const Target*> target_for(std::string_view architecture) {
    if (const Target* target = find_target(architecture)) return target;
    const Target* newest = nullptr;
    std::string known;
    const uint32_t wanted = nvidia_number(architecture);
    for (const Target& target : targets) {
        const uint32_t number = nvidia_number(target.name);
        if (number != 0 && number <= wanted && (newest == nullptr || number > nvidia_number(newest->name))) {
            newest = &target;
        }
        known += (known.empty() ? "" : ", ") + std::string(target.name);
    }
    if (newest != nullptr) return newest;
    return Error{ErrorCode::unsupported, "target", known, std::string(architecture), ""};
}

Result<Request> make_request(const Kernel& kernel, std::string_view architecture, Constants constants) {
    const std::string subject = "kernel " + std::string(kernel.name);
    auto target = target_for(architecture);
    if (!target.ok()) return std::move(target).error();
    for (const auto& [name, value] : constants) {
        auto declared = find_constant(kernel, name);
        if (!declared.ok()) return std::move(declared).error();
        const Constant& constant = **declared;
        if (value < constant.minimum || value > constant.maximum) {
            return Error{ErrorCode::usage, subject + ", constant " + name,
                         std::to_string(constant.minimum) + " to " + std::to_string(constant.maximum),
                         std::to_string(value), ""};
        }
    }
    for (const Constant& constant : kernel.constants) {
        if (constant.is_option) constants.try_emplace(std::string(constant.name), constant.standard);
    }
    Request request{&kernel, *target, std::move(constants)};
    if (request.bitcode().size() <= seal_bytes) {
        return Error{ErrorCode::unsupported, subject, "bitcode for " + std::string((*target)->name),
                     "none in this build", "build with clang 19"};
    }
    return request;
}

uint32_t Request::workgroup() const {
    const auto option = constants.find("workgroup");
    return option == constants.end() ? kernel->workgroup : option->second;
}

std::string Request::key() const {
    static constexpr char digits[] = "0123456789abcdef";
    std::string text = "loom 1\ncompiler " ONEBIT_LOOM_COMPILER "\nbitcode ";
    for (const std::byte byte : bitcode().subspan(seal_magic.size(), seal_digest_bytes)) {
        text += digits[static_cast<unsigned>(byte) >> 4];
        text += digits[static_cast<unsigned>(byte) & 15];
    }
    text += "\nkernel " + std::string(kernel->name) + "\ntarget " + std::string(target->name);
    text += "\nworkgroup " + std::to_string(workgroup()) + "\n";
    for (const auto& [constant, value] : constants) text += constant + "=" + std::to_string(value) + "\n";
    return text;
}

std::string Request::name() const {
    std::string text = std::string(kernel->name) + " for " + std::string(target->name);
    const char* separator = " with ";
    for (const auto& [constant, value] : constants) {
        text += separator + constant + "=" + std::to_string(value);
        separator = ", ";
    }
    return text;
}

Result<std::pair<std::string, uint32_t>> parse_constant(std::string_view text) {
    const size_t sign = text.find('=');
    const std::string name(text.substr(0, sign));
    const std::string_view digits = sign == std::string_view::npos ? std::string_view{} : text.substr(sign + 1);
    uint32_t value = 0;
    const auto [end, problem] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    if (name.empty() || digits.empty() || problem != std::errc{} || end != digits.data() + digits.size()) {
        return Error{ErrorCode::usage, "constant", "NAME=NUMBER, such as columns=4096", "'" + std::string(text) + "'",
                     ""};
    }
    return std::pair{name, value};
}

}  // namespace onebit::loom
