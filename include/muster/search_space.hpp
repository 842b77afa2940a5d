// SPDX-License-Identifier: Apache-2.0
//
// search_space - what may be chosen for each key of a config.

#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <variant>
#include <vector>

#include "muster/config.hpp"
#include "muster/value.hpp"

namespace muster {

/// Always the same value.
struct Constant {
    Value value;
};

/// A real number in [lower, upper), uniformly or uniformly in its logarithm. With q above 0:
/// multiples of q with both ends included.
struct RealDomain {
    double lower = 0;
    double upper = 1;
    double q = 0;
    bool log = false;
};

/// A whole number in [lower, upper), uniformly or uniformly in its logarithm. With q of 1 or more:
/// multiples of q with upper included; 0 is not quantised.
struct IntDomain {
    std::int64_t lower = 0;
    std::int64_t upper = 1;
    std::int64_t q = 0;
    bool log = false;
};

/// Normally distributed, rounded to a multiple of q when q is above 0.
struct NormalDomain {
    double mean = 0;
    double sd = 1;
    double q = 0;
};

/// One of these values, each as likely.
struct Choice {
    std::vector<Value> values;
};

/// Each of these values in turn, crossed with every other grid of the space.
struct Grid {
    std::vector<Value> values;
};

/// A formula over other keys: "lr * 10". The language is in docs/search-spaces.md.
struct Expression {
    std::string text;
};

/// A function of the other values (Ray's sample_from). It is called after every key in
/// `depends_on` has its value, and sees those alone.
struct SampleFrom {
    // A function, since a C++ program gives it and nothing else needs to look inside.
    std::function<Value(const Config&)> function;
    std::vector<std::string> depends_on;
};

using Domain = std::
    variant<Constant, RealDomain, IntDomain, NormalDomain, Choice, Grid, Expression, SampleFrom>;

/// One axis of the space. It has a value only where `when` holds.
struct Parameter {
    std::string key;
    Domain domain;
    Conditions when;
};

/// All axes, in the order in which they were written.
struct SearchSpace {
    std::vector<Parameter> parameters;
};

}  // namespace muster
