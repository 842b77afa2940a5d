// SPDX-License-Identifier: Apache-2.0
//
// until - when a run is to end, as one writes it: a time of day, a date with one, or a duration.

#pragma once

#include <string>

#include "muster/error.hpp"

#include "base/time.hpp"
#include "runtime/end_watch.hpp"

namespace muster {

/// "2h", "90m" from now on; "17:30", the next time that clocks here show it; "2026-12-01T17:30",
/// with seconds or without, here or, with a Z, in UTC.
///
/// `now`: time of day, since 1970.
/// Errors: InvalidInput, saying what was found and what would be right.
Result<Until> parse_until(const std::string& text, Duration now);

}  // namespace muster
