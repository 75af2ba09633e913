#include "server/catalog/gguf_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <new>
#include <string_view>
#include <unordered_set>

#include "base/unique_fd.h"
#include "server/catalog/gguf_rules.h"
#include "server/catalog/gguf_types.h"

namespace onebit {
namespace {

static_assert(std::endian::native == std::endian::little);

constexpr uint64_t kHeaderBytes = 24;
constexpr uint64_t kSmallestKey = 14;     // a length, one letter, a type, one byte
constexpr uint64_t kSmallestTensor = 24;  // a length, no dimensions, a type, an offset
// Far above any real model; llama.cpp's own checks for repeated names take quadratic time.
constexpr uint64_t kMostKeys = 1u << 16, kMostTensors = 1u << 17;
constexpr uint64_t kMostHeadBytes = 128ull << 20, kLongestText = 64ull << 20;
constexpr uint64_t kLongestKey = 65535, kLongestTensorName = 63, kLongestToken = 1u << 20;
// ggml asserts that mapped weights begin at a multiple of 32
constexpr uint64_t kLeastAlignment = 32, kMostAlignment = 64ull << 20;

constexpr const char* kAgain = "download it again, or take another copy: '1bit pull' resumes and checks the digest";

// Thrown inside this file only.
struct Damaged {
    GgufFault fault;
};

[[noreturn]] void damaged(std::string expected, std::string found, std::string remedy = kAgain) {
    throw Damaged{{std::move(expected), std::move(found), std::move(remedy)}};
}

std::string in_quotes(std::string_view text) { return "'" + std::string(text) + "'"; }
std::string bytes(uint64_t count) { return std::to_string(count) + (count == 1 ? " byte" : " bytes"); }

// Reads forwards through a small buffer; whatever would leave the file or the head's limit is refused before it is
// read.
class HeadReader {
public:
    HeadReader(int fd, uint64_t size) : fd_(fd), size_(size) {}

    uint64_t size() const { return size_; }
    uint64_t position() const { return position_; }
    uint64_t remaining() const { return size_ - position_; }
    // What is being read, for the message when the file ends inside it.
    void inside(std::string what) { inside_ = std::move(what); }

    // Refuses a need of more bytes than the file has left.
    void need(uint64_t count) const {
        if (count > remaining())
            damaged("a whole GGUF file", "only " + bytes(size_) + ", cut off or damaged inside the head: " + inside_ +
                                             " needs " + bytes(count) + " at byte " + std::to_string(position_));
        if (position_ + count > kMostHeadBytes)
            damaged("a head of at most " + bytes(kMostHeadBytes), inside_ + " goes beyond that");
    }
    // to: at most size()
    void jump(uint64_t to) { position_ = to; }
    void skip(uint64_t count) {
        need(count);
        position_ += count;
    }
    void read(char* to, uint64_t count) {
        need(count);
        while (count > 0) {
            if (position_ < start_ || position_ >= start_ + filled_) fill();
            const uint64_t at = position_ - start_, part = std::min<uint64_t>(count, filled_ - at);
            std::memcpy(to, buffer_ + at, part);
            to += part;
            count -= part;
            position_ += part;
        }
    }
    template <typename T>
    T number() {
        T value;
        read(reinterpret_cast<char*>(&value), sizeof value);
        return value;
    }
    void text(uint64_t longest, std::string* to) {
        const uint64_t length = number<uint64_t>();
        need(length);
        if (length > longest) damaged(inside_ + " of at most " + bytes(longest), bytes(length));
        to->resize(length);
        read(to->data(), length);
    }
    std::string text(uint64_t longest) {
        std::string value;
        text(longest, &value);
        return value;
    }

private:
    void fill() {
        ssize_t got;
        do got = ::pread(fd_, buffer_, sizeof buffer_, static_cast<off_t>(position_));
        while (got < 0 && errno == EINTR);
        if (got < 0) damaged("a readable file", std::strerror(errno), "check the disk");
        if (got == 0) damaged("a file of " + bytes(size_), "an end at byte " + std::to_string(position_));
        start_ = position_;
        filled_ = static_cast<uint64_t>(got);
    }

