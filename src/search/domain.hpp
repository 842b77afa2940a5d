// SPDX-License-Identifier: Apache-2.0
//
// domain - what a single domain is called, whether it makes sense and which values it holds.

#pragma once

#include <string>

#include "muster/error.hpp"
#include "muster/search_space.hpp"
#include "muster/value.hpp"

namespace muster {

/// As a spec writes it, with its numbers: "qloguniform [0.1, 10.0, 0.1]", "choice [1, 2]", "20".
std::string to_text(const Domain& domain);

/// Refuses bounds and lists that hold nothing, bounds that do not fit q or the logarithm, and
/// numbers too large to be sampled exactly. Formulas are not looked into.
/// Errors: InvalidInput, without the key.
Status validate(const Domain& domain);

/// `value` as the domain would give it: 1 becomes 1.0 for a real domain, and an equal number of a
/// list takes the type it has there. The upper bound of an unquantised real domain is accepted.
/// Whatever is given is accepted for a computed value.
/// Errors: InvalidInput, saying the value and what the domain holds, without the key.
Result<Value> value_in(const Domain& domain, const Value& value);

}  // namespace muster
