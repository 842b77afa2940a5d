// SPDX-License-Identifier: Apache-2.0

#include "base/time.hpp"

#include <fmt/format.h>

namespace muster {

std::string format_duration(Duration duration) {
    if (duration < Duration{0}) {
        return "-" + format_duration(-duration);
    }
    const auto milliseconds =
        std::chrono::duration_cast<std::chrono::milliseconds>(duration).count();
    if (milliseconds < 1000) {
        return fmt::format("{}ms", milliseconds);
    }
    if (milliseconds < 60'000) {
        const auto tenths = milliseconds / 100;
        return fmt::format("{}.{}s", tenths / 10, tenths % 10);
    }
    const auto whole = milliseconds / 1000;
    if (whole < 3600) {
        return fmt::format("{}m{:02}s", whole / 60, whole % 60);
    }
    if (whole < 86'400) {
        return fmt::format("{}h{:02}m", whole / 3600, whole % 3600 / 60);
    }
    return fmt::format("{}d{:02}h", whole / 86'400, whole % 86'400 / 3600);
}

}  // namespace muster
