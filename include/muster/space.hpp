// SPDX-License-Identifier: Apache-2.0
//
// space - the axes of a search space, by the names that spec files use.
//
//     SearchSpace{{space::loguniform("lr", 1e-4, 1e-1), space::choice("hidden", {32, 64}),
//                  space::when(space::uniform("momentum", 0, 1), "optimizer", {"sgd"})}}

#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "muster/search_space.hpp"

namespace muster::space {

/// Always the same value.
inline Parameter constant(std::string key, Value value) {
    return {std::move(key), Constant{std::move(value)}, {}};
}

/// A real number in [lower, upper). The names with a q give multiples of q, both ends included.
inline Parameter uniform(std::string key, double lower, double upper) {
    return {std::move(key), RealDomain{lower, upper, 0, false}, {}};
}
inline Parameter quniform(std::string key, double lower, double upper, double q) {
    return {std::move(key), RealDomain{lower, upper, q, false}, {}};
}
/// Uniform in the logarithm.
inline Parameter loguniform(std::string key, double lower, double upper) {
    return {std::move(key), RealDomain{lower, upper, 0, true}, {}};
}
inline Parameter qloguniform(std::string key, double lower, double upper, double q) {
    return {std::move(key), RealDomain{lower, upper, q, true}, {}};
}

/// A whole number in [lower, upper).
inline Parameter randint(std::string key, std::int64_t lower, std::int64_t upper) {
    return {std::move(key), IntDomain{lower, upper, 0, false}, {}};
}
inline Parameter qrandint(std::string key, std::int64_t lower, std::int64_t upper, std::int64_t q) {
    return {std::move(key), IntDomain{lower, upper, q, false}, {}};
}
inline Parameter lograndint(std::string key, std::int64_t lower, std::int64_t upper) {
    return {std::move(key), IntDomain{lower, upper, 0, true}, {}};
}
inline Parameter
qlograndint(std::string key, std::int64_t lower, std::int64_t upper, std::int64_t q) {
    return {std::move(key), IntDomain{lower, upper, q, true}, {}};
}

/// Normally distributed.
inline Parameter normal(std::string key, double mean, double sd) {
    return {std::move(key), NormalDomain{mean, sd, 0}, {}};
}
inline Parameter qnormal(std::string key, double mean, double sd, double q) {
    return {std::move(key), NormalDomain{mean, sd, q}, {}};
}

/// One of the values, each as likely.
inline Parameter choice(std::string key, std::vector<Value> values) {
    return {std::move(key), Choice{std::move(values)}, {}};
}
/// Each of the values in turn, crossed with every other grid of the space.
inline Parameter grid(std::string key, std::vector<Value> values) {
    return {std::move(key), Grid{std::move(values)}, {}};
}

/// A formula over other keys: "lr * 10".
inline Parameter expr(std::string key, std::string text) {
    return {std::move(key), Expression{std::move(text)}, {}};
}
/// A function of other keys, which must be named; it sees those alone. It runs at rank 0, must give
/// the same for the same values, and throw nothing.
inline Parameter sample_from(
    std::string key,
    std::vector<std::string> depends_on,
    std::function<Value(const Config&)> function
) {
    return {std::move(key), SampleFrom{std::move(function), std::move(depends_on)}, {}};
}

/// The axis has a value only where `key` has one of these.
inline Parameter when(Parameter parameter, std::string key, std::vector<Value> any_of) {
    parameter.when.push_back({std::move(key), std::move(any_of)});
    return parameter;
}

}  // namespace muster::space
