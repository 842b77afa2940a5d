// SPDX-License-Identifier: Apache-2.0
//
// reader - reads a journal back. Damaged records are skipped, counted and told, never fatal: what
// is left is read. The form of the files is in docs/journal.md.

#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "muster/error.hpp"

#include "base/ids.hpp"
#include "base/time.hpp"
#include "protocol/facts.hpp"

namespace muster {

/// What reading found.
struct JournalReading {
    /// Records handed to the callback.
    std::uint64_t records = 0;
    /// Lines that could not be read and were skipped. The torn last line of a run that was killed
    /// counts too.
    std::uint64_t damaged = 0;
    /// Records whose numbers are missing: at least so many were lost.
    std::uint64_t missing = 0;
    /// The first ten of both in words: "state-000001.log:12: the checksum differs",
    /// "state-000002.log: records 17 to 20 are missing before it".
    std::vector<std::string> problems;
    /// The latest time of any record read.
    TimePoint last;
    /// The number of the next record.
    std::uint64_t next = 1;
};

// Functions, so that a journal of any length is read in little memory.
using FactReader = std::function<void(const Fact&, TimePoint)>;
using ResultReader = std::function<void(const ResultReported&, TimePoint)>;

/// Whether `directory` holds a journal: at least one segment of the state.
bool has_journal(const std::string& directory);

/// Hands every fact of the state to `reader`, in order.
/// Errors: NotFound, when there is no journal; System, when a segment can't be read at all;
/// Corrupt, when a segment is of a format that this version does not know.
Result<JournalReading> read_journal(const std::string& directory, const FactReader& reader);

/// Hands the results of `trials` to `reader`, in the order in which they came. Segments in which
/// none of them has any are passed over, unread: for a few trials of many this is quick.
/// REQUIRES: `trials` are in order.
/// Errors: as read_journal(); a journal without results is no error.
Result<JournalReading> read_results_of(
    const std::string& directory,
    const std::vector<TrialId>& trials,
    const ResultReader& reader
);

/// Hands every result to `reader`, in the order in which they came; of `trial` alone if given.
/// Errors: as read_results_of().
Result<JournalReading> read_results(
    const std::string& directory,
    std::optional<TrialId> trial,
    const ResultReader& reader
);

}  // namespace muster
