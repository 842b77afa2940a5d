// SPDX-License-Identifier: Apache-2.0
//
// expression - formulas over the keys of a config: "lr * 10", "32 if optimizer == 'adam' else 64".
// The language is described in docs/search-spaces.md.
//
// A text is parsed once into a list of instructions for a small stack machine and evaluated many
// times. Both are iterative or bounded in depth, so no text, however long, can exhaust the stack.

#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "muster/error.hpp"
#include "muster/value.hpp"

#include "search/formula_code.hpp"

namespace muster {

/// A parsed formula.
class Formula {
  public:
    /// Errors: InvalidInput, with the position (from 1) and what was expected there.
    static Result<Formula> parse(std::string_view text);

    const std::string& text() const { return text_; }

    /// The keys it names, each once, in the order in which they appear. "augment.flip" in the text
    /// is the key "augment/flip".
    const std::vector<std::string>& keys() const { return keys_; }

    /// The value, given one for each of keys(). nullptr stands for a key without a value (its
    /// `when` does not hold) and reads as null.
    /// Errors: InvalidInput for what has no value: a division by zero, a whole number that does not
    /// fit 64 bits, text where a number is needed. The message holds the formula and the values of
    /// its keys; the caller adds the key that it belongs to.
    Result<Value> evaluate(const std::vector<const Value*>& values) const;

  private:
    friend class FormulaParser;

    std::string text_;
    std::vector<std::string> keys_;
    std::vector<Value> constants_;
    std::vector<Instruction> code_;
};

}  // namespace muster
