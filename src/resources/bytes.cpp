// SPDX-License-Identifier: Apache-2.0

#include <array>
#include <charconv>
#include <cmath>
#include <limits>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include "muster/resources.hpp"

namespace muster {
namespace {

struct ByteUnit {
    std::string_view name;
    std::int64_t bytes;
};

constexpr std::int64_t kKilo = 1000;
constexpr std::int64_t kKibi = 1024;

// Largest first.
constexpr std::array<ByteUnit, 10> kByteUnits{{
    {"PiB", kKibi* kKibi* kKibi* kKibi* kKibi},
    {"PB", kKilo* kKilo* kKilo* kKilo* kKilo},
    {"TiB", kKibi* kKibi* kKibi* kKibi},
    {"TB", kKilo* kKilo* kKilo* kKilo},
    {"GiB", kKibi* kKibi* kKibi},
    {"GB", kKilo* kKilo* kKilo},
    {"MiB", kKibi* kKibi},
    {"MB", kKilo* kKilo},
    {"KiB", kKibi},
    {"kB", kKilo},
}};

char lower(char letter) {
    return letter >= 'A' && letter <= 'Z' ? static_cast<char>(letter - 'A' + 'a') : letter;
}

bool same_letters(std::string_view left, std::string_view right) {
    if (left.size() != right.size()) {
        return false;
    }
    for (std::size_t i = 0; i < left.size(); ++i) {
        if (lower(left[i]) != lower(right[i])) {
            return false;
        }
    }
    return true;
}

/// 0 when there is no such unit.
std::int64_t bytes_in(std::string_view unit) {
    if (unit.empty() || same_letters(unit, "B")) {
        return 1;
    }
    for (const ByteUnit& known : kByteUnits) {
        if (same_letters(unit, known.name)) {
            return known.bytes;
        }
    }
    return 0;
}

std::string_view trim(std::string_view text) {
    while (!text.empty() && text.front() == ' ') {
        text.remove_prefix(1);
    }
    while (!text.empty() && text.back() == ' ') {
        text.remove_suffix(1);
    }
    return text;
}

Error not_bytes(std::string_view text) {
    return Error{
        ErrorCode::InvalidInput,
        fmt::format(
            "\"{}\" is not a number of bytes; write a number and B, kB, MB, GB, TB, PB (powers of "
            "1000) or KiB, MiB, GiB, TiB, PiB (powers of 1024)",
            text
        )};
}

}  // namespace

std::string format_bytes(std::int64_t bytes) {
    const ByteUnit* whole = nullptr;
    for (const ByteUnit& unit : kByteUnits) {
        if (bytes != 0 && bytes % unit.bytes == 0) {
            whole = &unit;
            break;
        }
    }
    constexpr std::int64_t kShort = 100'000;
    if (whole != nullptr && bytes / whole->bytes < kShort) {
        return fmt::format("{}{}", bytes / whole->bytes, whole->name);
    }
    if (bytes < kShort) {
        return fmt::format("{}", bytes);
    }
    for (const ByteUnit& unit : kByteUnits) {
        const bool binary = unit.name.size() == 3;
        if (binary && bytes >= unit.bytes) {
            const double count = static_cast<double>(bytes) / static_cast<double>(unit.bytes);
            return fmt::format("{}{}", std::round(count * 100) / 100, unit.name);
        }
    }
    return fmt::format("{}", bytes);
}

Result<std::int64_t> parse_bytes(std::string_view text) {
    const std::string_view trimmed = trim(text);
    const std::size_t digits = trimmed.find_first_not_of("0123456789.");
    const std::string_view number = trimmed.substr(0, digits);
    const std::string_view unit =
        digits == std::string_view::npos ? std::string_view{} : trim(trimmed.substr(digits));
    const std::int64_t scale = bytes_in(unit);
    if (scale == 0) {
        return not_bytes(text);
    }
    const char* end = number.data() + number.size();
    std::int64_t whole = 0;
    const auto as_whole = std::from_chars(number.data(), end, whole);
    if (as_whole.ec == std::errc{} && as_whole.ptr == end) {
        if (whole > std::numeric_limits<std::int64_t>::max() / scale) {
            return not_bytes(text);
        }
        return whole * scale;
    }
    double real = 0;
    const auto as_real = std::from_chars(number.data(), end, real, std::chars_format::fixed);
    constexpr double kLargest = 9e18;
    if (as_real.ec != std::errc{} || as_real.ptr != end ||
        real * static_cast<double>(scale) > kLargest) {
        return not_bytes(text);
    }
    return std::llround(real * static_cast<double>(scale));
}

}  // namespace muster
