// SPDX-License-Identifier: Apache-2.0
//
// formula_values - what the operators and functions of formulas make of values.
//
// Whole numbers stay whole, except for '/' and negative powers; nothing wraps around and nothing
// finite turns into an infinity: those are errors. Truths are not numbers.

#pragma once

#include "muster/error.hpp"
#include "muster/value.hpp"

#include "search/formula_code.hpp"

namespace muster {

/// REQUIRES: `code` takes one value.
/// Errors: InvalidInput, saying the operator and the value, without the formula. So for both.
Result<Value> apply(OpCode code, const Value& operand);

/// REQUIRES: `code` takes two values, or any number of them.
Result<Value> apply(OpCode code, const Value& left, const Value& right);

/// The truth that `and`, `or`, `not` and `if` need.
Result<bool> truth(OpCode code, const Value& value);

}  // namespace muster