    int fd_;
    uint64_t size_, position_ = 0, start_ = 0, filled_ = 0;
    std::string inside_ = "the header";
    char buffer_[64 << 10];
};

class HeadParser {
public:
    HeadParser(int fd, uint64_t size) : reader_(fd, size) { head_.file_bytes = size; }

    GgufHead parse() {
        header();
        values();
        split();
        alignment();
        tensors();
        layout();
        joined();
        if (auto fault = check_gguf_rules(head_, types_, vocabulary_)) throw Damaged{std::move(*fault)};
        return std::move(head_);
    }

private:
    void header();
    void values();
    GgufValue value(const std::string& key, uint32_t type);
    GgufArray array(const std::string& key);
    void split();
    void alignment();
    void tensors();
    GgufTensor tensor(uint64_t index);
    void set_bytes(GgufTensor& tensor) const;
    void layout();
    void joined();
    uint64_t whole(const std::string& key, GgufValueType type, uint64_t fallback) const;

    HeadReader reader_;
    GgufHead head_;
    GgufKeyTypes types_;
    VocabularyNotes vocabulary_;
    uint64_t key_count_ = 0, tensor_count_ = 0, data_bytes_ = 0;
};

void HeadParser::header() {
    char start[512];
    const uint64_t known = std::min<uint64_t>(sizeof start, reader_.size());
    reader_.read(start, known);
    if (known < 4 || std::memcmp(start, "GGUF", 4) != 0)
        throw Damaged{name_foreign_file({start, known}, reader_.size())};
    if (known < kHeaderBytes) damaged("a GGUF model", "only the first " + bytes(known) + " of one");
    const auto take = [&](uint64_t at, auto& to) { std::memcpy(&to, start + at, sizeof to); };
    take(4, head_.version);
    take(8, tensor_count_);
    take(16, key_count_);
    if (head_.version == 1)
        damaged("GGUF version 2 or 3", "version 1, given up in 2023",
                "convert the original weights with llama.cpp's convert_hf_to_gguf.py");
    if ((head_.version & 0xffff) == 0 && head_.version != 0)
        damaged("a little-endian GGUF file", "a big-endian one",
                "take the little-endian file of the model, or convert it again on this machine");
    if (head_.version != 2 && head_.version != 3)
        damaged("GGUF version 2 or 3",
                "version " + std::to_string(head_.version) + ", unknown to this build (llama.cpp " +
                    std::string(llama_release()) + ")",
                head_.version > 3 && head_.version < 100 ? "a newer 1bit may read it" : kAgain);
    const auto plausible = [&](uint64_t count, uint64_t smallest, uint64_t most, const char* what) {
        if (count > most) damaged("at most " + std::to_string(most) + " " + what, std::to_string(count));
        if (count * smallest > reader_.size() - kHeaderBytes)
            damaged("a whole GGUF file", "only " + bytes(reader_.size()) +
                                             ", cut off or damaged: its header promises " + std::to_string(count) +
                                             " " + what + ", which need at least " + bytes(count * smallest));
    };
    plausible(key_count_, kSmallestKey, kMostKeys, "keys");
    plausible(tensor_count_, kSmallestTensor, kMostTensors, "tensors");
}

void HeadParser::values() {
    reader_.jump(kHeaderBytes);
    for (uint64_t i = 0; i < key_count_; ++i) {
        const std::string which = "key " + std::to_string(i + 1) + " of " + std::to_string(key_count_);
        reader_.inside(which);
        std::string key = reader_.text(kLongestKey);
        // llama.cpp compares keys as C strings: a hidden rest could stand for another key
        if (key.empty() || key.find('\0') != std::string::npos)
            damaged("a name for " + which, key.empty() ? "none" : "one with a zero byte in it");
        if (types_.count(key)) damaged("each key once", "key " + in_quotes(key) + " twice");
        reader_.inside("key " + in_quotes(key));
        const uint32_t type = reader_.number<uint32_t>();
        GgufValue found = value(key, type);
        types_.emplace(key, type);
        head_.values.emplace(std::move(key), std::move(found));
    }
}

GgufValue HeadParser::value(const std::string& key, uint32_t type) {
    switch (type) {
        case kGgufU8:
            return uint64_t{reader_.number<uint8_t>()};
        case kGgufU16:
            return uint64_t{reader_.number<uint16_t>()};
        case kGgufU32:
            return uint64_t{reader_.number<uint32_t>()};
        case kGgufU64:
            return reader_.number<uint64_t>();
        case kGgufI8:
            return int64_t{reader_.number<int8_t>()};
        case kGgufI16:
            return int64_t{reader_.number<int16_t>()};
        case kGgufI32:
            return int64_t{reader_.number<int32_t>()};
        case kGgufI64:
            return reader_.number<int64_t>();
        case kGgufF32:
            return double{reader_.number<float>()};
        case kGgufF64:
            return reader_.number<double>();
        case kGgufBool:
            return reader_.number<uint8_t>() != 0;
        case kGgufString:
            return reader_.text(kLongestText);
        case kGgufArray:
            return array(key);
        default:
            break;
    }
    damaged("key " + in_quotes(key) + " to have a value type of GGUF", "type " + std::to_string(type));
}

GgufArray HeadParser::array(const std::string& key) {
    GgufArray found;
    found.type = reader_.number<uint32_t>();
    found.length = reader_.number<uint64_t>();
    if (const uint32_t size = gguf_value_bytes(found.type)) {
        if (found.length > reader_.size() / size)
            damaged("a whole GGUF file", "only " + bytes(reader_.size()) + ", cut off or damaged: the array of key " +
                                             in_quotes(key) + " has " + std::to_string(found.length) + " elements");
        if (key == "tokenizer.ggml.token_type" && found.type == kGgufI32) {
            constexpr int32_t kByteToken = 6;
            for (uint64_t i = 0; i < found.length; ++i)
                vocabulary_.byte_tokens |= reader_.number<int32_t>() == kByteToken;
            return found;
        }
        reader_.skip(found.length * size);
        return found;
    }
    if (found.type != kGgufString)
        damaged("the array of key " + in_quotes(key) + " to hold numbers or texts",
                "elements of type " + std::to_string(found.type));
    if (found.length > reader_.remaining() / 8)
        damaged("a whole GGUF file", "only " + bytes(reader_.size()) + ", cut off or damaged: the array of key " +
                                         in_quotes(key) + " has " + std::to_string(found.length) + " texts");
    const bool tokens = key == "tokenizer.ggml.tokens";
    if (tokens && found.length > kMostModelTokens)
        damaged("at most " + std::to_string(kMostModelTokens) + " texts in key " + in_quotes(key),
                std::to_string(found.length));
    std::string token;
    for (uint64_t i = 0; i < found.length; ++i) {
        if (!tokens) {
            reader_.skip(reader_.number<uint64_t>());
            continue;
        }
        // as llama.cpp takes them: up to the first zero byte, and an empty one gets a name
        reader_.text(kLongestToken, &token);
        if (const size_t zero = token.find('\0'); zero != std::string::npos) token.resize(zero);
        if (token.empty()) token = "[EMPTY_" + std::to_string(i) + "]";
        vocabulary_.token_hashes.push_back(std::hash<std::string>{}(token));
    }
    return found;
}

// A number that llama.cpp reads in exactly this type.
uint64_t HeadParser::whole(const std::string& key, GgufValueType type, uint64_t fallback) const {
    auto found = types_.find(key);
    if (found == types_.end()) return fallback;
    if (found->second != type)
        damaged("key " + in_quotes(key) + " to be a " + gguf_value_name(type), gguf_value_name(found->second));
    return std::get<uint64_t>(head_.values.at(key));
}

void HeadParser::split() {
    const uint64_t count = whole("split.count", kGgufU16, 1), number = whole("split.no", kGgufU16, 0);
    if (count <= 1) return;
    if (!types_.count("split.no") || number >= count)
        damaged("key 'split.no' from 0 to " + std::to_string(count - 1) + " beside a 'split.count' of " +
                    std::to_string(count),
                types_.count("split.no") ? std::to_string(number) : "none");
    head_.split_count = static_cast<uint16_t>(count);
    head_.split_no = static_cast<uint16_t>(number);
}

void HeadParser::alignment() {
    head_.alignment = whole("general.alignment", kGgufU32, 32);
    if (!std::has_single_bit(head_.alignment) || head_.alignment < kLeastAlignment || head_.alignment > kMostAlignment)
        damaged("key 'general.alignment' to be a power of two from 32 to " + std::to_string(kMostAlignment),
                std::to_string(head_.alignment), "convert the model again with the usual alignment of 32");
}

void HeadParser::tensors() {
    std::unordered_set<std::string_view> names;
    head_.tensors.reserve(tensor_count_);
    for (uint64_t i = 0; i < tensor_count_; ++i) {
        head_.tensors.push_back(tensor(i));
        if (!names.insert(head_.tensors.back().name).second)
            damaged("each tensor once", "tensor " + in_quotes(head_.tensors.back().name) + " twice");
    }
}

GgufTensor HeadParser::tensor(uint64_t index) {
    GgufTensor found;
    const std::string which = "tensor " + std::to_string(index + 1) + " of " + std::to_string(tensor_count_);
    reader_.inside("the name of " + which);
    found.name = reader_.text(kLongestTensorName);
    if (found.name.empty() || found.name.find('\0') != std::string::npos)
        damaged("a name for " + which, found.name.empty() ? "none" : "one with a zero byte in it");
    reader_.inside("the entry of tensor " + in_quotes(found.name));
    const uint32_t dimensions = reader_.number<uint32_t>();
    if (dimensions > 4)
        damaged("tensor " + in_quotes(found.name) + " to have at most 4 dimensions", std::to_string(dimensions));
    for (uint32_t i = 0; i < dimensions; ++i) found.shape.push_back(reader_.number<uint64_t>());
    if (found.shape.empty()) found.shape.push_back(1);
    found.type = reader_.number<uint32_t>();
    found.offset = reader_.number<uint64_t>();
    set_bytes(found);
    return found;
}

void HeadParser::set_bytes(GgufTensor& tensor) const {
    const std::string name = "tensor " + in_quotes(tensor.name);
    const GgufType* type = gguf_type(tensor.type);
    if (!type)
        damaged("tensor types that this build knows",
                name + " uses tensor type " + std::to_string(tensor.type) + ", unknown to this build (llama.cpp " +
                    llama_release() + " knows 0 to " + std::to_string(kGgufTypeCount - 1) + ")",
                "a newer 1bit may read it; until then take another quantization of the model");
    if (type->block == 0)
        damaged("a tensor type in use",
                name + " has the removed type " + std::to_string(tensor.type) + " (" + type->name + ")", type->remedy);

    constexpr uint64_t kMost = INT64_MAX;
    std::string shape;
    uint64_t elements = 1;
    bool fits = true, empty = false;
    for (uint64_t length : tensor.shape) {
        shape += (shape.empty() ? "" : " x ") + std::to_string(length);
        empty |= length == 0;
        // even beside a dimension of 0 no partial product may overflow: llama.cpp multiplies them one by one
        if (length > kMost || (length > 0 && elements > kMost / length))
            fits = false;
        else
            elements *= std::max<uint64_t>(length, 1);
    }
    // the division is done in blocks, whose product with the block's bytes has to fit too
    if (!fits || elements >= kMost || elements / type->block > kMost / type->bytes)
        damaged(name + " to have a size that exists", "the shape " + shape, kAgain);
    if (tensor.shape[0] % type->block != 0)
        damaged(name + " of type " + type->name + " to have rows of a multiple of " + std::to_string(type->block) +
                    " elements",
                std::to_string(tensor.shape[0]));
    tensor.bytes = empty ? 0 : elements / type->block * type->bytes;
}

// Tensors lie one behind the other without gaps, each padded to the alignment: llama.cpp takes nothing else.
void HeadParser::layout() {
    const uint64_t mask = head_.alignment - 1;
    head_.data_offset = tensor_count_ > 0 ? (reader_.position() + mask) & ~mask : reader_.position();
    head_.expected_bytes = head_.data_offset;
    const GgufTensor* first_outside = nullptr;
    for (const GgufTensor& tensor : head_.tensors) {
        if (tensor.offset != data_bytes_) {
            const char* how = tensor.offset % head_.alignment != 0 ? "an offset that is not aligned"
                              : tensor.offset < data_bytes_        ? "an offset inside the tensor before it"
                                                                   : "a gap before it";
            damaged("tensor " + in_quotes(tensor.name) + " at offset " + std::to_string(data_bytes_),
                    "offset " + std::to_string(tensor.offset) + ": " + how);
        }
        constexpr uint64_t kMost = INT64_MAX;
        const uint64_t begin = head_.data_offset + data_bytes_;
        if (tensor.bytes > kMost - head_.alignment - begin)
            damaged("tensors that together have a size that exists", "too much at tensor " + in_quotes(tensor.name));
        head_.expected_bytes = begin + tensor.bytes;
        data_bytes_ += (tensor.bytes + mask) & ~mask;
        if (!first_outside && head_.expected_bytes > head_.file_bytes) first_outside = &tensor;
    }
    if (first_outside)
        damaged(
            "a file of " + bytes(head_.expected_bytes) + ", as its head says",
            bytes(head_.file_bytes) + ": cut off, the first tensor past the end is " + in_quotes(first_outside->name));
    if (head_.data_offset > head_.file_bytes)
        damaged("a file of at least " + bytes(head_.data_offset),
                bytes(head_.file_bytes) + ": cut off behind its head");
}

void HeadParser::joined() {
    if (head_.split_count <= 1) return;
    for (uint64_t end : {head_.data_offset + data_bytes_, head_.expected_bytes}) {
        if (end > head_.file_bytes || head_.file_bytes - end < 4) continue;
        char magic[4];
        reader_.jump(end);
        reader_.inside("what follows the tensors");
        reader_.read(magic, sizeof magic);
        if (std::memcmp(magic, "GGUF", 4) == 0)
            damaged("one shard",
                    "shard " + std::to_string(head_.split_no + 1) + " of " + std::to_string(head_.split_count) +
                        " with " + bytes(head_.file_bytes - end) +
                        " of another GGUF file behind it: shards that were joined end to end",
                    "keep the shards as separate files and open the first, or merge them with llama.cpp's "
                    "'llama-gguf-split --merge'");
    }
}

}  // namespace

std::string GgufHead::text(const std::string& key) const {
    auto found = values.find(key);
    if (found == values.end()) return "";
    const auto* text = std::get_if<std::string>(&found->second);
    return text ? *text : "";
}

uint64_t GgufHead::number(const std::string& key, uint64_t fallback) const {
    auto found = values.find(key);
    if (found == values.end()) return fallback;
    if (const auto* plain = std::get_if<uint64_t>(&found->second)) return *plain;
    const auto* with_sign = std::get_if<int64_t>(&found->second);
    return with_sign && *with_sign >= 0 ? static_cast<uint64_t>(*with_sign) : fallback;
}

Result<GgufHead> read_gguf_head(const std::filesystem::path& path) {
    const auto invalid = [&](std::string expected, std::string found, std::string remedy) {
        return Error{ErrorCode::invalid, path.string(), std::move(expected), std::move(found), std::move(remedy)};
    };
    // without O_NONBLOCK a named pipe would wait for its writer
    const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
    if (!fd) return error_from_errno(errno, path.string());
    struct stat status {};
    if (::fstat(fd.get(), &status) != 0) return error_from_errno(errno, path.string());
    if (S_ISDIR(status.st_mode)) return invalid("a GGUF model", "a folder", "name the file in it");
    if (!S_ISREG(status.st_mode)) return invalid("a GGUF model", "no regular file", "name the model's file");
    try {
        return HeadParser(fd.get(), static_cast<uint64_t>(status.st_size)).parse();
    } catch (Damaged& damage) {
        return invalid(std::move(damage.fault.expected), std::move(damage.fault.found), std::move(damage.fault.remedy));
    } catch (const std::bad_alloc&) {
        return Error{ErrorCode::no_space, path.string(), "memory for the head of this model", "none left", ""};
    }
}

}  // namespace onebit
