// SPDX-License-Identifier: Apache-2.0
//
// line_patterns - finds metrics in text that comes in pieces. Pure: bytes in, reports out.
//
// A line ends at '\n' or '\r' (progress bars rewrite one line). Every line that at least one
// expression matches is one report, with the named groups of all that match it; a group that an
// earlier expression gave already is not taken again. What looks like a number is one ("nan" and
// "inf" too, with a sign, in any case); the rest is text.

#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "muster/error.hpp"
#include "muster/value.hpp"

namespace muster {

/// A longer line is not looked at.
inline constexpr std::size_t kLongestPatternLine = std::size_t{64} * 1024;

using PatternReports = std::vector<std::vector<ValueMember>>;

class LinePatterns {
  public:
    /// Errors: InvalidInput, with RE2's message, when an expression is wrong or has no named group.
    static Result<LinePatterns> compile(const std::vector<std::string>& expressions);

    LinePatterns(LinePatterns&&) noexcept;
    LinePatterns& operator=(LinePatterns&&) noexcept;
    ~LinePatterns();

    /// Takes the next bytes and appends a report for every line that is complete and matches.
    void feed(std::string_view bytes, PatternReports& reports);

    /// The text is over: its last line may lack an end.
    void finish(PatternReports& reports);

    /// Lines that were too long, so far.
    std::uint64_t skipped_lines() const;

    /// Values that were dropped since they are not UTF-8, so far.
    std::uint64_t refused_values() const;

  private:
    struct State;
    explicit LinePatterns(std::unique_ptr<State> state);

    std::unique_ptr<State> state_;
};

/// A whole or real number when `text` is nothing else, otherwise the text.
Value value_from_text(std::string_view text);

}  // namespace muster
