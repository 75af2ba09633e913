// Looks up what the user's arguments for the llama.cpp server say.
#pragma once

#include <algorithm>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

namespace onebit {

// Whether one of these options is there, as "NAME" or "NAME=VALUE".
inline bool names_option(const std::vector<std::string>& arguments, std::initializer_list<std::string_view> names) {
    for (const std::string& argument : arguments) {
        std::string_view name = std::string_view(argument).substr(0, argument.find('='));
        if (std::find(names.begin(), names.end(), name) != names.end()) return true;
    }
    return false;
}

// The value of the last of these options, as "NAME VALUE" or "NAME=VALUE"; empty if none is there.
inline std::string option_value(const std::vector<std::string>& arguments,
                                std::initializer_list<std::string_view> names) {
    std::string value;
    for (size_t i = 0; i < arguments.size(); i++) {
        size_t equals = arguments[i].find('=');
        std::string_view name = std::string_view(arguments[i]).substr(0, equals);
        if (std::find(names.begin(), names.end(), name) == names.end()) continue;
        if (equals != std::string::npos)
            value = arguments[i].substr(equals + 1);
        else if (i + 1 < arguments.size())
            value = arguments[i + 1];
    }
    return value;
}

}  // namespace onebit
