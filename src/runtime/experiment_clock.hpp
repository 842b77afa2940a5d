// SPDX-License-Identifier: Apache-2.0
//
// experiment_clock - the experiment's own time out of readings of a monotonic clock. It goes on
// where the last run left it, and stands still while the loop itself was stopped (a suspended
// process, a host without a breath): trials must not lose their limits to that.

#pragma once

#include <chrono>

#include "base/time.hpp"

namespace muster {

class ExperimentClock {
  public:
    /// `monotonic` is the clock's reading at `start`.
    ExperimentClock(TimePoint start, Duration monotonic) : now_(start), last_(monotonic) {}

    TimePoint now() const { return now_; }
    /// What advance() left out last; 0 when it left out nothing.
    Duration gap() const { return gap_; }

    /// Takes the next reading. `waited` is how long the loop meant to wait, at most, since the one
    /// before; what is more than a second beyond that does not count.
    TimePoint advance(Duration monotonic, Duration waited) {
        const Duration passed = monotonic - last_;
        const bool was_stopped = passed - waited > kLongestGap;
        gap_ = was_stopped ? passed - waited : Duration{0};
        now_ = now_ + (passed - gap_);
        last_ = monotonic;
        return now_;
    }

  private:
    static constexpr Duration kLongestGap = std::chrono::seconds{1};

    TimePoint now_;
    Duration last_;
    Duration gap_{0};
};

}  // namespace muster
