// SPDX-License-Identifier: Apache-2.0
//
// results_index - "results-000001.index": which trials a segment of the results is about, so that
// whoever needs a few of them passes over the rest. It is made from the segment once that grows no
// more, and may be missing. Private to this folder.

#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/ids.hpp"
#include "base/time.hpp"
#include "journal/record.hpp"
#include "journal/segments.hpp"

namespace muster::journal {

struct IndexOfSegment {
    ResultsIndex index;
    /// The latest time of a result.
    TimePoint until;
};

/// "results-000001.index"
std::string index_name(const SegmentFile& segment);

/// Nothing when there is none that fits the segment as it is.
std::optional<IndexOfSegment> read_index(const std::string& directory, const SegmentFile& segment);

/// Whether any of `trials`, which are in order, is in the segment.
bool concerns(const ResultsIndex& index, const std::vector<TrialId>& trials);

/// The ranges of so many trials, in any order and more than once.
std::vector<TrialRange> ranges_of(std::vector<TrialId> trials);

}  // namespace muster::journal
