#include "hrx/emulator/msgpack.h"

namespace onebit::emulator {
namespace {

constexpr int kDeepest = 64;
constexpr u32 kMostValues = 1000000;

class Reader {
public:
    explicit Reader(std::span<const u8> bytes) : rest_(bytes) {}
    bool finished() const { return rest_.empty(); }

    std::optional<MsgPackValue> value(int depth) {
        u64 head = 0;
        if (depth > kDeepest || ++values_ > kMostValues || !number(1, head)) return std::nullopt;
        MsgPackValue result;
        if (head < 0x80) return integer(static_cast<i64>(head));
        if (head < 0x90) return map(head & 15, depth);
        if (head < 0xa0) return array(head & 15, depth);
        if (head < 0xc0) return text(head & 31);
        if (head >= 0xe0) return integer(static_cast<i64>(head) - 256);
        u64 size = 0;
        switch (head) {
            case 0xc0:
                return result;
            case 0xc2:
            case 0xc3:
                result.kind = MsgPackValue::Kind::boolean;
                result.boolean = head == 0xc3;
                return result;
            case 0xc4:
            case 0xd9:
                return number(1, size) ? text(size) : std::nullopt;
            case 0xc5:
            case 0xda:
                return number(2, size) ? text(size) : std::nullopt;
            case 0xc6:
            case 0xdb:
                return number(4, size) ? text(size) : std::nullopt;
            // extensions: a type byte, then data
            case 0xc7:
                return number(1, size) ? text(size + 1) : std::nullopt;
            case 0xc8:
                return number(2, size) ? text(size + 1) : std::nullopt;
            case 0xc9:
                return number(4, size) ? text(size + 1) : std::nullopt;
            case 0xca:
            case 0xcb:
                if (!number(head == 0xca ? 4 : 8, size)) return std::nullopt;
                result.kind = MsgPackValue::Kind::real;
                result.real = head == 0xca ? static_cast<double>(as_f32(static_cast<u32>(size))) : as_f64(size);
                return result;
            case 0xcc:
            case 0xcd:
            case 0xce:
            case 0xcf:
                return number(1 << (head - 0xcc), size) ? integer(static_cast<i64>(size)) : std::nullopt;
            case 0xd0:
                return number(1, size) ? integer(static_cast<i8>(size)) : std::nullopt;
            case 0xd1:
                return number(2, size) ? integer(static_cast<i16>(size)) : std::nullopt;
            case 0xd2:
                return number(4, size) ? integer(static_cast<i32>(size)) : std::nullopt;
            case 0xd3:
                return number(8, size) ? integer(static_cast<i64>(size)) : std::nullopt;
            case 0xd4:
            case 0xd5:
            case 0xd6:
            case 0xd7:
            case 0xd8:
                return text((u64{1} << (head - 0xd4)) + 1);
            case 0xdc:
                return number(2, size) ? array(size, depth) : std::nullopt;
            case 0xdd:
                return number(4, size) ? array(size, depth) : std::nullopt;
            case 0xde:
                return number(2, size) ? map(size, depth) : std::nullopt;
            case 0xdf:
                return number(4, size) ? map(size, depth) : std::nullopt;
            default:
                return std::nullopt;
        }
    }

private:
    // Big endian.
    bool number(int bytes, u64& out) {
        if (rest_.size() < static_cast<std::size_t>(bytes)) return false;
        out = 0;
        for (int k = 0; k < bytes; ++k) out = out << 8 | rest_[static_cast<std::size_t>(k)];
        rest_ = rest_.subspan(static_cast<std::size_t>(bytes));
        return true;
    }
    static std::optional<MsgPackValue> integer(i64 value) {
        MsgPackValue result;
        result.kind = MsgPackValue::Kind::integer;
        result.integer = value;
        return result;
    }
    std::optional<MsgPackValue> text(u64 size) {
        if (rest_.size() < size) return std::nullopt;
        MsgPackValue result;
        result.kind = MsgPackValue::Kind::text;
        result.text.assign(reinterpret_cast<const char*>(rest_.data()), size);
        rest_ = rest_.subspan(size);
        return result;
    }
    std::optional<MsgPackValue> array(u64 size, int depth) {
        MsgPackValue result;
        result.kind = MsgPackValue::Kind::array;
        for (u64 k = 0; k < size; ++k) {
            auto element = value(depth + 1);
            if (!element) return std::nullopt;
            result.array.push_back(std::move(*element));
        }
        return result;
    }
    std::optional<MsgPackValue> map(u64 size, int depth) {
        MsgPackValue result;
        result.kind = MsgPackValue::Kind::map;
        for (u64 k = 0; k < size; ++k) {
            auto key = value(depth + 1);
            if (!key) return std::nullopt;
            auto element = value(depth + 1);
            if (!element) return std::nullopt;
            if (key->kind == MsgPackValue::Kind::text) result.map.insert_or_assign(key->text, std::move(*element));
        }
        return result;
    }

    std::span<const u8> rest_;
    u32 values_ = 0;
};

}  // namespace

const MsgPackValue* MsgPackValue::find(const std::string& key, Kind wanted) const {
    auto found = map.find(key);
    return found != map.end() && found->second.kind == wanted ? &found->second : nullptr;
}

std::optional<MsgPackValue> parse_msgpack(std::span<const u8> bytes) {
    Reader reader(bytes);
    auto value = reader.value(0);
    if (!value || !reader.finished()) return std::nullopt;
    return value;
}

}  // namespace onebit::emulator
