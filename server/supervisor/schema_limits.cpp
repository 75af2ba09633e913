#include "server/supervisor/schema_limits.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>

namespace onebit {
namespace {

using nlohmann::json;

constexpr size_t kMostRules = 20'000;
constexpr size_t kMostAllNames = 8u << 20;
constexpr size_t kMostAllRepetitions = 200'000;
constexpr size_t kMostCopies = 5'000'000;
constexpr int64_t kLeast = std::numeric_limits<int64_t>::min(), kMost = std::numeric_limits<int64_t>::max();
constexpr int64_t kFifteenDigits = 999'999'999'999'999;

Error wrong(std::string path, std::string expected, std::string found, std::string remedy = {}) {
    return {ErrorCode::usage, std::move(path), std::move(expected), std::move(found), std::move(remedy)};
}

Error too_many(const std::string& path, const std::string& what) {
    return wrong(path, "at most " + what + " in all schemas of the request", "more", "make the schemas smaller");
}

// A bound as the engine rounds it; nothing when it does not fit.
std::optional<int64_t> rounded(const json& value, bool up) {
    if (value.is_number_unsigned() && value.get<uint64_t>() > static_cast<uint64_t>(kMost)) return {};
    if (value.is_number_integer()) return value.get<int64_t>();
    const double d = up ? std::ceil(value.get<double>()) : std::floor(value.get<double>());
    if (!(std::fabs(d) < 9.2e18)) return {};
    return static_cast<int64_t>(d);
}

}  // namespace

Result<void> SchemaTotals::rule(const std::string& path) {
    name_bytes_ += path.size();
    if (++rules_ > kMostRules) return too_many(path, "20000 schemas");
    if (name_bytes_ > kMostAllNames) return too_many(path, "8 MiB of names of properties");
    return {};
}

Result<void> SchemaTotals::repetitions(size_t n, const std::string& path) {
    repetitions_ += n;
    if (repetitions_ > kMostAllRepetitions) return too_many(path, "200000 repetitions");
    return {};
}

Result<void> SchemaTotals::pattern(const std::string& path) {
    copies_ += rules_;
    if (copies_ > kMostCopies) return too_many(path, "5000000 patterns times schemas");
    return {};
}

Result<void> check_counts(const json& schema, const char* least_key, const char* most_key, const std::string& path,
                          SchemaTotals& totals) {
    int64_t counts[2] = {0, std::numeric_limits<int32_t>::max()};
    const char* const keys[2] = {least_key, most_key};
    for (int i = 0; i < 2; i++) {
        const auto value = schema.find(keys[i]);
        if (value == schema.end()) continue;
        const bool whole = value->is_number_integer() && value->get<double>() >= 0 &&
                           value->get<double>() <= std::numeric_limits<int32_t>::max();
        if (!whole)
            return wrong(path + "." + keys[i], "a whole number from 0 to 2147483647",
                         value->is_number() ? "another number" : "no number");
        counts[i] = value->get<int64_t>();
    }
    if (counts[0] > counts[1]) return wrong(path + "." + keys[0], std::string("at most ") + keys[1], "more");
    // above 2000 the engine takes no limit for a most, and refuses a least
    return totals.repetitions(
        static_cast<size_t>(std::max(std::min<int64_t>(counts[0], 2000), counts[1] <= 2000 ? counts[1] : 1)), path);
}

Result<void> check_bounds(const json& schema, const std::string& path) {
    int64_t bounds[2] = {kLeast, kMost};
    const char* const keys[2][2] = {{"minimum", "exclusiveMinimum"}, {"maximum", "exclusiveMaximum"}};
    std::string named[2] = {path + ".minimum", path + ".maximum"};
    for (int i = 0; i < 2; i++) {
        for (int exclusive = 0; exclusive < 2; exclusive++) {
            const auto value = schema.find(keys[i][exclusive]);
            if (value == schema.end()) continue;
            named[i] = path + "." + keys[i][exclusive];
            if (!value->is_number()) break;  // the engine says so
            const auto bound = rounded(*value, (i == 0) != (exclusive == 1));
            const int64_t step = exclusive == 0 ? 0 : i == 0 ? 1 : -1;
            const bool ends = bound && (*bound == kLeast || *bound == kMost);
            // an end of the range of 64 bits itself is no bound
            if (!bound || (ends && step != 0) || *bound == kLeast + 1)
                return wrong(named[i], "a number that fits into 64 bits", "another");
            bounds[i] = *bound + step;
            break;
        }
    }
    const auto [least, most] = bounds;
    if (least > most) return wrong(named[0], "at most the maximum", "more");
    const bool alone[2] = {most == kMost && least > kFifteenDigits, least == kLeast && most < -kFifteenDigits};
    for (int i = 0; i < 2; i++)
        if (alone[i])
            return wrong(named[i], "at most 15 digits, or a minimum and a maximum", "more digits alone",
                         "give the other bound too");
    return {};
}

}  // namespace onebit
