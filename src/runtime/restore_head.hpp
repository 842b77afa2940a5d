// SPDX-License-Identifier: Apache-2.0
//
// restore_head - what earlier runs of an experiment wrote down becomes a Head's state.

#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "muster/error.hpp"

#include "base/time.hpp"
#include "head/head.hpp"
#include "protocol/facts.hpp"

namespace muster {

class BasicSearcher;

/// On which nodes trials ran: for each the node of its last attempt's first bundle.
class NodesOfTrials {
  public:
    /// Takes in a fact. Nodes have their numbers for one run alone.
    void take(const Fact& fact);

    /// Empty for a trial that never ran, or of a journal without names.
    const std::string& name_of(TrialId trial) const;
    /// Different nodes that were ever there.
    std::size_t node_count() const { return names_.size(); }

  private:
    void take_placement(TrialId trial, const Placement& placement);

    std::vector<std::string> names_;
    /// Places in names_.
    std::map<NodeId, std::uint32_t> of_run_;
    /// By trial: a place in names_ plus one, or 0.
    std::vector<std::uint32_t> places_;
};

struct Restored {
    /// The experiment's time at its last record.
    TimePoint last;
    /// How the last run ended; nothing when it did not get so far.
    std::optional<RunEnd> ended;
    /// The numbers of the journal's next records.
    std::uint64_t next_state = 1;
    std::uint64_t next_result = 1;
    NodesOfTrials nodes;
    /// What was damaged, missing or contradictory; to be told.
    std::vector<std::string> problems;
};

/// Reads the journal in `directory` into `head`: every fact of the state, and of the results those
/// that no fact of the state has taken in (what unfinished trials reported). Works while a run
/// writes the journal. Where the creation of a trial was lost, and later facts were not, the trial
/// gets the config that `searcher` gives to its number, so that nothing runs again; without a
/// searcher it and all trials after it are left out.
/// Errors: as read_journal().
Result<Restored>
restore_head(const std::string& directory, Head& head, const BasicSearcher* searcher = nullptr);

}  // namespace muster
