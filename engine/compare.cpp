#include "engine/compare.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

namespace onebit {
namespace {

struct Scan {
    double log_sum = 0;  // ln of the sum of exp(logit)
    size_t best = 0;
    float first = -INFINITY, second = -INFINITY;
    bool finite = true;
};

Scan scan(std::span<const float> logits) {
    Scan result;
    for (size_t i = 0; i < logits.size(); i++) {
        const float value = logits[i];
        // minus infinity is a token that cannot come: models do that
        if (std::isnan(value) || value == INFINITY) result.finite = false;
        if (value > result.first) {
            result.second = result.first;
            result.first = value;
            result.best = i;
        } else if (value > result.second) {
            result.second = value;
        }
    }
    if (!std::isfinite(result.first)) result.finite = false;
    if (!result.finite) return result;
    double sum = 0;
    for (const float value : logits) sum += std::exp(static_cast<double>(value) - result.first);
    result.log_sum = result.first + std::log(sum);
    return result;
}

std::string number(double value) {
    char text[32];
    std::snprintf(text, sizeof text, "%.4g", value);
    return text;
}

double quantile(const std::vector<double>& sorted, double part) {
    const double place = part * static_cast<double>(sorted.size() - 1);
    const auto below = static_cast<size_t>(place);
    const size_t above = std::min(below + 1, sorted.size() - 1);
    return sorted[below] + (sorted[above] - sorted[below]) * (place - static_cast<double>(below));
}

}  // namespace

TokenComparison compare_logits(std::span<const float> reference, std::span<const float> tested, size_t next,
                               double tie_margin) {
    TokenComparison result;
    if (reference.empty() || reference.size() != tested.size() || next >= reference.size()) return result;
    const Scan p = scan(reference), q = scan(tested);
    if (!p.finite || !q.finite) return result;
    result.finite = true;
    for (size_t i = 0; i < reference.size(); i++) {
        const double log_p = reference[i] - p.log_sum;
        const double probability = std::exp(log_p);
        if (probability == 0) continue;
        result.kl += probability * (log_p - (tested[i] - q.log_sum));
    }
    result.kl = std::max(result.kl, 0.0);  // rounding may leave -1e-17
    result.nll_reference = p.log_sum - reference[next];
    result.nll_tested = q.log_sum - tested[next];
    result.tie = static_cast<double>(p.first) - p.second < tie_margin;
    result.same_top = p.best == q.best;
    return result;
}

void ComparisonSum::add(const TokenComparison& token) {
    tokens_++;
    if (!token.finite) {
        not_finite_++;
        return;
    }
    kl_ += token.kl;
    max_kl_ = std::max(max_kl_, token.kl);
    nll_reference_ += token.nll_reference;
    nll_tested_ += token.nll_tested;
    if (token.tie) {
        ties_++;
    } else if (token.same_top) {
        same_++;
    }
}

Comparison ComparisonSum::result() const {
    Comparison result;
    result.tokens = tokens_;
    result.not_finite = not_finite_;
    result.ties = ties_;
    const uint64_t good = tokens_ - not_finite_;
    if (good == 0) return result;
    const auto count = static_cast<double>(good);
    result.mean_kl = kl_ / count;
    result.max_kl = max_kl_;
    result.perplexity_reference = std::exp(nll_reference_ / count);
    result.perplexity = std::exp(nll_tested_ / count);
    if (good > ties_) result.top1_agreement = static_cast<double>(same_) / static_cast<double>(good - ties_);
    return result;
}

std::vector<std::string> faults(const Comparison& comparison, const ComparisonLimits& limits) {
    std::vector<std::string> found;
    if (comparison.tokens == 0) found.push_back("no token was compared");
    if (comparison.not_finite != 0) {
        found.push_back(std::to_string(comparison.not_finite) + " of " + std::to_string(comparison.tokens) +
                        " positions have logits that are no numbers");
    }
    if (comparison.not_finite == comparison.tokens) return found;
    // written so that a NaN is a fault
    if (!(comparison.mean_kl <= limits.mean_kl)) {
        found.push_back("mean KL " + number(comparison.mean_kl) + " is above " + number(limits.mean_kl));
    }
    if (!(comparison.top1_agreement >= limits.top1_agreement)) {
        found.push_back("top-1 agreement " + number(comparison.top1_agreement) + " is below " +
                        number(limits.top1_agreement));
    }
    if (!(std::abs(comparison.perplexity_ratio() - 1) <= limits.perplexity)) {
        found.push_back("perplexity " + number(comparison.perplexity) + " is not within " +
                        number(limits.perplexity * 100) + " % of " + number(comparison.perplexity_reference));
    }
    return found;
}

Spread spread_of(std::vector<double> values) {
    Spread spread;
    if (values.empty()) return spread;
    std::sort(values.begin(), values.end());
    spread.count = values.size();
    spread.median = quantile(values, 0.5);
    spread.lower_quartile = quantile(values, 0.25);
    spread.upper_quartile = quantile(values, 0.75);
    spread.least = values.front();
    spread.most = values.back();
    return spread;
}

}  // namespace onebit
