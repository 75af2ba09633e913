#include "engine/route_meter.h"

#include <algorithm>
#include <optional>

#include "engine/devices.h"
#include "ggml-backend.h"
#include "tandem/forced_member.h"

namespace onebit {
namespace {

// Of one sample of size 1. Before them a new graph is built, tried and captured: that is not what a token costs.
constexpr uint32_t kSingleTokens = 4, kSingleWarmUp = 3;
constexpr uint32_t kSwitches = 12, kWarmUp = 4;
constexpr size_t kTrials = 3;  // at most

double seconds_between(std::chrono::steady_clock::time_point a, std::chrono::steady_clock::time_point b) {
    return std::chrono::duration<double>(b - a).count();
}

double median(std::vector<double> values) {
    if (values.empty()) return 0;
    std::sort(values.begin(), values.end());
    const size_t middle = values.size() / 2;
    return values.size() % 2 != 0 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

}  // namespace

uint32_t ubatches_at_once(const std::vector<std::string>& members, uint32_t most) {
    const bool any = std::any_of(members.begin(), members.end(), [](const std::string& member) {
        const ggml_backend_dev_t device = ggml_backend_dev_by_name(member.c_str());
        if (device == nullptr || is_software_vulkan(ggml_backend_dev_description(device))) return false;
        const auto type = ggml_backend_dev_type(device);
        return type == GGML_BACKEND_DEVICE_TYPE_GPU || type == GGML_BACKEND_DEVICE_TYPE_IGPU;
    });
    return any ? most : 1;
}

bool RouteMeter::done(const Samples& samples) const {
    return samples.warm &&
           (samples.seconds.size() >= plan_.rounds ||
            (!samples.seconds.empty() && samples.total >= std::chrono::duration<double>(plan_.cell_time).count()));
}

// Whether the run ends before a graph that will take about so long.
bool RouteMeter::ended(double expected_seconds) {
    if (end_ != End::finished) return true;
    if ((*stop_)()) {
        end_ = End::stopped;
    } else if (until_ != Clock::time_point::max() && seconds_between(Clock::now(), until_) < expected_seconds) {
        end_ = End::out_of_time;
    }
    return end_ != End::finished;
}

double RouteMeter::rate(const Cell& cell, size_t member) const {
    const auto found = cells_.find(cell);
    if (found == cells_.end() || found->second[member].seconds.empty()) return 0;
    const double seconds = median(found->second[member].seconds);
    return seconds > 0 ? cell.second / seconds : 0;
}

// Seconds of a graph of that size on the slowest member, by the nearest size that was measured; 0 when none was.
double RouteMeter::guess(uint32_t size) const {
    uint32_t nearest = 0;
    double longest = 0;
    for (const auto& [cell, members] : cells_) {
        double most = 0;
        for (const Samples& samples : members)
            for (const double seconds : samples.seconds) most = std::max(most, seconds);
        if (most == 0) continue;
        const bool nearer =
            nearest == 0 || (nearest < size && cell.second > nearest) || (cell.second >= size && cell.second < nearest);
        if (nearer) longest = 0;
        if (nearer) nearest = cell.second;
        if (cell.second == nearest) longest = std::max(longest, most);
    }
    return nearest >= size || nearest == 0 ? longest : longest * size / nearest;
}

// One batch behind what was read; its last token's logits are made, as in a prompt.
Result<void> RouteMeter::read(uint32_t tokens) {
    llama_batch batch = llama_batch_init(static_cast<int32_t>(tokens), 0, 1);
    batch.n_tokens = static_cast<int32_t>(tokens);
    for (uint32_t i = 0; i < tokens; i++) {
        batch.token[i] = (*tokens_)[(position_ + i) % tokens_->size()];
        batch.pos[i] = static_cast<llama_pos>(position_ + i);
        batch.n_seq_id[i] = 1;
        batch.seq_id[i][0] = 0;
        batch.logits[i] = i + 1 == tokens ? 1 : 0;
    }
    const int result = llama_decode(context_, batch);
    llama_batch_free(batch);
    llama_synchronize(context_);
    position_ += tokens;
    if (result == 0) return {};
    return Error{ErrorCode::internal, "measuring a batch of " + std::to_string(tokens) + " tokens",
                 "llama_decode to succeed", "code " + std::to_string(result), "--verbose shows llama.cpp's own lines"};
}

// Seconds of one batch on that member.
Result<double> RouteMeter::graphs(size_t member, uint32_t tokens) {
    std::optional<tandem::ForcedMember> forced;
    if (plan_.members.size() > 1) forced.emplace(member);
    const auto start = Clock::now();
    ONEBIT_RETURN_IF_ERROR(read(tokens));
    return seconds_between(start, Clock::now());
}

Result<void> RouteMeter::fill(uint32_t depth) {
    llama_memory_clear(llama_get_memory(context_), false);
    position_ = 0;
    // the member that has read whole ubatches fastest
    size_t fastest = 0;
    for (size_t m = 1; m < plan_.members.size(); m++)
        if (rate({0, plan_.ubatch}, m) > rate({0, plan_.ubatch}, fastest)) fastest = m;
    while (position_ < depth && !ended(guess(plan_.ubatch))) {
        auto read = graphs(fastest, std::min(plan_.ubatch, depth - position_));
        if (!read) return std::move(read).error();
    }
    return {};
}

// Recurrent models cannot drop a part of what they have read: those read it again.
Result<void> RouteMeter::rewind(uint32_t depth) {
    if (depth > 0 && llama_memory_seq_rm(llama_get_memory(context_), 0, static_cast<llama_pos>(depth), -1)) {
        position_ = depth;
        return {};
    }
    return fill(depth);
}

Result<void> RouteMeter::sample(uint32_t depth, uint32_t size, size_t member) {
    Samples& samples = cells_.at({depth, size})[member];
    // ubatches behind each other overlap on a GPU; tokens cannot
    const uint32_t at_once = size == plan_.ubatch && size > 1 ? plan_.ubatches_at_once : 1;
    const uint32_t batches = size == 1 ? kSingleTokens : 1, warm_up = size == 1 ? kSingleWarmUp : 0;
    if (ended(guess(size) * (warm_up + batches) * at_once)) return {};
    double total = 0;
    for (uint32_t i = 0; i < warm_up + batches; i++) {
        auto seconds = graphs(member, size * at_once);
        if (!seconds) return std::move(seconds).error();
        if (i >= warm_up) total += *seconds;
    }
    // the first one compiles kernels and warms caches up
    if (samples.warm) samples.seconds.push_back(total / (batches * at_once));
    if (samples.warm) samples.total += total;
    samples.warm = true;
    return rewind(depth);
}

Result<void> RouteMeter::measure_depth(uint32_t depth) {
    // both ends before what lies between, so that a run that ends early has what a choice needs
    std::vector<uint32_t> sizes = plan_.sizes;
    std::sort(sizes.begin(), sizes.end());
    if (sizes.size() > 1) std::swap(sizes[1], sizes.back());
    bool filled = false;
    for (uint32_t part = 0; part < 2; part++) {
        // what the ends of depth 0 say is of no use without the cost of a switch
        if (part == 1 && depth == 0) ONEBIT_RETURN_IF_ERROR(measure_switch());
        if (end_ != End::finished) return {};
        const size_t begin = part == 0 ? 0 : 2, end = part == 0 ? std::min<size_t>(2, sizes.size()) : sizes.size();
        for (uint32_t round = 0; round <= plan_.rounds; round++) {
            for (size_t turn = 0; turn < plan_.members.size(); turn++) {
                // A B, then B A: what drifts hits both
                const size_t member = round % 2 == 0 ? turn : plan_.members.size() - 1 - turn;
                for (size_t i = begin; i < end; i++) {
                    auto& samples = cells_[{depth, sizes[i]}];
                    samples.resize(plan_.members.size());
                    if (done(samples[member])) continue;
                    if (!filled) ONEBIT_RETURN_IF_ERROR(fill(depth));
                    filled = true;
                    ONEBIT_RETURN_IF_ERROR(sample(depth, sizes[i], member));
                    if (end_ != End::finished) return {};
                }
            }
        }
    }
    return {};
}

// Tokens on two members by turns, against tokens on each alone.
Result<void> RouteMeter::measure_switch() {
    if (switch_seconds_ || plan_.members.size() < 2) return {};
    ONEBIT_RETURN_IF_ERROR(fill(0));
    std::vector<double> turns[2], alone[2];
    for (const bool switching : {true, false}) {
        for (uint32_t i = 0; i < 2 * kSwitches; i++) {
            if (ended(guess(1))) return {};
            const size_t member = switching ? i % 2 : i / kSwitches;
            auto seconds = graphs(member, 1);
            if (!seconds) return std::move(seconds).error();
            const bool warms_up = (switching ? i : i % kSwitches) < kWarmUp;
            if (!warms_up) (switching ? turns : alone)[member].push_back(*seconds);
        }
    }
    double seconds = 0;
    for (const size_t member : {0, 1}) seconds += (median(turns[member]) - median(alone[member])) / 2;
    switch_seconds_ = std::max(seconds, 0.0);
    return fill(0);
}

Result<void> RouteMeter::measure_trial(size_t prefill, size_t decode) {
    std::vector<double>& times = trials_[{prefill, decode}];
    while (times.size() < std::min<size_t>(plan_.rounds, kTrials)) {
        ONEBIT_RETURN_IF_ERROR(fill(0));
        // the tokens only make it a change of phase: in the sum their spread would hide what the prompt takes
        double total = 0;
        for (uint32_t i = 0; i < plan_.trial_tokens; i++) {
            if (ended(guess(1))) return {};
            auto seconds = graphs(decode, 1);
            if (!seconds) return std::move(seconds).error();
        }
        for (uint32_t done = 0; done < plan_.trial_ubatches;) {
            const uint32_t at_once = std::min(plan_.ubatches_at_once, plan_.trial_ubatches - done);
            if (ended(guess(plan_.ubatch) * at_once)) return {};
            auto seconds = graphs(prefill, plan_.ubatch * at_once);
            if (!seconds) return std::move(seconds).error();
            total += *seconds;
            done += at_once;
        }
        times.push_back(total);
    }
    return {};
}

Result<RouteMeter::End> RouteMeter::run(llama_context* context, const std::vector<llama_token>& tokens,
                                        const std::function<bool()>& stop, Clock::time_point until) {
    context_ = context;
    tokens_ = &tokens;
    stop_ = &stop;
    until_ = until;
    end_ = End::finished;
    const auto steps = [&]() -> Result<void> {
        for (const uint32_t depth : plan_.depths) {
            if (plan_.progress) plan_.progress("behind " + std::to_string(depth) + " tokens");
            ONEBIT_RETURN_IF_ERROR(measure_depth(depth));
            for (const auto& [prefill, decode] : plan_.trials) {
                if (depth > 0 || end_ != End::finished) break;
                if (plan_.progress)
                    plan_.progress("prompts on " + plan_.members[prefill] + ", tokens on " + plan_.members[decode]);
                ONEBIT_RETURN_IF_ERROR(measure_trial(prefill, decode));
            }
            if (end_ != End::finished) return {};
        }
        return {};
    };
    const auto measured = steps();
    llama_memory_clear(llama_get_memory(context_), false);
    if (!measured) return measured.error();
    return end_;
}

RouteTable RouteMeter::table() const {
    RouteTable table;
    table.members = plan_.members;
    table.ubatch = plan_.ubatch;
    if (plan_.members.size() > 1 && !switch_seconds_) return table;
    table.switch_us = switch_seconds_.value_or(0) * 1e6;
    for (const auto& [cell, members] : cells_) {
        RouteCell row{cell.second, cell.first, {}};
        for (size_t m = 0; m < members.size(); m++) row.tokens_per_second.push_back(rate(cell, m));
        if (std::all_of(row.tokens_per_second.begin(), row.tokens_per_second.end(), [](double r) { return r > 0; }))
            table.cells.push_back(std::move(row));
    }
    for (const auto& [pair, times] : trials_)
        if (!times.empty())
            table.trials.push_back({plan_.members[pair.first], plan_.members[pair.second],
                                    plan_.trial_ubatches * plan_.ubatch, 0, median(times)});
    return table;
}

}  // namespace onebit
