// Reads a JSON text that scan_request_body() has accepted, in place: only what is asked for is looked at.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace onebit {

// One value of such a text. It points into the text, which must outlive it. On a text that is no JSON it reads garbage,
// but never beyond its end.
class JsonView {
public:
    enum class Kind { object, array, string, number, boolean, null };

    explicit JsonView(std::string_view text);  // space around the value is left out

    Kind kind() const { return kind_; }
    std::string_view text() const { return text_; }  // as it is written
    bool is_null() const { return kind_ == Kind::null; }
    bool is_string() const { return kind_ == Kind::string; }
    bool is_true() const { return text_ == "true"; }
    // A string of these characters, however it is escaped.
    bool is(std::string_view characters) const;
    bool is_integer() const;  // a number without fraction and exponent, of any size

    // The characters of a string, escapes resolved; empty for other kinds. Cost: linear.
    std::string string() const;
    bool is_float() const;  // a number whose nearest float is finite
    // The number; an integer of any size as the nearest double. 0 for other kinds.
    double number() const;
    // The number, if it is a whole one from least to most: 128.0 is, as the engine takes it.
    std::optional<int64_t> whole(int64_t least, int64_t most) const;

    // Walks through an object's members or an array's elements, in their order.
    class Walk {
    public:
        explicit Walk(const JsonView& owner);
        bool next();  // false at the end
        std::string key() const;
        std::string_view raw_key() const { return key_; }  // between the quotes, escapes as they are
        bool escaped() const { return key_.find('\\') != std::string_view::npos; }
        bool named(std::string_view name) const { return key_ == name || (escaped() && key() == name); }
        JsonView value() const { return JsonView(value_); }

    private:
        std::string_view text_;
        size_t at_ = 1;
        bool object_;
        std::string_view key_, value_;
    };
    Walk walk() const { return Walk(*this); }
    // Members or elements, counted up to most.
    size_t count(size_t most) const;
    // The last member of that name; nothing for null, since the engine takes null for a field that is not there.
    std::optional<JsonView> member(std::string_view key) const;
    // What the value is, in words for an error: its kind, and the value itself where it is short.
    std::string described() const;

private:
    std::string_view text_;
    Kind kind_ = Kind::null;
};

}  // namespace onebit
