#include "engine/route_choice.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>
#include <optional>

namespace onebit {
namespace {

struct Request {
    uint32_t prompt, generate;
};
constexpr Request kRequests[] = {{128, 128}, {512, 128}, {2048, 128}, {2048, 512}, {8192, 128}};
constexpr size_t kNone = SIZE_MAX;

size_t member_of(const RouteTable& table, const std::string& name) {
    const auto found = std::find(table.members.begin(), table.members.end(), name);
    return found == table.members.end() ? kNone : static_cast<size_t>(found - table.members.begin());
}

// The value at x of straight lines through points sorted by x; before the first and behind the last, the nearest line
// goes on, but never falls behind the last.
double on_lines(const std::vector<std::pair<double, double>>& points, double x) {
    if (points.size() == 1) return points.front().second;
    size_t next = 1;
    while (next + 1 < points.size() && points[next].first < x) next++;
    const auto& [x0, y0] = points[next - 1];
    const auto& [x1, y1] = points[next];
    const double slope = (y1 - y0) / (x1 - x0);
    if (x > x1) return y1 + std::max(slope, 0.0) * (x - x1);
    return y0 + slope * (x - x0);
}

// Seconds of graphs, by member, size and depth.
class Times {
public:
    explicit Times(const RouteTable& table) : ubatch_(table.ubatch), members_(table.members.size()) {
        std::map<uint32_t, std::map<uint32_t, const RouteCell*>> rows;
        for (const RouteCell& cell : table.cells) rows[cell.depth][cell.ubatch] = &cell;
        for (const auto& [depth, cells] : rows) {
            // a depth whose two ends are missing says nothing of what lies between
            if (cells.begin()->first != 1 || cells.rbegin()->first != table.ubatch) continue;
            depths_.push_back(depth);
            auto& lines = lines_.emplace_back(members_);
            for (const auto& [size, cell] : cells)
                for (size_t m = 0; m < members_; m++) lines[m].emplace_back(size, size / cell->tokens_per_second[m]);
        }
    }

    bool enough() const { return !depths_.empty() && depths_.front() == 0; }
    const std::vector<uint32_t>& depths() const { return depths_; }
    size_t members() const { return members_; }
    uint32_t ubatch() const { return ubatch_; }

    double graph(size_t member, uint32_t size, uint32_t depth) const {
        std::vector<std::pair<double, double>> points;
        for (size_t i = 0; i < depths_.size(); i++) points.emplace_back(depths_[i], on_lines(lines_[i][member], size));
        return on_lines(points, depth);
    }
    double at_measured_depth(size_t member, uint32_t size, size_t row) const {
        return on_lines(lines_[row][member], size);
    }

