// SPDX-License-Identifier: Apache-2.0
//
// tidy - makes segments that grow no more quick to read: those of the state are condensed, those of
// the results get an index. It only reads and replaces files, so a thread of its own can do it
// while the experiment runs, one segment at a time, with memory for one segment.
//
// Whatever stops it, each segment is either as it was or wholly replaced: a new file is written
// aside, synced, and renamed over the old one. A segment that is damaged, or holds records that
// another holds too, stays as it is.

#pragma once

#include <atomic>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "muster/error.hpp"

namespace muster {

namespace journal {
struct SegmentFile;
}

class JournalTidier {
  public:
    /// Smaller segments stay as they are: they are read quickly, and every attempt is in them.
    static constexpr std::uint64_t kLeastBytes = std::uint64_t{1} << 20U;

    /// `stop`, once true, ends tidy() soon.
    JournalTidier(
        std::string directory,
        const std::atomic<bool>& stop,
        std::uint64_t least_bytes = kLeastBytes
    );

    /// Goes over the segments with a number below these. The last of the state is left for next
    /// time, when it is known what follows it.
    /// Errors: System, naming the path. What was done stays done.
    Status tidy(
        std::uint64_t state_before = std::numeric_limits<std::uint64_t>::max(),
        std::uint64_t results_before = std::numeric_limits<std::uint64_t>::max()
    );

  private:
    Status tidy_state(std::uint64_t before);
    Status tidy_results(std::uint64_t before);
    Status condense(const journal::SegmentFile& segment, std::uint64_t first_after);
    Status make_index(const journal::SegmentFile& segment);
    /// The number of the first record in `segments` from `at` on; 0 when there is none.
    Result<std::uint64_t>
    first_number(const std::vector<journal::SegmentFile>& segments, std::size_t at) const;
    Status replace(const std::string& name, const std::string& content) const;

    std::string directory_;
    const std::atomic<bool>& stop_;
    std::uint64_t least_bytes_;
    // Numbers of segments that need no other look.
    std::uint64_t state_done_ = 0;
    std::uint64_t results_done_ = 0;
    /// The last record of the state up to there.
    std::uint64_t last_number_ = 0;
};

}  // namespace muster
