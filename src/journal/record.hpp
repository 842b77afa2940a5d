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

/// The first record of every segment.
struct Header {
    std::int64_t format = kFormat;
    std::string muster_version;
    std::string experiment;

    friend bool operator==(const Header&, const Header&) = default;
};

/// What every record says besides its content. Facts of the state are numbered from 1 without a
/// gap through all segments, results likewise; headers have number 0.
struct Stamp {
    std::uint64_t number = 0;
    TimePoint at;
};

struct Record {
    Stamp stamp;
    std::variant<Header, Fact> content;
};

/// Appends whole lines, with the newline, to `out`. `utc` is for people:
/// "2026-11-30T21:40:10.123Z".
void append_record(const Fact& fact, Stamp stamp, std::string_view utc, std::string& out);
void append_record(const Header& header, std::string_view utc, std::string& out);

/// Reads lines; configs with the same keys share one schema.
class RecordReader {
  public:
    /// `line` comes without its newline.
    /// Errors: Corrupt, saying what is wrong.
    Result<Record> read(std::string_view line);

    /// Whether `line` may be a result of `trial`: a cheap look that spares most reads. Never false
    /// for one that is.
    static bool may_concern(std::string_view line, TrialId trial);

  private:
    std::shared_ptr<const ConfigSchema> schema_for(std::vector<std::string> keys);

    std::vector<std::shared_ptr<const ConfigSchema>> schemas_;
};

}  // namespace muster::journal
