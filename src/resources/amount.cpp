// SPDX-License-Identifier: Apache-2.0

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "muster/resources.hpp"

namespace muster {
namespace {

constexpr double kUnits = 10'000;
constexpr double kLargest = 9e14;
// How far from a multiple of 1/10000 a value may be, in units of it.
constexpr double kTolerance = 1e-6;
// A double near v × 10000 is itself only so exact, relative to v; it matters above 1e5 or so.
constexpr double kDoubleError = 0x1.0p-51;

}  // namespace

Result<Amount> Amount::from_real(double value) {
    if (std::isnan(value)) {
        return Error{ErrorCode::InvalidInput, "nan is not an amount"};
    }
    if (value < 0) {
        return Error{ErrorCode::InvalidInput, fmt::format("{} is negative", value)};
    }
    if (value > kLargest) {
        return Error{
            ErrorCode::InvalidInput,
            fmt::format("{} is too large; at most {} is possible", value, kLargest)};
    }
    const double units = value * kUnits;
    const double rounded = std::round(units);
    if (std::abs(units - rounded) > std::max(kTolerance, units * kDoubleError)) {
        return Error{
            ErrorCode::InvalidInput,
            fmt::format("{} has more than four decimals; write {}", value, rounded / kUnits)};
    }
    return ten_thousandths(static_cast<std::int64_t>(rounded));
}

std::string to_string(Amount amount) {
    const std::int64_t units = amount.ten_thousandths();
    const std::int64_t size = units < 0 ? -units : units;
    std::string text = fmt::format("{}{}", units < 0 ? "-" : "", size / 10'000);
    if (!amount.is_whole()) {
        text += fmt::format(".{:04}", size % 10'000);
        text.erase(text.find_last_not_of('0') + 1);
    }
    return text;
}

}  // namespace muster
