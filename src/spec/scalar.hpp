// SPDX-License-Identifier: Apache-2.0
//
// scalar - what the text of a plain scalar means.

#pragma once

#include <optional>
#include <string_view>

#include "muster/error.hpp"
#include "muster/value.hpp"

#include "base/time.hpp"

namespace muster {

/// The value of an unquoted scalar by YAML 1.2's core schema; whole numbers that need more than 64
/// bits are real.
Value plain_value(std::string_view text);

/// Whether `text` is a whole number in any of the schema's forms, however large.
bool looks_whole(std::string_view text);

/// "90" (seconds), "1.5", "10s", "500ms", "1h30m", "2d": units d, h, m, s, ms, us, each once, the
/// larger first.
/// Errors: InvalidInput, when it is no duration, negative or more than 100 years.
Result<Duration> parse_duration(std::string_view text);

/// A text that parse_duration() reads as `duration`.
std::string duration_text(Duration duration);

}  // namespace muster
