// SPDX-License-Identifier: Apache-2.0
//
// record - one line of a journal: a checksum and the JSON of what happened. docs/journal.md says
// what each kind holds; writing is in encode_record.cpp, reading in decode_record.cpp.

#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "muster/config.hpp"
#include "muster/error.hpp"

#include "base/time.hpp"
#include "protocol/facts.hpp"

namespace muster::journal {

/// The format that this version writes, and the newest that it reads.
inline constexpr std::int64_t kFormat = 1;

/// The numbers of the records that a segment was written with, from `first` to `last` without a
/// gap.
struct Extent {
    std::uint64_t first = 0;
    std::uint64_t last = 0;

    friend bool operator==(const Extent&, const Extent&) = default;
};

/// Said by the header of a segment whose records were put together. Those that are there now are
/// numbered from `extent.first` without a gap, so that they can be read like any others.
struct Condensed {
    /// What it stands for.
    Extent extent;
    /// So many lines follow the header.
    std::uint64_t lines = 0;

    friend bool operator==(const Condensed&, const Condensed&) = default;
};

/// The first record of every segment.
struct Header {
    std::int64_t format = kFormat;
    std::string muster_version;
    std::string experiment;
    std::optional<Condensed> condensed = std::nullopt;

    friend bool operator==(const Header&, const Header&) = default;
};

/// First and last of a row of trials.
struct TrialRange {
    TrialId first;
    TrialId last;

    friend bool operator==(const TrialRange&, const TrialRange&) = default;
};

/// Which trials have results in a segment that grows no more: the only record of a file beside it.
struct ResultsIndex {
    /// The size of the segment. An index that says another one is of no use.
    std::uint64_t bytes = 0;
    Extent extent;
    /// In order, apart from each other.
    std::vector<TrialRange> trials;

    friend bool operator==(const ResultsIndex&, const ResultsIndex&) = default;
};

/// What every record says besides its content. Facts of the state are numbered from 1 without a
/// gap through all segments, results likewise; headers and indices have number 0.
struct Stamp {
    std::uint64_t number = 0;
    TimePoint at;
};

struct Record {
    Stamp stamp;
    std::variant<Header, Fact, ResultsIndex> content;
};

/// Appends whole lines, with the newline, to `out`. `utc` is for people:
/// "2026-11-30T21:40:10.123Z".
void append_record(const Fact& fact, Stamp stamp, std::string_view utc, std::string& out);
void append_record(const Header& header, std::string_view utc, std::string& out);
/// `until`: the latest time of a result in the segment.
void append_record(
    const ResultsIndex& index,
    TimePoint until,
    std::string_view utc,
    std::string& out
);

/// What is seen of a result without reading all of it.
struct ResultGlance {
    Stamp stamp;
    TrialId trial;
};

/// Reads lines; configs with the same keys share one schema.
class RecordReader {
  public:
    /// `line` comes without its newline.
    /// Errors: Corrupt, saying what is wrong.
    Result<Record> read(std::string_view line);

    /// A cheap look that spares most reads: a result whose checksum is right, written as this
    /// version writes it. Nothing for anything else, which read() is to judge.
    static std::optional<ResultGlance> glance(std::string_view line);

  private:
    Config config_of(std::string_view json);
    std::shared_ptr<const ConfigSchema> schema_for(std::vector<std::string> keys);

    std::vector<std::shared_ptr<const ConfigSchema>> schemas_;
};

}  // namespace muster::journal
