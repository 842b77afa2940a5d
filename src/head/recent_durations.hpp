// SPDX-License-Identifier: Apache-2.0
//
// recent_durations - how long trials take, from those that ended last. Bounded, whatever ends.

#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/time.hpp"

namespace muster {

class RecentDurations {
  public:
    static constexpr std::size_t kMost = 512;

    void add(Duration duration);
    /// The duration that so many of 100 do not exceed; nothing when none was added.
    std::optional<Duration> percentile(std::uint32_t percent) const;
    /// Those that it is taken from.
    std::size_t count() const { return sorted_.size(); }

  private:
    // The same durations twice: sorted, and in a ring in the order in which they came.
    std::vector<Duration> sorted_;
    std::vector<Duration> ring_;
    std::size_t next_ = 0;
};

}  // namespace muster
