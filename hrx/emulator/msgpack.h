// Reads a MessagePack document (the MessagePack specification) into a tree. Any bytes may be given: what is damaged,
// too deep or too large gives nothing.
#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "hrx/emulator/types.h"

namespace onebit::emulator {

struct MsgPackValue {
    enum class Kind : u8 { nil, boolean, integer, real, text, array, map };
    Kind kind = Kind::nil;
    bool boolean = false;
    i64 integer = 0;  // unsigned ones above the signed range wrap
    double real = 0;
    std::string text;  // also binary and extension data
    std::vector<MsgPackValue> array;
    std::map<std::string, MsgPackValue> map;  // entries whose key is no text are left out

    // Null when this is no map or has no such entry of that kind.
    const MsgPackValue* find(const std::string& key, Kind kind) const;
};

// nullopt when the bytes are not one whole document; at most 64 levels and 1,000,000 values.
std::optional<MsgPackValue> parse_msgpack(std::span<const u8> bytes);

}  // namespace onebit::emulator
