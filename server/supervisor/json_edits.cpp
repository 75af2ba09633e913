#include "server/supervisor/json_edits.h"

#include <algorithm>

#include <nlohmann/json.hpp>

namespace onebit {
namespace {

constexpr size_t kMostEdits = 200'000;

std::string name_of(const JsonView::Walk& member) {
    return member.escaped() ? member.key() : std::string(member.raw_key());
}

}  // namespace

void JsonEdits::add(size_t begin, size_t end, std::string with) {
    if (edits_.size() == kMostEdits)
        too_many_ = true;
    else
        edits_.push_back({begin, end, std::move(with)});
}

void JsonEdits::replace(const JsonView& part, std::string with) {
    const size_t begin = offset(part.text());
    add(begin, begin + part.text().size(), std::move(with));
}

void JsonEdits::cut(const JsonView& list, const std::function<bool(const JsonView::Walk&, size_t)>& unwanted) {
    const bool object = list.kind() == JsonView::Kind::object;
    size_t kept_end = 0, run_begin = 0, run_end = 0, i = 0;
    bool kept = false, run = false;
    for (JsonView::Walk walk = list.walk(); walk.next(); i++) {
        const std::string_view value = walk.value().text();
        const size_t begin = object ? offset(walk.raw_key()) - 1 : offset(value), end = offset(value) + value.size();
        if (unwanted(walk, i)) {
            if (!run) run_begin = begin;
            run = true;
            run_end = end;
            continue;
        }
        if (run) add(run_begin, begin, {});
        run = false;
        kept = true;
        kept_end = end;
    }
    if (run) add(kept ? kept_end : run_begin, run_end, {});
}

void JsonEdits::cut_nulls(const JsonView& object, std::initializer_list<std::string_view> kept) {
    std::unordered_set<std::string> nulls;
    for (JsonView::Walk walk = object.walk(); walk.next();) {
        if (walk.value().is_null())
            nulls.insert(name_of(walk));
        else if (!nulls.empty())
            nulls.erase(name_of(walk));
    }
    for (std::string_view name : kept) nulls.erase(std::string(name));
    if (!nulls.empty()) cut(object, [&](const JsonView::Walk& walk, size_t) { return nulls.count(name_of(walk)) > 0; });
}

void JsonEdits::insert(const JsonView& object, std::string_view key, std::string_view value) {
    const size_t at = offset(object.text()) + 1;
    add(at, at, "\"" + std::string(key) + "\":" + std::string(value) + ",");
}

void JsonEdits::set(std::string_view key, std::string value) {
    drop(key);
    added_.emplace_back(key, std::move(value));
}

Result<std::string> JsonEdits::applied() {
    if (!dropped_.empty()) {
        const JsonView object(text_);
        bool kept = false;
        cut(object, [&](const JsonView::Walk& walk, size_t) {
            const bool dropped = dropped_.count(name_of(walk)) > 0;
            kept = kept || !dropped;
            return dropped;
        });
        std::string members;
        for (const auto& [key, value] : added_) {
            members += (kept ? ",\"" : "\"") + key + "\":" + value;
            kept = true;
        }
        if (!members.empty()) add(text_.size() - 1, text_.size() - 1, std::move(members));
    }
    if (too_many_)
        return Error{ErrorCode::usage, "request body",
                     "at most " + std::to_string(kMostEdits) + " fields that are null", "more", "leave them out"};
    // what is put in stands before what is taken out at the same place
    std::sort(edits_.begin(), edits_.end(), [](const Edit& a, const Edit& b) {
        if (a.begin != b.begin) return a.begin < b.begin;
        const bool a_puts = a.begin == a.end, b_puts = b.begin == b.end;
        return a_puts != b_puts ? a_puts : a.end > b.end;
    });
    std::string result;
    result.reserve(text_.size() + 256);
    size_t at = 0;
    for (const Edit& edit : edits_) {
        if (edit.begin < at) continue;
        result.append(text_.substr(at, edit.begin - at)).append(edit.with);
        at = edit.end;
    }
    result.append(text_.substr(at));
    return result;
}

std::string json_quoted(std::string_view text) {
    return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace onebit
