// SPDX-License-Identifier: Apache-2.0

#include "spec/hostlist.hpp"

#include <charconv>
#include <cstdint>
#include <optional>
#include <utility>

#include <fmt/format.h>

namespace muster {
namespace {

constexpr std::size_t kMostNames = 100'000;
constexpr std::size_t kMostDigits = 9;

Error wrong(std::string_view text, std::string_view why) {
    return {
        ErrorCode::InvalidInput,
        fmt::format("'{}' {}; names of nodes look like gpu01 or gpu[01-04,07]", text, why)};
}

/// The parts of `text` between commas outside of brackets.
std::vector<std::string_view> split_names(std::string_view text) {
    std::vector<std::string_view> names;
    std::size_t start = 0;
    bool in_brackets = false;
    for (std::size_t at = 0; at < text.size(); ++at) {
        if (text[at] == '[' || text[at] == ']') {
            in_brackets = text[at] == '[';
        } else if (text[at] == ',' && !in_brackets) {
            names.push_back(text.substr(start, at - start));
            start = at + 1;
        }
    }
    names.push_back(text.substr(start));
    return names;
}

std::optional<std::uint64_t> number_of(std::string_view digits) {
    std::uint64_t number = 0;
    const auto [end, problem] =
        std::from_chars(digits.data(), digits.data() + digits.size(), number);
    const bool whole = problem == std::errc() && end == digits.data() + digits.size();
    return whole && digits.size() <= kMostDigits ? std::optional(number) : std::nullopt;
}

/// "01-03" or "7" as the texts that it stands for; false when it is neither.
bool append_range(std::string_view range, std::vector<std::string>& texts) {
    const std::size_t dash = range.find('-');
    const std::string_view low = range.substr(0, dash);
    const std::string_view high = dash == std::string_view::npos ? low : range.substr(dash + 1);
    const std::optional<std::uint64_t> first = number_of(low);
    const std::optional<std::uint64_t> last = number_of(high);
    if (!first || !last || *first > *last || *last - *first >= kMostNames) {
        return false;
    }
    for (std::uint64_t number = *first; number <= *last; ++number) {
        texts.push_back(fmt::format("{:0{}}", number, low.size()));
    }
    return true;
}

/// What stands between brackets: "01-03,7".
std::optional<std::vector<std::string>> expand_ranges(std::string_view ranges) {
    std::vector<std::string> texts;
    for (const std::string_view range : split_names(ranges)) {
        if (!append_range(range, texts) || texts.size() > kMostNames) {
            return std::nullopt;
        }
    }
    return texts;
}

Result<std::vector<std::string>> expand_name(std::string_view name) {
    std::vector<std::string> names{""};
    for (std::string_view rest = name; !rest.empty();) {
        const std::size_t open = rest.find('[');
        const std::size_t close = rest.find(']');
        const std::string_view plain = rest.substr(0, open);
        for (std::string& each : names) {
            each += plain;
        }
        if (open == std::string_view::npos && close == std::string_view::npos) {
            break;
        }
        if (open == std::string_view::npos || close == std::string_view::npos || close < open) {
            return wrong(name, "has a bracket without its other half");
        }
        const auto texts = expand_ranges(rest.substr(open + 1, close - open - 1));
        if (!texts) {
            return wrong(name, "has a range that cannot be read");
        }
        if (names.size() * texts->size() > kMostNames) {
            return wrong(name, fmt::format("stands for more than {} names", kMostNames));
        }
        std::vector<std::string> longer;
        for (const std::string& each : names) {
            for (const std::string& text : *texts) {
                longer.push_back(each + text);
            }
        }
        names = std::move(longer);
        rest.remove_prefix(close + 1);
    }
    return names;
}

}  // namespace

Result<std::vector<std::string>> expand_hostlist(std::string_view text) {
    constexpr std::size_t kLongest = 4096;
    if (text.size() > kLongest) {
        return wrong(text.substr(0, 40), "is too long");
    }
    std::vector<std::string> names;
    for (const std::string_view name : split_names(text)) {
        if (name.empty() || name.find_first_of(" \t\n/") != std::string_view::npos) {
            return wrong(text, "is no name of a node");
        }
        Result<std::vector<std::string>> expanded = expand_name(name);
        if (!expanded) {
            return expanded;
        }
        names.insert(names.end(), expanded->begin(), expanded->end());
        if (names.size() > kMostNames) {
            return wrong(text, fmt::format("stands for more than {} names", kMostNames));
        }
    }
    return names;
}

}  // namespace muster
