// SPDX-License-Identifier: Apache-2.0
//
// condense - puts the facts of a stretch of the journal together: what is needed of a trial that
// ran and ended is one record instead of four. Nothing that continuing an experiment needs is lost;
// of several attempts of one trial only the last is kept in detail. Private to this folder.
//
// A stretch ends with every fact that is of no one trial (a run or a node begins, a run ends), so
// that the numbers of nodes mean the same as before.

#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/ids.hpp"
#include "base/time.hpp"
#include "protocol/facts.hpp"

namespace muster::journal {

class Condenser {
  public:
    /// Lines are numbered from `first`, and have `utc` as in append_record().
    Condenser(std::uint64_t first, std::string utc) : next_(first), utc_(std::move(utc)) {}

    /// Takes in the next fact of the state.
    void take(Fact fact, TimePoint at);

    /// Everything so far as lines. Nothing is taken in afterwards.
    const std::string& finish();

    std::uint64_t lines() const { return lines_; }

  private:
    /// A fact that stands for itself or for several.
    struct Kept {
        Fact fact;
        TimePoint at;
    };

    /// What to put the next fact of the trial into.
    TrialCondensed& open(TrialId trial, TimePoint at);
    void keep(TrialId trial, Fact fact, TimePoint at);
    void end_stretch();
    void write(const Fact& fact, TimePoint at);

    std::uint64_t next_;
    std::string utc_;
    std::uint64_t lines_ = 0;
    std::string text_;
    std::map<TrialId, std::vector<Kept>> trials_;
};

}  // namespace muster::journal
