#include "tandem/settings.h"

#include <charconv>
#include <optional>

namespace onebit::tandem {
namespace {

std::vector<std::string_view> split(std::string_view text, char separator) {
    std::vector<std::string_view> parts;
    while (true) {
        const size_t end = text.find(separator);
        parts.push_back(text.substr(0, end));
        if (end == std::string_view::npos) return parts;
        text.remove_prefix(end + 1);
    }
}

Error wrong(std::string_view key, std::string expected, std::string_view found) {
    return {ErrorCode::usage, "tandem setting " + std::string(key), std::move(expected), "'" + std::string(found) + "'",
            ""};
}

template <typename T>
std::optional<T> number(std::string_view text) {
    T value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size() || text.empty()) return std::nullopt;
    return value;
}

// "16M": bytes with an optional K, M or G of 1024.
std::optional<uint64_t> bytes(std::string_view text) {
    unsigned shift = 0;
    if (!text.empty() && (text.back() == 'K' || text.back() == 'M' || text.back() == 'G')) {
        shift = text.back() == 'K' ? 10 : text.back() == 'M' ? 20 : 30;
        text.remove_suffix(1);
    }
    const auto value = number<uint64_t>(text);
    if (!value || *value > (UINT64_MAX >> shift)) return std::nullopt;
    return *value << shift;
}

Result<Fault> parse_fault(std::string_view text) {
    const auto parts = split(text, '/');
    Fault fault;
    if (parts[0] == "compute") fault.kind = Fault::Kind::compute;
    if (parts[0] == "nan") fault.kind = Fault::Kind::nan;
    if (parts[0] == "allocate") fault.kind = Fault::Kind::allocate;
    if (parts[0] == "map") fault.kind = Fault::Kind::map;
    if (parts[0] == "abort") fault.kind = Fault::Kind::abort;
    if (parts[0] == "hang") fault.kind = Fault::Kind::hang;
    if (parts[0] == "lost") fault.kind = Fault::Kind::lost;
    const auto at = parts.size() > 2 ? number<uint64_t>(parts[2]) : std::optional<uint64_t>(0);
    const auto count = parts.size() > 3 ? number<uint64_t>(parts[3]) : std::optional<uint64_t>(1);
    if (fault.kind == Fault::Kind::none || parts.size() < 2 || parts.size() > 4 || parts[1].empty() || !at || !count)
        return wrong("fault", "compute|nan|allocate|map|abort|hang|lost/DEVICE[/AT[/COUNT]]", text);
    fault.member = parts[1];
    fault.at = *at;
    fault.count = *count;
    return fault;
}

const char* fault_name(Fault::Kind kind) {
    switch (kind) {
        case Fault::Kind::compute:
            return "compute";
        case Fault::Kind::nan:
            return "nan";
        case Fault::Kind::allocate:
            return "allocate";
        case Fault::Kind::map:
            return "map";
        case Fault::Kind::abort:
            return "abort";
        case Fault::Kind::hang:
            return "hang";
        case Fault::Kind::lost:
            return "lost";
        case Fault::Kind::none:
            break;
    }
    return "none";
}

Result<void> apply(Settings& settings, std::string_view key, std::string_view value) {
    const auto flag = [&](bool& target) -> Result<void> {
        if (value != "0" && value != "1") return wrong(key, "0 or 1", value);
        target = value == "1";
        return {};
    };
    if (key == "owner") return settings.owner = value, Result<void>();
    if (key == "prefill") return settings.prefill = value, Result<void>();
    if (key == "decode") return settings.decode = value, Result<void>();
    if (key == "strict") return flag(settings.strict);
    if (key == "repeat") return flag(settings.repeat);
    if (key == "staged") return flag(settings.staged);
    if (key == "min") {
        const auto tokens = number<int64_t>(value);
        if (!tokens || *tokens < 1) return wrong(key, "a number of tokens of at least 1", value);
        settings.min_tokens = *tokens;
        return {};
    }
    if (key == "segments") {
        if (value == "auto") return settings.segments = Segments::automatic, Result<void>();
        if (value == "always") return settings.segments = Segments::always, Result<void>();
        if (value == "never") return settings.segments = Segments::never, Result<void>();
        return wrong(key, "auto, always or never", value);
    }
    if (key == "region") {
        const auto limit = bytes(value);
        if (!limit || *limit < 4096) return wrong(key, "bytes such as 16M, at least 4096", value);
        settings.region_limit = *limit;
        return {};
    }
    if (key == "upload") {
        const auto least = bytes(value);
        if (!least || *least < 1) return wrong(key, "bytes such as 256K, at least 1", value);
        settings.upload = *least;
        return {};
    }
    if (key == "deny") {
        const size_t slash = value.find('/');
        if (slash == 0 || slash == std::string_view::npos || slash + 1 == value.size())
            return wrong(key, "DEVICE/OP, such as CPU/SWIGLU", value);
        settings.deny.emplace_back(value);
        return {};
    }
    if (key == "fault") {
        auto fault = parse_fault(value);
        if (!fault) return std::move(fault).error();
        settings.fault = *fault;
        return {};
    }
    return Error{ErrorCode::usage, "tandem settings",
                 "owner, prefill, decode, min, segments, strict, repeat, staged, upload, region, deny or fault",
                 "'" + std::string(key) + "'", ""};
}

}  // namespace

Result<Settings> parse_settings(std::string_view text) {
    Settings settings;
    for (const auto part : split(text, ',')) {
        if (part.empty()) continue;
        const size_t equals = part.find('=');
        if (equals == std::string_view::npos) return wrong(part, "KEY=VALUE", part);
        ONEBIT_RETURN_IF_ERROR(apply(settings, part.substr(0, equals), part.substr(equals + 1)));
    }
    if (settings.owner.empty())
        return Error{ErrorCode::usage, "tandem settings", "owner=DEVICE", "'" + std::string(text) + "'", ""};
    if (settings.prefill.empty()) settings.prefill = settings.owner;
    if (settings.decode.empty()) settings.decode = settings.owner;
    return settings;
}

std::string to_string(const Settings& settings) {
    std::string text = "owner=" + settings.owner + ",prefill=" + settings.prefill + ",decode=" + settings.decode +
                       ",min=" + std::to_string(settings.min_tokens);
    if (settings.segments == Segments::always) text += ",segments=always";
    if (settings.segments == Segments::never) text += ",segments=never";
    if (settings.strict) text += ",strict=1";
    if (!settings.repeat) text += ",repeat=0";
    if (settings.staged) text += ",staged=1";
    if (settings.upload != Settings().upload) text += ",upload=" + std::to_string(settings.upload);
    if (settings.region_limit != 0) text += ",region=" + std::to_string(settings.region_limit);
    for (const auto& denied : settings.deny) text += ",deny=" + denied;
    if (settings.fault.kind != Fault::Kind::none)
        text += std::string(",fault=") + fault_name(settings.fault.kind) + "/" + settings.fault.member + "/" +
                std::to_string(settings.fault.at) + "/" + std::to_string(settings.fault.count);
    return text;
}

}  // namespace onebit::tandem
