// The members of a request's body that decide how it is sent on.
#pragma once

#include <string>
#include <string_view>
#include <unordered_map>

#include "server/supervisor/json_view.h"

namespace onebit {

// By name; the last one of a name, as the engine takes it. What is null is not in it.
using RequestMembers = std::unordered_map<std::string_view, JsonView>;

inline const JsonView* member_of(const RequestMembers& members, std::string_view name) {
    const auto found = members.find(name);
    return found == members.end() ? nullptr : &found->second;
}

inline std::string element_path(std::string_view path, size_t i) {
    return std::string(path) + "[" + std::to_string(i) + "]";
}

}  // namespace onebit
