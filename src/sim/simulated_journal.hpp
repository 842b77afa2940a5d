// SPDX-License-Identifier: Apache-2.0
//
// simulated_journal - facts that reach the disk some time after they were given to it, in order,
// one flush after the other.

#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "protocol/facts.hpp"

namespace muster {

class SimulatedJournal {
  public:
    void append(const std::vector<Fact>& facts) {
        facts_.insert(facts_.end(), facts.begin(), facts.end());
    }

    /// Begins to flush what is there; false when a flush is under way or there is nothing to do.
    bool begin_flush() {
        if (flushing_ || durable_ == facts_.size()) {
            return false;
        }
        flushing_ = facts_.size();
        return true;
    }
    /// Returns what is on disk from now on.
    std::vector<Fact> end_flush() {
        const auto begin = facts_.begin();
        std::vector<Fact> fresh(
            begin + static_cast<std::ptrdiff_t>(durable_),
            begin + static_cast<std::ptrdiff_t>(*flushing_)
        );
        durable_ = *flushing_;
        flushing_.reset();
        return fresh;
    }

    /// How many facts of the present run are on disk.
    std::uint64_t durable_of_run() const { return durable_ - run_begin_; }

    /// The process ends. What is on disk stays, and so do `lucky` of the facts after it, at most.
    void crash(std::size_t lucky) {
        const std::size_t kept = std::min(facts_.size(), durable_ + lucky);
        facts_.resize(kept);
        durable_ = kept;
        flushing_.reset();
    }
    /// Counts facts from here.
    void begin_run() { run_begin_ = facts_.size(); }

    const std::vector<Fact>& facts() const { return facts_; }
    std::size_t not_durable() const { return facts_.size() - durable_; }

  private:
    std::vector<Fact> facts_;
    std::size_t durable_ = 0;
    std::size_t run_begin_ = 0;
    std::optional<std::size_t> flushing_;
};

}  // namespace muster
