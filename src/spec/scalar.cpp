// SPDX-License-Identifier: Apache-2.0

#include "spec/scalar.hpp"

#include <array>
#include <cctype>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>

#include <fmt/format.h>

#include "spec/document.hpp"

namespace muster {
namespace {

bool is_digit(char letter) {
    return letter >= '0' && letter <= '9';
}

/// `text` without its sign.
std::string_view unsigned_part(std::string_view text) {
    const bool has_sign = !text.empty() && (text[0] == '-' || text[0] == '+');
    return has_sign ? text.substr(1) : text;
}

bool all_digits(std::string_view text) {
    return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
}

bool has_base_prefix(std::string_view text) {
    constexpr std::string_view kHexadecimal = "0123456789abcdefABCDEF";
    constexpr std::string_view kOctal = "01234567";
    if (text.size() < 3 || text[0] != '0') {
        return false;
    }
    const std::string_view digits = text.substr(2);
    return (text[1] == 'x' && digits.find_first_not_of(kHexadecimal) == std::string_view::npos) ||
           (text[1] == 'o' && digits.find_first_not_of(kOctal) == std::string_view::npos);
}

/// [-+]? ( \. [0-9]+ | [0-9]+ ( \. [0-9]* )? ) ( [eE] [-+]? [0-9]+ )?
bool looks_real(std::string_view text) {
    std::string_view rest = unsigned_part(text);
    std::size_t digits = 0;
    std::size_t at = 0;
    for (; at < rest.size() && is_digit(rest[at]); ++at) {
        ++digits;
    }
    if (at < rest.size() && rest[at] == '.') {
        for (++at; at < rest.size() && is_digit(rest[at]); ++at) {
            ++digits;
        }
    }
    if (digits == 0) {
        return false;
    }
    if (at == rest.size()) {
        return true;
    }
    return (rest[at] == 'e' || rest[at] == 'E') && all_digits(unsigned_part(rest.substr(at + 1)));
}

double real_of(std::string_view text) {
    if (text[0] == '+') {
        text.remove_prefix(1);
    }
    double number = 0;
    const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (problem == std::errc::result_out_of_range) {
        // Too large or too small for a double; strtod says which.
        number = std::strtod(std::string(text).c_str(), nullptr);
    }
    return number;
}

Value whole_of(std::string_view text) {
    const bool negative = text[0] == '-';
    std::string_view digits = unsigned_part(text);
    int base = 10;
    if (has_base_prefix(text)) {
        base = text[1] == 'x' ? 16 : 8;
        digits = text.substr(2);
    }
    std::uint64_t size = 0;
    const auto [end, problem] =
        std::from_chars(digits.data(), digits.data() + digits.size(), size, base);
    constexpr auto kLargest = std::uint64_t{std::numeric_limits<std::int64_t>::max()};
    if (problem == std::errc() && (size <= kLargest || (negative && size == kLargest + 1))) {
        return static_cast<std::int64_t>(negative ? 0 - size : size);
    }
    if (base == 10) {
        return real_of(text);
    }
    double number = 0;
    for (const char digit : digits) {
        const int lower = std::tolower(static_cast<unsigned char>(digit));
        number = number * base + (lower >= 'a' ? lower - 'a' + 10 : lower - '0');
    }
    return number;
}

struct Word {
    std::string_view text;
    Value value;
};

const std::array<Word, 22>& words() {
    constexpr double kInfinity = std::numeric_limits<double>::infinity();
    constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
    static const std::array<Word, 22> all{{
        {"", {}},
        {"~", {}},
        {"null", {}},
        {"Null", {}},
        {"NULL", {}},
        {"true", true},
        {"True", true},
        {"TRUE", true},
        {"false", false},
        {"False", false},
        {"FALSE", false},
        {".inf", kInfinity},
        {".Inf", kInfinity},
        {".INF", kInfinity},
        {"+.inf", kInfinity},
        {"+.Inf", kInfinity},
        {"-.inf", -kInfinity},
        {"-.Inf", -kInfinity},
        {"-.INF", -kInfinity},
        {".nan", kNan},
        {".NaN", kNan},
        {".NAN", kNan},
    }};
    return all;
}

struct Unit {
    std::string_view name;
    double seconds;
};

constexpr std::array<Unit, 6> kUnits{
    {{"d", 86400}, {"h", 3600}, {"m", 60}, {"s", 1}, {"ms", 1e-3}, {"us", 1e-6}}};

Error no_duration(std::string_view text) {
    return {
        ErrorCode::InvalidInput,
        fmt::format("'{}' is no duration; write 90, 10s, 500ms, 30m, 2h or 1h30m", text)};
}

/// Takes "1.5h" off the front of `rest` and adds it; units must come from the larger to the
/// smaller.
bool take_part(std::string_view& rest, std::size_t& next_unit, double& total) {
    const std::size_t number_end = rest.find_first_not_of("0123456789.");
    const std::string_view number = rest.substr(0, number_end);
    if (number_end == std::string_view::npos || !looks_real(number)) {
        return false;
    }
    rest.remove_prefix(number_end);
    const std::string_view name = rest.substr(0, rest.find_first_of("0123456789."));
    rest.remove_prefix(name.size());
    for (; next_unit < kUnits.size(); ++next_unit) {
        if (kUnits[next_unit].name == name) {
            total += real_of(number) * kUnits[next_unit].seconds;
            ++next_unit;
            return true;
        }
    }
    return false;
}

}  // namespace

bool looks_whole(std::string_view text) {
    return has_base_prefix(text) || all_digits(unsigned_part(text));
}

Value plain_value(std::string_view text) {
    for (const Word& word : words()) {
        if (word.text == text) {
            return word.value;
        }
    }
    if (looks_whole(text)) {
        return whole_of(text);
    }
    return looks_real(text) ? Value(real_of(text)) : Value(std::string(text));
}

Value to_value(const YamlNode& node) {
    switch (node.kind) {
        case YamlNode::Kind::Null:
            return {};
        case YamlNode::Kind::Scalar:
            return node.quoted ? Value(node.text) : plain_value(node.text);
        case YamlNode::Kind::List: {
            Value::List list;
            for (const YamlNode& item : node.items) {
                list.push_back(to_value(item));
            }
            return list;
        }
        case YamlNode::Kind::Map: {
            Value::Map map;
            for (const Entry& entry : node.entries) {
                map.push_back({entry.key, to_value(entry.value)});
            }
            return map;
        }
    }
    return {};
}

std::string describe(const YamlNode& node) {
    constexpr std::size_t kLongest = 60;
    if (node.is_list()) {
        return "a list";
    }
    if (node.is_map()) {
        return "a map";
    }
    const Value value = to_value(node);
    if (value.is_null()) {
        return "null";
    }
    std::string text = node.text.substr(0, kLongest);
    // Not in the middle of a character.
    while (text.size() < node.text.size() && !text.empty() &&
           (static_cast<unsigned char>(node.text[text.size()]) & 0xC0U) == 0x80U) {
        text.pop_back();
    }
    text += text.size() < node.text.size() ? "…" : "";
    if (value.as_text() != nullptr) {
        return "the text '" + text + "'";
    }
    return (value.as_bool() != nullptr ? "the truth " : "the number ") + text;
}

Result<Duration> parse_duration(std::string_view text) {
    double total = 0;
    if (looks_real(text)) {
        total = real_of(text);
    } else {
        std::string_view rest = text;
        std::size_t next_unit = 0;
        do {
            if (!take_part(rest, next_unit, total)) {
                return no_duration(text);
            }
        } while (!rest.empty());
    }
    constexpr double kLongest = 100.0 * 366 * 86400;
    if (total < 0 || !(total <= kLongest)) {
        return Error{
            ErrorCode::InvalidInput,
            fmt::format(
                "'{}' is {}; at most 100 years are meant", text, total < 0 ? "negative" : "too long"
            )};
    }
    return Duration(std::llround(total * 1e9));
}

std::string duration_text(Duration duration) {
    using std::chrono::duration_cast;
    if (duration % std::chrono::hours(1) == Duration(0) && duration > Duration(0)) {
        return fmt::format("{}h", duration_cast<std::chrono::hours>(duration).count());
    }
    if (duration % std::chrono::minutes(1) == Duration(0) && duration > Duration(0)) {
        return fmt::format("{}m", duration_cast<std::chrono::minutes>(duration).count());
    }
    if (duration % std::chrono::seconds(1) == Duration(0)) {
        return fmt::format("{}s", duration_cast<std::chrono::seconds>(duration).count());
    }
    if (duration % std::chrono::milliseconds(1) == Duration(0)) {
        return fmt::format("{}ms", duration_cast<std::chrono::milliseconds>(duration).count());
    }
    return fmt::format("{}", seconds(duration));
}

}  // namespace muster
