// Whether a device computes the same as the reference: from the logits of the same tokens, by pure functions.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace onebit {

// One position of a text, both devices having seen the same tokens before it. Natural logarithms throughout.
struct TokenComparison {
    bool finite = false;       // no NaN and no +infinity on either side; if false, nothing below is set
    double kl = 0;             // sum of p ln(p/q), p the reference's distribution; 0 or more
    double nll_reference = 0;  // -ln p(next token)
    double nll_tested = 0;
    bool tie = false;       // the reference's two best logits are closer than the margin: either is right
    bool same_top = false;  // both put the same token first
};

// reference, tested: one logit per token of the vocabulary, of equal length, at least 1; anything else is not finite.
// next: the token that follows in the text, an index into them. tie_margin: in logits.
TokenComparison compare_logits(std::span<const float> reference, std::span<const float> tested, size_t next,
                               double tie_margin);

struct Comparison {
    uint64_t tokens = 0, not_finite = 0, ties = 0;
    double mean_kl = 0, max_kl = 0;
    double top1_agreement = 1;  // of the positions that are no tie; 1 when all are
    double perplexity_reference = 0, perplexity = 0;
    double perplexity_ratio() const { return perplexity_reference > 0 ? perplexity / perplexity_reference : 0; }
};

class ComparisonSum {
public:
    void add(const TokenComparison& token);
    Comparison result() const;

private:
    uint64_t tokens_ = 0, not_finite_ = 0, ties_ = 0, same_ = 0;
    double kl_ = 0, max_kl_ = 0, nll_reference_ = 0, nll_tested_ = 0;
};

struct ComparisonLimits {
    double mean_kl = 0.02;
    double top1_agreement = 0.98;
    double perplexity = 0.01;  // of the reference's, to either side
    double tie_margin = 0.25;
};

// What is wrong, each with the number and its limit; empty when all is right. No token compared is wrong too.
std::vector<std::string> faults(const Comparison& comparison, const ComparisonLimits& limits);

// Median, quartiles (interpolated between neighbours) and extremes of measured values. All 0 for none.
struct Spread {
    size_t count = 0;
    double median = 0, lower_quartile = 0, upper_quartile = 0, least = 0, most = 0;
};
Spread spread_of(std::vector<double> values);

}  // namespace onebit
