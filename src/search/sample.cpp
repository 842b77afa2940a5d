// SPDX-License-Identifier: Apache-2.0

#include "search/sample.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>

namespace muster {
namespace {

/// Below `upper`, which rounding may have reached, and not below `lower`.
double within(double drawn, double lower, double upper) {
    return std::max(lower, std::min(drawn, std::nextafter(upper, lower)));
}

/// In [lower, upper), uniformly.
double uniform(double lower, double upper, RandomStream& random) {
    const double share = random.uniform();
    // upper - lower may be more than a double holds; the weighted sum is not.
    const double span = upper - lower;
    const double drawn =
        std::isfinite(span) ? lower + share * span : lower * (1 - share) + upper * share;
    return within(drawn, lower, upper);
}

/// In [lower, upper), uniformly in the logarithm. REQUIRES: 0 < lower.
double log_uniform(double lower, double upper, RandomStream& random) {
    // log1p and expm1 keep the digits of a narrow range; a very wide one would overflow there.
    constexpr double kNarrow = 30;
    const double share = random.uniform();
    const double span = std::log1p((upper - lower) / lower);
    if (span < kNarrow) {
        return within(lower + lower * std::expm1(share * span), lower, upper);
    }
    const double first = std::log(lower);
    return within(std::exp(first + share * (std::log(upper) - first)), lower, upper);
}

/// The whole number nearest to `count`, within [least, most].
std::int64_t nearest_within(double count, std::int64_t least, std::int64_t most) {
    // Both comparisons come before the cast: `most` as a double may be 2^63, which does not fit.
    if (!(count > static_cast<double>(least))) {
        return least;
    }
    if (count >= static_cast<double>(most)) {
        return most;
    }
    return static_cast<std::int64_t>(count);
}

/// One of the numbers least … most, each as likely. Unsigned, since their count may need 64 bits.
std::int64_t one_of_range(std::int64_t least, std::int64_t most, RandomStream& random) {
    const auto first = static_cast<std::uint64_t>(least);
    const std::uint64_t count = static_cast<std::uint64_t>(most) - first + 1;
    // 0 stands for 2^64 of them.
    const std::uint64_t drawn = count == 0 ? random() : random.below(count);
    return static_cast<std::int64_t>(first + drawn);
}

/// The number of a multiple between first and last, by its share of the logarithm. `q` times what
/// is returned may be rounded; the number itself is exact.
std::int64_t log_multiple(std::int64_t first, std::int64_t last, RandomStream& random) {
    const double drawn =
        log_uniform(static_cast<double>(first) - 0.5, static_cast<double>(last) + 0.5, random);
    return nearest_within(std::floor(drawn + 0.5), first, last);
}

double sample_multiple(const RealDomain& domain, RandomStream& random) {
    const auto first = static_cast<std::int64_t>(std::llround(domain.lower / domain.q));
    const auto last = static_cast<std::int64_t>(std::llround(domain.upper / domain.q));
    const std::int64_t drawn =
        domain.log ? log_multiple(first, last, random) : one_of_range(first, last, random);
    // The ends are what was written, to the last bit.
    if (drawn == first) {
        return domain.lower;
    }
    return drawn == last ? domain.upper : multiple(drawn, domain.q);
}

}  // namespace

RandomStream stream_for(std::uint64_t seed, std::uint64_t trial, std::string_view key) {
    return RandomStream::derive(seed, key, trial);
}

double multiple(std::int64_t count, double q) {
    // When q is a decimal number, q = n / 10^d, then count * n / 10^d is rounded once only.
    constexpr double kExact = 0x1p53;
    double scale = 1;
    for (int digits = 0; digits <= 15; ++digits) {
        const double numerator = std::round(q * scale);
        const double product = numerator * static_cast<double>(count);
        if (std::fabs(product) > kExact) {
            break;
        }
        if (numerator / scale == q) {
            return product / scale;
        }
        scale *= 10;
    }
    return static_cast<double>(count) * q;
}

double sample(const RealDomain& domain, RandomStream& random) {
    if (domain.q > 0) {
        return sample_multiple(domain, random);
    }
    return domain.log ? log_uniform(domain.lower, domain.upper, random)
                      : uniform(domain.lower, domain.upper, random);
}

std::int64_t sample(const IntDomain& domain, RandomStream& random) {
    if (domain.q > 0) {
        const std::int64_t first = domain.lower / domain.q;
        const std::int64_t last = domain.upper / domain.q;
        const std::int64_t drawn =
            domain.log ? log_multiple(first, last, random) : one_of_range(first, last, random);
        return drawn * domain.q;
    }
    if (!domain.log) {
        return one_of_range(domain.lower, domain.upper - 1, random);
    }
    const double drawn =
        log_uniform(static_cast<double>(domain.lower), static_cast<double>(domain.upper), random);
    return nearest_within(std::floor(drawn), domain.lower, domain.upper - 1);
}

double sample(const NormalDomain& domain, RandomStream& random) {
    const double drawn = domain.mean + domain.sd * random.normal();
    if (domain.q == 0) {
        return drawn;
    }
    return multiple(static_cast<std::int64_t>(std::nearbyint(drawn / domain.q)), domain.q);
}

const Value& sample(const Choice& domain, RandomStream& random) {
    return domain.values[static_cast<std::size_t>(random.below(domain.values.size()))];
}

}  // namespace muster
