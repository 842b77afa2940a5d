// SPDX-License-Identifier: Apache-2.0

#include "probe/text.hpp"

#include <algorithm>
#include <charconv>
#include <fstream>
#include <iterator>

namespace muster::probe {

std::optional<std::string> read_small_file(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    if (!file) {
        return std::nullopt;
    }
    std::string content{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
    if (file.bad()) {
        return std::nullopt;
    }
    return content;
}

std::string_view trim(std::string_view text) {
    constexpr std::string_view kBlanks = " \t\r\n";
    const std::size_t first = text.find_first_not_of(kBlanks);
    if (first == std::string_view::npos) {
        return {};
    }
    return text.substr(first, text.find_last_not_of(kBlanks) - first + 1);
}

std::vector<std::string_view> split(std::string_view text, char separator) {
    std::vector<std::string_view> parts;
    while (true) {
        const std::size_t at = text.find(separator);
        parts.push_back(text.substr(0, at));
        if (at == std::string_view::npos) {
            return parts;
        }
        text.remove_prefix(at + 1);
    }
}

std::optional<std::int64_t> parse_whole(std::string_view text) {
    text = trim(text);
    std::int64_t number = 0;
    const char* end = text.data() + text.size();
    const auto [stopped, error] = std::from_chars(text.data(), end, number);
    if (text.empty() || error != std::errc{} || stopped != end) {
        return std::nullopt;
    }
    return number;
}

std::optional<std::vector<std::uint32_t>> parse_cpu_list(std::string_view text) {
    constexpr std::int64_t kHighest = 65'535;
    std::vector<std::uint32_t> numbers;
    text = trim(text);
    if (text.empty()) {
        return numbers;
    }
    for (const std::string_view part : split(text, ',')) {
        const std::size_t dash = part.find('-');
        const auto first = parse_whole(part.substr(0, dash));
        const auto last =
            dash == std::string_view::npos ? first : parse_whole(part.substr(dash + 1));
        if (!first || !last || *first < 0 || *last < *first || *last > kHighest) {
            return std::nullopt;
        }
        for (std::int64_t number = *first; number <= *last; ++number) {
            numbers.push_back(static_cast<std::uint32_t>(number));
        }
    }
    std::sort(numbers.begin(), numbers.end());
    numbers.erase(std::unique(numbers.begin(), numbers.end()), numbers.end());
    return numbers;
}

std::vector<std::uint32_t>
intersection(const std::vector<std::uint32_t>& left, const std::vector<std::uint32_t>& right) {
    std::vector<std::uint32_t> both;
    std::set_intersection(
        left.begin(), left.end(), right.begin(), right.end(), std::back_inserter(both)
    );
    return both;
}

}  // namespace muster::probe
