// SPDX-License-Identifier: Apache-2.0
//
// memory_watch - holds the processes of one member to the memory that was asked for, all of them
// together, by looking at them from time to time.
//
// What counts is memory that only they can give back: anonymous pages, shared memory that they have
// mapped, and what of both is swapped out; not the page cache. The usual look is cheap and counts a
// page once for each process that shares it since a fork, so it is never too low; the exact
// figures (proportional shares), which cost time by the page, are read only when the cheap sum is
// past the limit. How soon the next look is due depends on what is left and on what a look costs.

#pragma once

#include <chrono>
#include <cstdint>
#include <vector>

#include <sys/types.h>

namespace muster {

class MemoryWatch {
  public:
    using Clock = std::chrono::steady_clock;

    /// 0 is no limit: never due.
    MemoryWatch(std::int64_t limit_bytes, Clock::time_point now);

    /// When to look() next.
    Clock::time_point due() const { return due_; }

    /// Looks at the processes. True when they use more than the limit; then it is never due again.
    bool look(const std::vector<pid_t>& pids, Clock::time_point now);

    /// The most that was seen so far.
    std::int64_t peak_bytes() const { return peak_bytes_; }

  private:
    std::int64_t limit_bytes_;
    std::int64_t peak_bytes_ = 0;
    Clock::time_point due_;
};

}  // namespace muster
