// SPDX-License-Identifier: Apache-2.0
//
// time - the experiment's own clock. Pure folders are given `now`; only edges read a clock.

#pragma once

#include <chrono>
#include <cstdint>
#include <limits>
#include <string>

namespace muster {

using Duration = std::chrono::nanoseconds;

/// Time since the experiment began, standing still between two runs of it.
struct TimePoint {
    Duration since_start{0};

    friend auto operator<=>(const TimePoint&, const TimePoint&) = default;
    friend TimePoint operator+(TimePoint time, Duration by) { return {time.since_start + by}; }
    friend TimePoint operator-(TimePoint time, Duration by) { return {time.since_start - by}; }
    friend Duration operator-(TimePoint left, TimePoint right) {
        return left.since_start - right.since_start;
    }
};

/// Later than anything that will happen.
inline constexpr TimePoint kNever{Duration{std::numeric_limits<std::int64_t>::max()}};

/// `duration` in seconds.
inline double seconds(Duration duration) {
    return std::chrono::duration<double>(duration).count();
}

/// "850ms", "12.3s", "4m10s", "3h05m", "2d04h": for people, three digits that count.
std::string format_duration(Duration duration);

}  // namespace muster
