// SPDX-License-Identifier: Apache-2.0
#include "process/line_patterns.hpp"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <limits>
#include <optional>
#include <utility>

#include <re2/re2.h>

#include "base/utf8.hpp"

namespace muster {
namespace {

struct Expression {
    std::unique_ptr<re2::RE2> regex;
    /// Groups with a name, by their number.
    std::vector<std::pair<int, std::string>> groups;
    /// Room for the whole match and every group.
    std::vector<re2::StringPiece> matches;
};

/// "nan", "inf", "infinity", in any case, with a sign or without.
std::optional<double> non_finite_number(std::string_view text) {
    std::string lower(text);
    std::transform(lower.begin(), lower.end(), lower.begin(), [](unsigned char c) {
        return static_cast<char>(std::tolower(c));
    });
    std::string_view word = lower;
    const bool negative = !word.empty() && word.front() == '-';
    if (!word.empty() && (word.front() == '-' || word.front() == '+')) {
        word.remove_prefix(1);
    }
    if (word == "nan") {
        return std::numeric_limits<double>::quiet_NaN();
    }
    if (word == "inf" || word == "infinity") {
        const double infinity = std::numeric_limits<double>::infinity();
        return negative ? -infinity : infinity;
    }
    return std::nullopt;
}

}  // namespace

Value value_from_text(std::string_view text) {
    std::string_view digits = text;
    if (digits.size() > 1 && digits.front() == '+' && digits[1] != '-') {
        digits.remove_prefix(1);
    }
    const char* const end = digits.data() + digits.size();
    std::int64_t whole = 0;
    const auto as_whole = std::from_chars(digits.data(), end, whole);
    if (as_whole.ec == std::errc{} && as_whole.ptr == end) {
        return whole;
    }
    if (const std::optional<double> number = non_finite_number(text)) {
        return *number;
    }
    double real = 0;
    const auto as_real = std::from_chars(digits.data(), end, real);
    if (as_real.ec == std::errc{} && as_real.ptr == end) {
        return real;
    }
    return std::string(text);
}

struct LinePatterns::State {
    std::vector<Expression> expressions;
    /// The beginning of a line whose end has not come.
    std::string rest;
    /// The line is too long: nothing counts until its end.
    bool skipping = false;
    std::uint64_t skipped = 0;
    std::uint64_t refused = 0;

    void take(const Expression& expression, std::vector<ValueMember>& report);
    void match(std::string_view line, PatternReports& reports);
    void append_rest(std::string_view bytes);
    void end_line(std::string_view bytes, PatternReports& reports);
};

void LinePatterns::State::take(const Expression& expression, std::vector<ValueMember>& report) {
    for (const auto& [number, name] : expression.groups) {
        const re2::StringPiece& found = expression.matches[static_cast<std::size_t>(number)];
        // A group of an alternative that was not taken has no text at all.
        if (found.data() == nullptr) {
            continue;
        }
        const std::string& key = name;
        const bool known = std::any_of(report.begin(), report.end(), [&](const ValueMember& m) {
            return m.key == key;
        });
        if (known) {
            continue;
        }
        const std::string_view text(found.data(), found.size());
        if (find_not_utf8(text)) {
            ++refused;
            continue;
        }
        report.push_back({name, value_from_text(text)});
    }
}

void LinePatterns::State::match(std::string_view line, PatternReports& reports) {
    std::vector<ValueMember> report;
    const re2::StringPiece text(line.data(), line.size());
    for (Expression& expression : expressions) {
        const bool matches = expression.regex->Match(
            text,
            0,
            text.size(),
            re2::RE2::UNANCHORED,
            expression.matches.data(),
            static_cast<int>(expression.matches.size())
        );
        if (matches) {
            take(expression, report);
        }
    }
    if (!report.empty()) {
        reports.push_back(std::move(report));
    }
}

void LinePatterns::State::append_rest(std::string_view bytes) {
    if (skipping) {
        return;
    }
    if (rest.size() + bytes.size() > kLongestPatternLine) {
        skipping = true;
        ++skipped;
        rest.clear();
        rest.shrink_to_fit();
        return;
    }
    rest.append(bytes);
}

void LinePatterns::State::end_line(std::string_view bytes, PatternReports& reports) {
    const bool whole = rest.empty() && !skipping && bytes.size() <= kLongestPatternLine;
    if (whole) {
        match(bytes, reports);
        return;
    }
    append_rest(bytes);
    if (!skipping) {
        match(rest, reports);
    }
    skipping = false;
    rest.clear();
}

LinePatterns::LinePatterns(std::unique_ptr<State> state) : state_(std::move(state)) {}
LinePatterns::LinePatterns(LinePatterns&&) noexcept = default;
LinePatterns& LinePatterns::operator=(LinePatterns&&) noexcept = default;
LinePatterns::~LinePatterns() = default;

Result<LinePatterns> LinePatterns::compile(const std::vector<std::string>& expressions) {
    auto state = std::make_unique<State>();
    re2::RE2::Options options;
    options.set_log_errors(false);
    for (const std::string& text : expressions) {
        Expression expression;
        expression.regex = std::make_unique<re2::RE2>(text, options);
        if (!expression.regex->ok()) {
            return Error{
                ErrorCode::InvalidInput, "pattern '" + text + "': " + expression.regex->error()};
        }
        for (const auto& [number, name] : expression.regex->CapturingGroupNames()) {
            expression.groups.emplace_back(number, name);
        }
        if (expression.groups.empty()) {
            return Error{
                ErrorCode::InvalidInput,
                "pattern '" + text +
                    "' names no metric; write a named group, as in 'loss=(?P<loss>\\S+)'"};
        }
        const int groups = expression.regex->NumberOfCapturingGroups();
        expression.matches.resize(static_cast<std::size_t>(groups) + 1);
        state->expressions.push_back(std::move(expression));
    }
    return LinePatterns(std::move(state));
}

void LinePatterns::feed(std::string_view bytes, PatternReports& reports) {
    while (!bytes.empty()) {
        const std::size_t end = bytes.find_first_of("\n\r");
        if (end == std::string_view::npos) {
            state_->append_rest(bytes);
            return;
        }
        state_->end_line(bytes.substr(0, end), reports);
        bytes.remove_prefix(end + 1);
    }
}

void LinePatterns::finish(PatternReports& reports) {
    state_->end_line({}, reports);
}

std::uint64_t LinePatterns::skipped_lines() const {
    return state_->skipped;
}

std::uint64_t LinePatterns::refused_values() const {
    return state_->refused;
}

}  // namespace muster
