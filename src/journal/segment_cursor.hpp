// SPDX-License-Identifier: Apache-2.0
//
// segment_cursor - the records of one segment, one after the other. Private to this folder.

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "muster/error.hpp"

#include "journal/line_file.hpp"
#include "journal/record.hpp"
#include "journal/segments.hpp"

namespace muster::journal {

/// Of damage to a journal, so much is told in words.
inline constexpr std::size_t kMostProblems = 10;

class SegmentCursor {
  public:
    /// `reader` outlives the cursor. `wanted`, if given, are the trials (in order) whose results
    /// are read whole; of others' only the stamp is.
    /// Errors: System.
    static Result<SegmentCursor> open(
        const std::string& directory,
        const SegmentFile& segment,
        RecordReader& reader,
        const std::vector<TrialId>* wanted
    );

    /// Goes to the next record that can be read; false at the end.
    /// Errors: System; Corrupt, when the segment is of a format that this version does not know.
    Result<bool> advance();

    const Stamp& stamp() const { return stamp_; }
    /// False for a result that is not wanted.
    bool has_fact() const { return fact_.has_value(); }
    /// REQUIRES: has_fact(), which is false then.
    Fact take_fact() { return std::exchange(fact_, std::nullopt).value(); }
    /// The trial of a result, wanted or not.
    TrialId trial_of_result() const { return trial_; }

    const std::string& name() const { return name_; }
    /// Once advance() was called: what the header says.
    const std::optional<Header>& header() const { return header_; }
    /// Lines that could not be read so far.
    std::uint64_t damaged() const { return damaged_; }
    /// One of them was the last, and ended without a newline: its writer was killed.
    bool is_torn() const { return torn_; }
    /// The first of them in words: "state-000001.log:12: the checksum differs".
    const std::vector<std::string>& problems() const { return problems_; }
    std::uint64_t bytes_read() const { return file_.bytes_read(); }

  private:
    SegmentCursor(
        LineFile file,
        std::string name,
        RecordReader& reader,
        const std::vector<TrialId>* wanted
    );
    /// True when the line is a record of the wanted kind or one to be counted.
    Result<bool> take(const LineFile::Line& line);
    bool is_wanted(TrialId trial) const;

    LineFile file_;
    std::string name_;
    RecordReader* reader_;
    const std::vector<TrialId>* wanted_;
    Stamp stamp_;
    std::optional<Fact> fact_;
    TrialId trial_;
    std::optional<Header> header_;
    std::uint64_t damaged_ = 0;
    bool torn_ = false;
    std::vector<std::string> problems_;
};

}  // namespace muster::journal
