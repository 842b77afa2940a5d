// SPDX-License-Identifier: Apache-2.0
//
// restore_head - what earlier runs of an experiment wrote down becomes a Head's state.

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "muster/error.hpp"

#include "base/time.hpp"
#include "head/head.hpp"

namespace muster {

struct Restored {
    /// The experiment's time at its last record.
    TimePoint last;
    /// How the last run ended; nothing when it did not get so far.
    std::optional<RunEnd> ended;
    /// The numbers of the journal's next records.
    std::uint64_t next_state = 1;
    std::uint64_t next_result = 1;
    /// What was damaged, missing or contradictory; to be told.
    std::vector<std::string> problems;
};

/// Reads the journal in `directory` into `head`: every fact of the state, and of the results those
/// that no fact of the state has taken in (what unfinished trials reported). Works while a run
/// writes the journal.
/// Errors: as read_journal().
Result<Restored> restore_head(const std::string& directory, Head& head);

}  // namespace muster
