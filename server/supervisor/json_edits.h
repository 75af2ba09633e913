// Changes to a JSON text at the places where they belong: what is not changed stays as it came, byte for byte.
#pragma once

#include <cstddef>
#include <functional>
#include <initializer_list>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <vector>

#include "base/result.h"
#include "server/supervisor/json_view.h"

namespace onebit {

// Collects changes to one object, which must outlive it, as must all parts of it that are named. Of two changes of
// which one lies inside the other the outer one counts.
class JsonEdits {
public:
    explicit JsonEdits(const JsonView& object) : text_(object.text()) {}

    void replace(const JsonView& part, std::string with);
    // Takes out the members or elements that unwanted(walk, index) is true for.
    void cut(const JsonView& list, const std::function<bool(const JsonView::Walk&, size_t)>& unwanted);
    // Takes out each member that is null, and what came before under its name; kept: names that may be null.
    void cut_nulls(const JsonView& object, std::initializer_list<std::string_view> kept = {});
    // key, value: JSON; an object that keeps at least one of its members.
    void insert(const JsonView& object, std::string_view key, std::string_view value);

    // Members of the object itself, all of that name. value: JSON.
    void drop(std::string_view key) { dropped_.insert(std::string(key)); }
    void set(std::string_view key, std::string value);

    bool empty() const { return edits_.empty() && dropped_.empty(); }
    // The changed text. Error usage where there are so many changes that no client has sent them in earnest.
    Result<std::string> applied();

private:
    struct Edit {
        size_t begin, end;
        std::string with;
    };
    size_t offset(std::string_view part) const { return static_cast<size_t>(part.data() - text_.data()); }

    std::string_view text_;
    std::vector<Edit> edits_;
    std::unordered_set<std::string> dropped_;
    std::vector<std::pair<std::string, std::string>> added_;
    bool too_many_ = false;
    void add(size_t begin, size_t end, std::string with);
};

// The text as a JSON string, quotes included.
std::string json_quoted(std::string_view text);

}  // namespace onebit
