// SPDX-License-Identifier: Apache-2.0
//
// formula_fuzz - a formula. One that parses has a value or an error for keys of any type, and
// always the same.

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "base/check.hpp"
#include "base/utf8.hpp"
#include "fuzz_target.hpp"
#include "search/expression.hpp"

namespace muster::fuzz {
namespace {

const std::vector<Value>& some_values() {
    static const std::vector<Value> values{
        Value(std::numeric_limits<std::int64_t>::min()),
        Value(-1),
        Value(0),
        Value(3),
        Value(std::numeric_limits<std::int64_t>::max()),
        Value(1e-5),
        Value(1e308),
        Value(-std::numeric_limits<double>::infinity()),
        Value(std::nan("")),
        Value(true),
        Value("adam"),
        Value(Value::List{1, "x", Value()}),
        Value(Value::Map{{"k", 1}}),
    };
    return values;
}

void try_with(const Formula& formula, const std::vector<const Value*>& values) {
    const Result<Value> value = formula.evaluate(values);
    const Result<Value> again = formula.evaluate(values);
    check(value.ok() == again.ok(), "a formula has a value or it has none");
    if (value.ok()) {
        check(*value == *again, "a formula has one value");
        (void)to_json(*value);
    } else {
        check(value.error().code == ErrorCode::InvalidInput, "what has no value is the user's");
        check(!find_not_utf8(value.error().message), "a message is text");
    }
}

}  // namespace

void try_input(std::string_view input) {
    if (find_not_utf8(input)) {
        // Formulas come from a spec, which is text.
        return;
    }
    const Result<Formula> formula = Formula::parse(input);
    if (!formula.ok()) {
        check(formula.error().code == ErrorCode::InvalidInput, "a formula is refused as input");
        check(!find_not_utf8(formula.error().message), "a message is text");
        return;
    }
    check(formula->text() == input, "a formula keeps its text");
    const std::size_t keys = formula->keys().size();
    try_with(*formula, std::vector<const Value*>(keys, nullptr));
    for (std::size_t first = 0; first < some_values().size(); ++first) {
        std::vector<const Value*> values;
        for (std::size_t key = 0; key < keys; ++key) {
            values.push_back(&some_values()[(first + key * 5) % some_values().size()]);
        }
        try_with(*formula, values);
    }
}

}  // namespace muster::fuzz
