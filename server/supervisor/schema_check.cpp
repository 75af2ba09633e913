#include "server/supervisor/schema_check.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "server/supervisor/grammar_check.h"
#include "server/supervisor/schema_pattern.h"

namespace onebit {
namespace {

using nlohmann::json;

constexpr size_t kMostSteps = 256;  // the engine goes through them on its stack

// Each visit gives how many ways lead through the schema to its first character: the engine tries them all.
class Walk {
public:
    Walk(const json& root, const std::string& path, bool patterns, SchemaTotals& totals)
        : root_(root), root_path_(path), patterns_(patterns), totals_(totals) {}

    Result<double> node(const json& schema, const std::string& path) {
        if (!schema.is_object()) return 1.0;
        const Step step(depth_);
        if (depth_ > kMostSteps)
            return Error{ErrorCode::usage, path, "at most 256 schemas that lead to each other", "more", ""};
        ONEBIT_RETURN_IF_ERROR(totals_.rule(path));
        if (auto ref = schema.find("$ref"); ref != schema.end()) return reference(*ref, path);
        for (const char* key : {"oneOf", "anyOf"})
            if (auto found = schema.find(key); found != schema.end()) return each(*found, path + "." + key);
        auto type = schema.find("type");
        if (type == schema.end()) return typed(schema, "", path);
        if (type->is_string()) return typed(schema, type->get_ref<const std::string&>(), path);
        double leads = 1;
        for (size_t i = 0; type->is_array() && i < type->size(); i++) {
            if (!(*type)[i].is_string()) continue;
            ONEBIT_RETURN_IF_ERROR(totals_.rule(path));
            Result<double> one = typed(schema, (*type)[i].get_ref<const std::string&>(), path);
            if (!one.ok()) return one;
            leads += *one;
        }
        return few(leads, path);
    }

private:
    struct Step {
        explicit Step(size_t& depth) : depth_(depth) { depth_++; }
        ~Step() { depth_--; }
        size_t& depth_;
    };

    static Result<double> few(double leads, const std::string& path) {
        if (leads <= kMostLeads) return leads;
        return Error{ErrorCode::usage, path, "at most 100000 ways through alternatives that begin with others", "more",
                     ""};
    }

    Result<double> each(const json& schemas, const std::string& path) {
        double leads = 1;
        if (schemas.is_array() && schemas.size() > kMostAlternatives)
            return Error{ErrorCode::usage, path, "at most 4000 alternatives", std::to_string(schemas.size()), ""};
        for (size_t i = 0; schemas.is_array() && i < schemas.size(); i++) {
            Result<double> one = node(schemas[i], path + "[" + std::to_string(i) + "]");
            if (!one.ok()) return one;
            leads += *one;
        }
        return few(leads, path);
    }

    Result<double> reference(const json& value, const std::string& from) {
        if (!value.is_string()) return 1.0;
        const std::string& ref = value.get_ref<const std::string&>();
        if (ref.size() > kMostReferenceBytes)
            return Error{ErrorCode::usage, from + ".$ref", "at most 4096 bytes", std::to_string(ref.size()), ""};
        if (!ref.starts_with("#/")) return 1.0;
        if (auto known = seen_.find(ref); known != seen_.end()) return few(known->second + 1, from);
        seen_[ref] = 1;
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
                return 1.0;
            }
        }
        Result<double> leads = node(*target, path);
        if (!leads.ok()) return leads;
        seen_[ref] = *leads;
        return few(*leads + 1, from);
    }

    static bool has(const json& schema, std::initializer_list<const char*> keys) {
        for (const char* key : keys)
            if (schema.contains(key)) return true;
        return false;
    }

    Result<double> typed(const json& schema, const std::string& type, const std::string& path) {
        if (schema.contains("const")) return 1.0;
        if (const auto values = schema.find("enum"); values != schema.end()) {
            if (!values->is_array() || values->size() <= kMostAlternatives) return 1.0;
            return Error{ErrorCode::usage, path + ".enum", "at most 4000 values", std::to_string(values->size()), ""};
        }
        const auto more = schema.find("additionalProperties");
        const bool has_properties = schema.contains("properties") || (more != schema.end() && *more != json(true));
        const bool all_of = schema.contains("allOf");
        if (type == "object" || (type.empty() && has_properties))
            return all_of && !has_properties ? together(schema["allOf"], path + ".allOf") : object(schema, path);
        if (all_of && (type.empty() || type == "string")) return together(schema["allOf"], path + ".allOf");
        if (type == "array" || (type.empty() && has(schema, {"items", "prefixItems"}))) return array(schema, path);
        if (type == "integer") return done(check_bounds(schema, path));
        if (type.empty() || type == "string") return string(schema, path);
        return 1.0;
    }

