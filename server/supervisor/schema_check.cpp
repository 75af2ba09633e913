#include "server/supervisor/schema_check.h"

#include <nlohmann/json.hpp>
#include <optional>
#include <set>

#include "server/supervisor/schema_pattern.h"

namespace onebit {
namespace {

using nlohmann::json;

constexpr size_t kMostSteps = 256;  // the engine goes through them on its stack

class Walk {
public:
    Walk(const json& root, const std::string& path) : root_(root), root_path_(path) {}

    Result<void> node(const json& schema, const std::string& path) {
        if (!schema.is_object()) return {};
        const Step step(depth_);
        if (depth_ > kMostSteps)
            return Error{ErrorCode::usage, path, "at most 256 schemas that lead to each other", "more", ""};
        if (auto ref = schema.find("$ref"); ref != schema.end()) return reference(*ref);
        for (const char* key : {"oneOf", "anyOf"})
            if (auto found = schema.find(key); found != schema.end()) return each(*found, path + "." + key);
        auto type = schema.find("type");
        if (type == schema.end()) return typed(schema, "", path);
        if (type->is_string()) return typed(schema, type->get_ref<const std::string&>(), path);
        if (type->is_array())
            for (const json& one : *type)
                if (one.is_string()) ONEBIT_RETURN_IF_ERROR(typed(schema, one.get_ref<const std::string&>(), path));
        return {};
    }

private:
    struct Step {
        explicit Step(size_t& depth) : depth_(depth) { depth_++; }
        ~Step() { depth_--; }
        size_t& depth_;
    };

    Result<void> each(const json& schemas, const std::string& path) {
        for (size_t i = 0; schemas.is_array() && i < schemas.size(); i++)
            ONEBIT_RETURN_IF_ERROR(node(schemas[i], path + "[" + std::to_string(i) + "]"));
        return {};
    }

    Result<void> reference(const json& value) {
        if (!value.is_string()) return {};
        const std::string& ref = value.get_ref<const std::string&>();
        if (!ref.starts_with("#/") || !seen_.insert(ref).second) return {};
        const json* target = &root_;
        std::string path = root_path_;
        for (size_t begin = 2; begin <= ref.size();) {
            const size_t end = std::min(ref.find('/', begin), ref.size());
            const std::string part = ref.substr(begin, end - begin);
            begin = end + 1;
            const bool index = target->is_array() && !part.empty() && part.size() < 10 &&
                               part.find_first_not_of("0123456789") == std::string::npos;
            if (target->is_object() && target->contains(part)) {
                target = &target->at(part);
                path += "." + part;
            } else if (index && std::stoul(part) < target->size()) {
                target = &target->at(std::stoul(part));
                path += "[" + part + "]";
            } else {
                return {};
            }
        }
        return node(*target, path);
    }

    static bool has(const json& schema, std::initializer_list<const char*> keys) {
        for (const char* key : keys)
            if (schema.contains(key)) return true;
        return false;
    }

    Result<void> typed(const json& schema, const std::string& type, const std::string& path) {
        if (has(schema, {"const", "enum"})) return {};
        const auto more = schema.find("additionalProperties");
        const bool has_properties = schema.contains("properties") || (more != schema.end() && *more != json(true));
        const bool all_of = schema.contains("allOf");
        if (type == "object" || (type.empty() && has_properties))
            return all_of && !has_properties ? each(schema["allOf"], path + ".allOf") : object(schema, path);
        if (all_of && (type.empty() || type == "string")) return each(schema["allOf"], path + ".allOf");
        if (type == "array" || (type.empty() && has(schema, {"items", "prefixItems"}))) {
            const char* key = schema.contains("items") ? "items" : "prefixItems";
            const auto items = schema.find(key);
            if (items == schema.end()) return {};
            return items->is_array() ? each(*items, path + "." + key) : node(*items, path + "." + key);
        }
        if (type.empty() || type == "string") return string(schema, path);
        return {};
    }

    Result<void> object(const json& schema, const std::string& path) {
        if (const auto properties = schema.find("properties"); properties != schema.end() && properties->is_object()) {
            const std::string above = path + ".properties.";
            for (const auto& [name, property] : properties->items())
                ONEBIT_RETURN_IF_ERROR(node(property, above + name));
        }
        const auto more = schema.find("additionalProperties");
        return more == schema.end() ? Result<void>{} : node(*more, path + ".additionalProperties");
    }

    Result<void> string(const json& schema, const std::string& path) {
        const auto pattern = schema.find("pattern");
        if (pattern == schema.end() || !pattern->is_string()) return {};
        auto fault = pattern_fault(pattern->get_ref<const std::string&>());
        if (!fault) return {};
        return Error{ErrorCode::usage, path + ".pattern", std::move(fault->expected), std::move(fault->found),
                     std::move(fault->remedy)};
    }

    const json& root_;
    const std::string& root_path_;
    std::set<std::string> seen_;
    size_t depth_ = 0;
};

}  // namespace

Result<void> check_schema(const json& schema, const std::string& path) { return Walk(schema, path).node(schema, path); }

}  // namespace onebit
