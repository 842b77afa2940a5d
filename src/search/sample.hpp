// SPDX-License-Identifier: Apache-2.0
//
// sample - one value drawn from a domain.
//
// What is drawn depends on the stream alone, and each key of each trial has a stream of its own, so
// that adding a key leaves the values of all others as they were.

#pragma once

#include <cstdint>
#include <string_view>

#include "muster/search_space.hpp"
#include "muster/value.hpp"

#include "base/random.hpp"

namespace muster {

/// The stream for one key of one trial of an experiment.
RandomStream stream_for(std::uint64_t seed, std::uint64_t trial, std::string_view key);

/// Plain: uniform in [lower, upper). With log: uniform in the logarithm. With q: every multiple of
/// q from lower to upper, both included, is as likely; with q and log, a multiple has the share of
/// [multiple - q/2, multiple + q/2) in the logarithm.
/// REQUIRES: validate() accepts the domain; so for all of these.
double sample(const RealDomain& domain, RandomStream& random);

/// Plain: every whole number of [lower, upper) is as likely. With log: the real draw of
/// [lower, upper), rounded down. With q: as for RealDomain, upper included.
std::int64_t sample(const IntDomain& domain, RandomStream& random);

/// With q: rounded to the nearest multiple.
double sample(const NormalDomain& domain, RandomStream& random);

const Value& sample(const Choice& domain, RandomStream& random);

/// `count` times q, as the real number that one would write down: 3 times 0.1 is 0.3.
double multiple(std::int64_t count, double q);

}  // namespace muster