    // Sizes that some usable row has, ascending.
    std::vector<uint32_t> sizes() const {
        std::vector<uint32_t> all;
        for (const auto& row : lines_)
            for (const auto& [size, seconds] : row.front()) all.push_back(static_cast<uint32_t>(size));
        std::sort(all.begin(), all.end());
        all.erase(std::unique(all.begin(), all.end()), all.end());
        return all;
    }

private:
    uint32_t ubatch_;
    size_t members_;
    std::vector<uint32_t> depths_;
    std::vector<std::vector<std::vector<std::pair<double, double>>>> lines_;  // by depth, by member
};

// A split as numbers; prefill == decode: one device.
struct Split {
    size_t prefill = 0, decode = 0;
    uint32_t min_tokens = 0;
    double stretch = 1;  // of the prefill member's times, see the trials
};

double seconds_of(const Times& times, double switch_seconds, const Split& split, const Request& request,
                  uint32_t depth) {
    double seconds = 0;
    size_t last = split.decode;
    for (uint32_t done = 0; done < request.prompt;) {
        const uint32_t size = std::min(times.ubatch(), request.prompt - done);
        const bool prefill = split.min_tokens > 0 && size >= split.min_tokens;
        const size_t member = prefill ? split.prefill : split.decode;
        if (member != last) seconds += switch_seconds;
        seconds += times.graph(member, size, depth + done) * (prefill ? split.stretch : 1);
        last = member;
        done += size;
    }
    if (last != split.decode) seconds += switch_seconds;
    const uint32_t more = request.generate > 0 ? request.generate - 1 : 0;
    return seconds + more * times.graph(split.decode, 1, depth + request.prompt + more / 2);
}

// How much longer the prefill took in a trial than its graphs alone: the worst of the trials of this pair.
double stretch_of(const RouteTable& table, const Times& times, size_t prefill, size_t decode) {
    double worst = 1;
    for (const RouteTrial& trial : table.trials) {
        if (trial.prefill != table.members[prefill] || trial.decode != table.members[decode]) continue;
        const double graphs = seconds_of(times, 0, {prefill, prefill, 0, 1}, {trial.prompt, 0}, 0);
        const double whole =
            seconds_of(times, table.switch_us / 1e6, {prefill, decode, 1, 1}, {trial.prompt, trial.generate}, 0);
        worst = std::max(worst, (trial.seconds - (whole - graphs)) / graphs);
    }
    return worst;
}

// Whether ubatches of this size are better given to the prefill member, there and back counted.
bool wins(const Times& times, double switch_seconds, const Split& split, uint32_t size) {
    double prefill = 0, decode = 0;
    for (size_t row = 0; row < times.depths().size(); row++) {
        const double p = times.at_measured_depth(split.prefill, size, row) * split.stretch + 2 * switch_seconds;
        const double d = times.at_measured_depth(split.decode, size, row);
        if (p > d * (1 + kRouteMargin)) return false;
        prefill += p;
        decode += d;
    }
    return prefill < decode * (1 - kRouteMargin);
}

// The smallest size from which on the prefill member wins at all larger ones; 0 when it does not at the largest.
uint32_t threshold(const Times& times, double switch_seconds, const Split& split) {
    const std::vector<uint32_t> sizes = times.sizes();
    uint32_t least = 0, below = 0;
    for (auto size = sizes.rbegin(); size != sizes.rend(); ++size) {
        below = *size;
        if (*size == 1 || !wins(times, switch_seconds, split, *size)) break;
        least = *size;
    }
    if (least == 0) return 0;
    // between a size that loses and one that wins; a graph of one token stays with decode
    while (below + 1 < least) {
        const uint32_t middle = below + (least - below) / 2;
        (wins(times, switch_seconds, split, middle) ? least : below) = middle;
    }
    return least;
}

std::string percent(double ratio) {
    char text[32];
    std::snprintf(text, sizeof text, "%.0f %%", (ratio - 1) * 100);
    return text;
}

std::string microseconds(double value) {
    char text[32];
    std::snprintf(text, sizeof text, "%.0f us", value);
    return text;
}

// speed: that of one over that of the other.
std::string how_fast(double speed) {
    if (speed < 1) return percent(2 - speed) + " slower than ";
    if (speed < 2) return percent(speed) + " faster than ";
    char text[32];
    std::snprintf(text, sizeof text, "%.1f times as fast as ", speed);
    return text;
}

// "Vulkan0 reads 512 tokens 14 % faster than CUDA0", or slower.
std::string compared(const RouteTable& table, const Times& times, size_t a, size_t b, uint32_t size, double stretch) {
    const double ours = times.graph(a, size, 0) * stretch, theirs = times.graph(b, size, 0);
    return table.members[a] + (size == 1 ? " makes tokens " : " reads " + std::to_string(size) + " tokens ") +
           how_fast(theirs / ours) + table.members[b];
}

std::string costs(const RouteTable& table, const Split& split) {
    return ", a switch costs " + microseconds(table.switch_us) +
           (split.stretch > 1.005 ? ", and prompts took " + percent(split.stretch) + " longer in the trial of both"
                                  : "");
}

RouteChoice choice_of(const RouteTable& table, const Times& times, const Split& split) {
    RouteChoice choice;
    choice.decode = table.members[split.decode];
    choice.prefill = table.members[split.prefill];
    choice.min_tokens = split.min_tokens;
    choice.reason = "prompts of " + std::to_string(split.min_tokens) + " tokens and more on " + choice.prefill +
                    ", all else on " + choice.decode + ": " +
                    compared(table, times, split.prefill, split.decode, table.ubatch, 1) + ", " +
                    compared(table, times, split.decode, split.prefill, 1, 1) + costs(table, split);
    return choice;
}

Split make_split(const RouteTable& table, const Times& times, size_t prefill, size_t decode) {
    Split split{prefill, decode, 0, stretch_of(table, times, prefill, decode)};
    split.min_tokens = threshold(times, table.switch_us / 1e6, split);
    return split;
}

// The threshold alone: both members are named.
RouteChoice choose_threshold(const RouteTable& table, const Times& times, size_t prefill, size_t decode) {
    const Split split = make_split(table, times, prefill, decode);
    if (split.min_tokens > 0) return choice_of(table, times, split);
    return one_device(table.members[decode], table.members[decode] + " for everything: " +
                                                 compared(table, times, prefill, decode, table.ubatch, 1) +
                                                 costs(table, split));
}

RouteChoice choose_freely(const RouteTable& table, const Times& times) {
    const double switch_seconds = table.switch_us / 1e6;
    // the logarithm's mean: each request counts the same, however long it is
    const auto score = [&](const Split& split) {
        double sum = 0;
        for (const Request& request : kRequests) sum += std::log(seconds_of(times, switch_seconds, split, request, 0));
        return std::exp(sum / std::size(kRequests));
    };
    Split alone{0, 0, 0, 1};
    double alone_score = score(alone);
    for (size_t m = 1; m < times.members(); m++) {
        const Split other{m, m, 0, 1};
        const double other_score = score(other);
        // half of the margin: a tie goes to the first member
        if (other_score >= alone_score * (1 - kRouteMargin / 2)) continue;
        alone = other;
        alone_score = other_score;
    }
    if (times.members() == 1) return one_device(table.members[0], table.members[0] + " for everything: the only one");

    // the time of a split over that of the best device alone, in the request that loses most and in the one that gains
    // most
    const auto against_one_device = [&](const Split& split) {
        double worst = 0, best = INFINITY;
        for (const Request& request : kRequests) {
            double least = INFINITY;
            for (size_t m = 0; m < times.members(); m++)
                least = std::min(least, seconds_of(times, switch_seconds, {m, m, 0, 1}, request, 0));
            const double ratio = seconds_of(times, switch_seconds, split, request, 0) / least;
            worst = std::max(worst, ratio);
            best = std::min(best, ratio);
        }
        return std::pair{worst, best};
    };
    std::optional<Split> best, too_little;
    double best_score = alone_score;
    for (size_t prefill = 0; prefill < times.members(); prefill++) {
        for (size_t decode = 0; decode < times.members(); decode++) {
            if (prefill == decode) continue;
            const Split split = make_split(table, times, prefill, decode);
            if (split.min_tokens == 0) continue;
            const auto [worst_ratio, best_ratio] = against_one_device(split);
            const double split_score = score(split);
            if (worst_ratio > 1 + kRouteMargin || split_score >= best_score) continue;
            if (best_ratio > 1 - kRouteMargin) {
                too_little = split;
                continue;
            }
            best = split;
            best_score = split_score;
        }
    }
    if (best) return choice_of(table, times, *best);
    const std::string& device = table.members[alone.decode];
    std::string reason = device + " for everything: ";
    if (too_little)
        return one_device(device, reason + "prompts on " + table.members[too_little->prefill] + " and tokens on " +
                                      table.members[too_little->decode] + " would gain less than " +
                                      percent(1 + kRouteMargin) + " in every request" + costs(table, *too_little));
    for (size_t m = 0; m < times.members(); m++) {
        if (m == alone.decode) continue;
        const Split split{m, alone.decode, 0, stretch_of(table, times, m, alone.decode)};
        reason += compared(table, times, m, alone.decode, table.ubatch, 1) + ", " +
                  compared(table, times, m, alone.decode, 1, 1) + costs(table, split);
        break;
    }
    return one_device(device, reason);
}

}  // namespace

RouteChoice one_device(std::string device, std::string reason) {
    RouteChoice choice;
    choice.decode = choice.prefill = std::move(device);
    choice.reason = std::move(reason);
    return choice;
}

Result<RouteChoice> choose_route(const RouteTable& table, const RouteWish& wish) {
    const Times times(table);
    if (!times.enough())
        return Error{ErrorCode::not_found, "measured route", "1 token and a whole ubatch at depth 0 on each member",
                     std::to_string(table.cells.size()) + " measurements without them", "see 1bit tune"};
    const auto known = [&](const std::string& name) { return name.empty() || member_of(table, name) != kNone; };
    for (const std::string& name : {wish.decode, wish.prefill})
        if (!known(name))
            return Error{ErrorCode::not_found, "device " + name, "a member that was measured", "none of that name",
                         "see 1bit tune"};
    if (wish.decode.empty()) return choose_freely(table, times);
    if (wish.prefill.empty() || wish.prefill == wish.decode)
        return one_device(wish.decode, wish.decode + " for everything: it is the one that was named");
    return choose_threshold(table, times, member_of(table, wish.prefill), member_of(table, wish.decode));
}

double expected_seconds(const RouteTable& table, const RouteChoice& choice, uint32_t prompt, uint32_t generate,
                        uint32_t depth) {
    const Times times(table);
    const size_t prefill = member_of(table, choice.prefill), decode = member_of(table, choice.decode);
    if (!times.enough() || prefill == kNone || decode == kNone) return 0;
    const double stretch = choice.split() ? stretch_of(table, times, prefill, decode) : 1;
    return seconds_of(times, table.switch_us / 1e6, {prefill, decode, choice.min_tokens, stretch}, {prompt, generate},
                      depth);
}

std::vector<uint32_t> route_sizes(uint32_t ubatch) {
    std::vector<uint32_t> sizes = {1};
    for (uint64_t size = 8; size < ubatch; size *= 4) sizes.push_back(static_cast<uint32_t>(size));
    if (ubatch > 1) sizes.push_back(ubatch);
    return sizes;
}

std::vector<uint32_t> route_depths(uint32_t context, uint32_t batch) {
    std::vector<uint32_t> depths = {0};
    for (const uint32_t depth : {2048u, 8192u})
        if (uint64_t{depth} + batch <= context) depths.push_back(depth);
    return depths;
}

}  // namespace onebit
