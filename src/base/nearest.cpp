// SPDX-License-Identifier: Apache-2.0

#include "base/nearest.hpp"

#include <algorithm>
#include <cctype>
#include <cstddef>

namespace muster {
namespace {

// Costs are in halves of an edit, so that a letter's case can cost one half.
constexpr std::size_t kEdit = 2;
// Longer names are not worth a quadratic comparison.
constexpr std::size_t kLongest = 100;

std::size_t replace_cost(char left, char right) {
    if (left == right) {
        return 0;
    }
    const auto lower = [](char letter) { return std::tolower(static_cast<unsigned char>(letter)); };
    return lower(left) == lower(right) ? 1 : kEdit;
}

std::size_t distance(std::string_view left, std::string_view right) {
    std::vector<std::size_t> before(right.size() + 1);
    std::vector<std::size_t> above(right.size() + 1);
    std::vector<std::size_t> row(right.size() + 1);
    for (std::size_t column = 0; column <= right.size(); ++column) {
        above[column] = column * kEdit;
    }
    for (std::size_t line = 1; line <= left.size(); ++line) {
        row[0] = line * kEdit;
        for (std::size_t column = 1; column <= right.size(); ++column) {
            row[column] = std::min(
                {above[column] + kEdit,
                 row[column - 1] + kEdit,
                 above[column - 1] + replace_cost(left[line - 1], right[column - 1])}
            );
            if (line > 1 && column > 1 && left[line - 1] == right[column - 2] &&
                left[line - 2] == right[column - 1]) {
                row[column] = std::min(row[column], before[column - 2] + kEdit);
            }
        }
        std::swap(before, above);
        std::swap(above, row);
    }
    return above[right.size()];
}

}  // namespace

std::string nearest(std::string_view name, const std::vector<std::string>& known) {
    if (name.size() > kLongest) {
        return {};
    }
    std::string best;
    // A third of the letters may be wrong, and one always.
    std::size_t least = std::max<std::size_t>(1, name.size() / 3) * kEdit + 1;
    for (const std::string& candidate : known) {
        if (candidate.size() > kLongest) {
            continue;
        }
        const std::size_t edits = distance(name, candidate);
        // Replacing every letter is no likeness.
        if (edits < least && edits < std::max(name.size(), candidate.size()) * kEdit) {
            least = edits;
            best = candidate;
        }
    }
    return best;
}

std::string did_you_mean(std::string_view name, const std::vector<std::string>& known) {
    const std::string candidate = nearest(name, known);
    return candidate.empty() ? std::string() : "; did you mean '" + candidate + "'?";
}

}  // namespace muster
