// SPDX-License-Identifier: Apache-2.0
//
// line_patterns_fuzz - lines of expressions, "%%", and what a program prints. What is found does
// not depend on the pieces in which the text comes.

#include <string>
#include <vector>

#include "base/check.hpp"
#include "base/utf8.hpp"
#include "fuzz_target.hpp"
#include "process/line_patterns.hpp"

namespace muster::fuzz {
namespace {

PatternReports
found_in(const std::vector<std::string>& expressions, std::string_view text, std::size_t piece) {
    LinePatterns patterns = LinePatterns::compile(expressions).value();
    PatternReports reports;
    for (std::size_t at = 0; at < text.size(); at += piece) {
        patterns.feed(text.substr(at, piece), reports);
    }
    patterns.finish(reports);
    return reports;
}

}  // namespace

void try_input(std::string_view input) {
    const std::vector<std::string_view> pieces = pieces_of(input);
    std::vector<std::string> expressions{R"(^(?P<step>\d+)[ ,]+(?P<loss>\S*))"};
    if (pieces.size() > 1) {
        expressions.clear();
        for (const std::string_view line : lines_of(pieces.front())) {
            expressions.emplace_back(line);
        }
    }
    const std::string_view text = pieces.back();
    if (pieces.size() > 1 && find_not_utf8(pieces.front())) {
        // Expressions come from a spec, which is text.
        return;
    }
    const Result<LinePatterns> patterns = LinePatterns::compile(expressions);
    if (!patterns.ok()) {
        check(
            patterns.error().code == ErrorCode::InvalidInput, "an expression is refused as input"
        );
        check(!find_not_utf8(patterns.error().message), "a message is text");
        return;
    }
    const PatternReports whole = found_in(expressions, text, text.size() + 1);
    for (const auto& report : whole) {
        for (const ValueMember& member : report) {
            const std::string* value = member.value.as_text();
            check(value == nullptr || !find_not_utf8(*value), "a value is text");
        }
    }
    check(found_in(expressions, text, 1) == whole, "byte by byte, the same is found");
    check(found_in(expressions, text, 7) == whole, "in pieces, the same is found");
}

}  // namespace muster::fuzz
