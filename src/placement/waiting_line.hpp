// SPDX-License-Identifier: Apache-2.0
//
// waiting_line - trials in the order in which they came, one line for each shape. A waiting trial
// takes about 40 bytes; a trial that is taken out leaves a gap that is closed later.

#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include "base/ids.hpp"
#include "base/time.hpp"

namespace muster {

struct WaitingTrial {
    /// Counts from 1; lower comes first.
    std::uint64_t order = 0;
    TimePoint since;
    TrialId trial;
};

class WaitingLines {
  public:
    explicit WaitingLines(std::size_t shapes = 0) : lines_(shapes) {}

    /// One more shape; its index is how many there were.
    void add_shape() { lines_.emplace_back(); }

    /// REQUIRES: the trial does not wait.
    void push(TrialId trial, std::uint32_t shape, TimePoint now);
    /// False when it does not wait.
    bool remove(TrialId trial);

    /// Null when none waits.
    const WaitingTrial* first(std::uint32_t shape) const;
    /// The shape that the trial waits for.
    std::optional<std::uint32_t> find(TrialId trial) const;
    std::size_t size() const { return size_; }
    std::size_t size(std::uint32_t shape) const { return lines_[shape].size; }
    /// How many of the same shape are before it. REQUIRES: it waits.
    std::size_t ahead_of(TrialId trial) const;

  private:
    struct Line {
        // In order. The first is never a gap.
        std::deque<WaitingTrial> trials;
        std::size_t size = 0;
    };
    struct Place {
        /// 0 when it does not wait.
        std::uint64_t order = 0;
        std::uint32_t shape = 0;
    };

    bool is_gap(const WaitingTrial& entry) const {
        return places_[entry.trial.value].order != entry.order;
    }
    void close_gaps(Line& line);

    std::vector<Line> lines_;
    // By trial.
    std::vector<Place> places_;
    std::uint64_t last_order_ = 0;
    std::size_t size_ = 0;
};

}  // namespace muster
