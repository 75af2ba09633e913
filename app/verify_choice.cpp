#include "app/verify_choice.h"

#include <algorithm>
#include <sstream>

#include "app/command_line.h"

namespace onebit {
namespace {

std::string joined(const std::vector<std::string>& names) {
    std::string text;
    for (const std::string& name : names) text += (text.empty() ? "" : ",") + name;
    return text;
}

DeviceChoice plain(std::string devices) {
    DeviceChoice choice;
    choice.devices = std::move(devices);
    return choice;
}

Result<std::vector<std::string>> names_of(const std::string& list, const std::vector<PhysicalDevice>& devices) {
    auto names = select_devices(list, devices);
    if (names.ok() && names->empty()) names->push_back("CPU");
    return names;
}

Result<std::string> one_name(const char* flag, const std::string& list, const std::vector<PhysicalDevice>& devices) {
    auto names = names_of(list, devices);
    if (!names.ok()) return std::move(names).error();
    if (names->size() == 1) return names->front();
    return Error{ErrorCode::usage, flag, "one device beside --prefill-device", joined(*names), "name one of them"};
}

}  // namespace

Result<DeviceChoice> parse_device_choice(const std::string& flag, const std::string& text) {
    const auto wrong = [&flag](const std::string& expected, const std::string& found) {
        return Error{ErrorCode::usage, flag, expected, found.empty() ? "nothing" : "'" + found + "'",
                     "such as 'vulkan' or '--device vulkan --prefill-device cpu --prefill-min-tokens 32'"};
    };
    std::istringstream stream(text);
    std::vector<std::string> words;
    for (std::string word; stream >> word;) words.push_back(word);
    if (words.empty()) return wrong("names of devices or flags of 1bit serve", "");
    if (words.front()[0] != '-') {
        if (words.size() > 1) return wrong("a list of devices without spaces", text);
        return plain(words.front());
    }
    DeviceChoice choice;
    for (size_t i = 0; i < words.size(); i++) {
        const size_t equals = words[i].find('=');
        const std::string name = words[i].substr(0, equals);
        if (name != "--device" && name != "--prefill-device" && name != "--prefill-min-tokens") {
            return wrong("--device, --prefill-device or --prefill-min-tokens", name);
        }
        if (equals == std::string::npos && i + 1 == words.size()) return wrong("a value after " + name, "");
        const std::string value = equals == std::string::npos ? words[++i] : words[i].substr(equals + 1);
        if (value.empty()) return wrong("a value after " + name, "");
        if (name == "--device") {
            choice.devices = value;
        } else if (name == "--prefill-device") {
            choice.prefill_device = value;
        } else if (value == "auto") {
            choice.prefill_min_tokens.reset();
        } else {
            auto number = parse_number(value, 1, UINT32_MAX);
            if (!number.ok()) return wrong("auto or a number from 1 on after " + name, value);
            choice.prefill_min_tokens = static_cast<uint32_t>(*number);
        }
    }
    if (choice.devices.empty()) return wrong("--device", text);
    if (choice.prefill_min_tokens && !choice.is_split()) return wrong("--prefill-device", text);
    return choice;
}

Result<VerifyDevice> resolve_choice(const DeviceChoice& choice, const std::vector<PhysicalDevice>& devices,
                                    const MakeSplit& make_split) {
    VerifyDevice resolved;
    if (!choice.is_split()) {
        auto names = names_of(choice.devices, devices);
        if (!names.ok()) return std::move(names).error();
        resolved.label = joined(*names);
        resolved.devices = std::move(*names);
        return resolved;
    }
    auto decode = one_name("--device", choice.devices, devices);
    if (!decode.ok()) return std::move(decode).error();
    auto prefill = one_name("--prefill-device", choice.prefill_device, devices);
    if (!prefill.ok()) return std::move(prefill).error();
    auto split = make_split(*decode, *prefill, choice.prefill_min_tokens);
    if (!split.ok()) return std::move(split).error();
    resolved.label = split->device + " (prefill " + *prefill + ", decode " + *decode + ")";
    resolved.devices = {split->device};
    resolved.split = *decode != *prefill;
    resolved.prefill_min_tokens = split->min_tokens;
    resolved.counters = std::move(split->counters);
    return resolved;
}

Result<VerifySides> choose_sides(const std::string& tested, const std::string& reference, const std::string& third,
                                 const std::vector<PhysicalDevice>& devices) {
    VerifySides sides;
    if (tested.empty()) {
        const std::vector<std::string> gpus = default_devices(devices);
        if (gpus.empty()) {
            return Error{ErrorCode::usage, "--a", "two choices to compare", "only the CPU",
                         "name them: --a Vulkan0 --b cpu; see 1bit devices"};
        }
        sides.tested = plain(joined(gpus));
    } else {
        auto parsed = parse_device_choice("--a", tested);
        if (!parsed.ok()) return std::move(parsed).error();
        sides.tested = std::move(*parsed);
    }
    if (reference.empty()) {
        sides.reference = plain(sides.tested.is_split() ? sides.tested.devices : "cpu");
    } else {
        auto parsed = parse_device_choice("--b", reference);
        if (!parsed.ok()) return std::move(parsed).error();
        sides.reference = std::move(*parsed);
    }
    if (third == "none") return sides;
    if (!third.empty()) {
        auto parsed = parse_device_choice("--third", third);
        if (!parsed.ok()) return std::move(parsed).error();
        sides.third = std::move(*parsed);
        return sides;
    }
    const std::string usual = sides.tested.is_split() ? sides.tested.prefill_device : "cpu";
    const auto wanted = names_of(usual, devices);
    if (!wanted.ok()) return wanted.error();
    for (const DeviceChoice* side : {&sides.tested, &sides.reference}) {
        if (side->is_split()) continue;
        const auto names = names_of(side->devices, devices);
        if (!names.ok()) return names.error();
        if (*names == *wanted) return sides;
    }
    sides.third = plain(usual);
    return sides;
}

}  // namespace onebit