    static Result<double> done(Result<void> checked) {
        return checked.ok() ? Result<double>(1.0) : Result<double>(std::move(checked).error());
    }

    // allOf: the properties of all become those of one object, and those of an anyOf in it are optional.
    Result<double> together(const json& schemas, const std::string& path) {
        size_t optional = 0;
        for (size_t i = 0; schemas.is_array() && i < schemas.size(); i++) {
            const auto any = schemas[i].is_object() ? schemas[i].find("anyOf") : schemas[i].end();
            if (!schemas[i].is_object() || any == schemas[i].end() || !any->is_array()) continue;
            for (const json& one : *any)
                if (one.is_object() && one.contains("properties")) optional += one["properties"].size();
        }
        ONEBIT_RETURN_IF_ERROR(few_optional(optional, path));
        Result<double> leads = each(schemas, path);
        return leads.ok() ? Result<double>(1.0) : std::move(leads);
    }

    static Result<void> few_optional(size_t count, const std::string& path) {
        if (count <= kMostOptionalProperties) return {};
        return Error{ErrorCode::usage, path, "at most 500 properties that are not required", std::to_string(count),
                     "name them in \"required\""};
    }

    Result<double> array(const json& schema, const std::string& path) {
        const char* key = schema.contains("items") ? "items" : "prefixItems";
        const auto items = schema.find(key);
        if (items != schema.end() && items->is_array()) {
            Result<double> leads = each(*items, path + "." + key);
            return leads.ok() ? Result<double>(1.0) : std::move(leads);
        }
        ONEBIT_RETURN_IF_ERROR(check_counts(schema, "minItems", "maxItems", path, totals_));
        if (items == schema.end()) return 1.0;
        Result<double> leads = node(*items, path + "." + key);
        return leads.ok() ? Result<double>(1.0) : std::move(leads);
    }

    Result<double> object(const json& schema, const std::string& path) {
        if (const auto properties = schema.find("properties"); properties != schema.end() && properties->is_object()) {
            std::set<std::string> required;
            if (const auto list = schema.find("required"); list != schema.end() && list->is_array())
                for (const json& name : *list)
                    if (name.is_string()) required.insert(name.get<std::string>());
            size_t optional = 0;
            for (const auto& [name, property] : properties->items()) optional += required.contains(name) ? 0 : 1;
            ONEBIT_RETURN_IF_ERROR(few_optional(optional, path));
            const std::string above = path + ".properties.";
            for (const auto& [name, property] : properties->items()) {
                if (name.size() > kMostNameBytes)
                    return Error{ErrorCode::usage, above + name.substr(0, 60), "names of at most 1024 bytes",
                                 "one of " + std::to_string(name.size()), ""};
                Result<double> one = node(property, above + name);
                if (!one.ok()) return one;
            }
        }
        const auto more = schema.find("additionalProperties");
        if (more == schema.end()) return 1.0;
        Result<double> leads = node(*more, path + ".additionalProperties");
        return leads.ok() ? Result<double>(1.0) : std::move(leads);
    }

    Result<double> string(const json& schema, const std::string& path) {
        const auto pattern = schema.find("pattern");
        if (pattern == schema.end() || !pattern->is_string() || pattern->get_ref<const std::string&>().empty())
            return done(check_counts(schema, "minLength", "maxLength", path, totals_));
        const std::string& text = pattern->get_ref<const std::string&>();
        ONEBIT_RETURN_IF_ERROR(totals_.pattern(path));
        if (text.size() > kMostPatternBytes)
            return Error{ErrorCode::usage, path + ".pattern", "at most 16384 bytes", std::to_string(text.size()), ""};
        std::string grammar;
        if (auto fault = pattern_fault(text, &grammar)) {
            if (!patterns_) return 1.0;
            return Error{ErrorCode::usage, path + ".pattern", std::move(fault->expected), std::move(fault->found),
                         std::move(fault->remedy)};
        }
        Result<void> checked = check_grammar(grammar);
        if (checked.ok()) return 1.0;
        Error error = std::move(checked).error();
        error.subject = path + ".pattern";
        return error;
    }

    const json& root_;
    const std::string& root_path_;
    const bool patterns_;
    SchemaTotals& totals_;
    std::map<std::string, double> seen_;
    size_t depth_ = 0;
};

}  // namespace

Result<void> check_schema(const json& schema, const std::string& path, bool patterns, SchemaTotals& totals) {
    Result<double> leads = Walk(schema, path, patterns, totals).node(schema, path);
    return leads.ok() ? Result<void>{} : Result<void>(std::move(leads).error());
}

}  // namespace onebit
