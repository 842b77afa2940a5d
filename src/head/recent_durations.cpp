// SPDX-License-Identifier: Apache-2.0

#include "head/recent_durations.hpp"

#include <algorithm>

namespace muster {

void RecentDurations::add(Duration duration) {
    if (ring_.size() < kMost) {
        ring_.push_back(duration);
    } else {
        sorted_.erase(std::lower_bound(sorted_.begin(), sorted_.end(), ring_[next_]));
        ring_[next_] = duration;
        next_ = (next_ + 1) % kMost;
    }
    sorted_.insert(std::upper_bound(sorted_.begin(), sorted_.end(), duration), duration);
}

std::optional<Duration> RecentDurations::percentile(std::uint32_t percent) const {
    if (sorted_.empty()) {
        return std::nullopt;
    }
    const std::size_t rank = (sorted_.size() * percent + 99) / 100;
    return sorted_[std::max<std::size_t>(rank, 1) - 1];
}

}  // namespace muster
