// SPDX-License-Identifier: Apache-2.0
//
// reader - the records of all segments of a stem, merged by their numbers. Segments follow each
// other, so one is open at a time. Only where records were written again after a failed commit, or
// somebody copied files, two hold the same numbers: then each record comes from whichever of them
// still has it, in its place.

#include "journal/reader.hpp"

#include <algorithm>
#include <deque>
#include <utility>
#include <variant>

#include <fmt/format.h>

#include "journal/record.hpp"
#include "journal/results_index.hpp"
#include "journal/segment_cursor.hpp"
#include "journal/segments.hpp"

namespace muster {
namespace {

using journal::IndexOfSegment;
using journal::RecordReader;
using journal::SegmentCursor;
using journal::SegmentFile;

/// A segment that is not open yet.
struct Ahead {
    SegmentFile segment;
    /// The number of its first record; 0 when nothing is known of any.
    std::uint64_t first = 0;
    /// When nothing in it is wanted.
    std::optional<IndexOfSegment> skipped;
};

/// Of two records with the same number, one of a condensed segment stands for more. Else the later
/// segment's counts: a run that was taken for dead may have written the other.
bool comes_before(const SegmentCursor& left, const SegmentCursor& right) {
    const auto rank = [](const SegmentCursor& cursor) {
        const bool is_condensed = cursor.header() && cursor.header()->condensed;
        return std::pair(cursor.stamp().number, is_condensed ? 0 : 1);
    };
    return rank(left) != rank(right) ? rank(left) < rank(right) : left.name() > right.name();
}

class StemReader {
  public:
    using Deliver = std::function<void(Fact&& fact, TimePoint at)>;

    StemReader(std::string directory, const std::vector<TrialId>* wanted, Deliver deliver)
        : directory_(std::move(directory)),
          wanted_(wanted),
          deliver_(std::move(deliver)) {}

    Result<JournalReading> read(const std::vector<SegmentFile>& segments) {
        for (const SegmentFile& segment : segments) {
            if (Status looked = look_at(segment); !looked.ok()) {
                return looked.error();
            }
        }
        std::stable_sort(ahead_.begin(), ahead_.end(), [](const Ahead& left, const Ahead& right) {
            return left.first < right.first;
        });
        while (!ahead_.empty() || !open_.empty()) {
            if (Status stepped = step(); !stepped.ok()) {
                return stepped.error();
            }
        }
        return std::move(found_);
    }

  private:
    Status look_at(const SegmentFile& segment) {
        if (wanted_ != nullptr) {
            std::optional<IndexOfSegment> index = journal::read_index(directory_, segment);
            if (index && !concerns(index->index, *wanted_)) {
                const std::uint64_t first = index->index.extent.first;
                ahead_.push_back({segment, first, std::move(index)});
                return Ok{};
            }
        }
        Result<SegmentCursor> cursor = open(segment);
        if (!cursor.ok()) {
            return cursor.error();
        }
        const Result<bool> is_there = cursor->advance();
        if (!is_there.ok()) {
            return is_there.error();
        }
        const std::optional<journal::Header>& header = cursor->header();
        const bool is_condensed = header && header->condensed;
        const std::uint64_t known = is_condensed ? header->condensed->extent.first : 0;
        ahead_.push_back({segment, *is_there ? cursor->stamp().number : known, std::nullopt});
        return Ok{};
    }

    Result<SegmentCursor> open(const SegmentFile& segment) {
        return SegmentCursor::open(directory_, segment, reader_, wanted_);
    }

    /// Opens the next segment when its turn has come, else takes the next record.
    Status step() {
        const auto next = std::min_element(open_.begin(), open_.end(), comes_before);
        if (!ahead_.empty() &&
            (next == open_.end() || ahead_.front().first <= next->stamp().number)) {
            const Ahead ahead = std::move(ahead_.front());
            ahead_.pop_front();
            return begin(ahead);
        }
        take(*next);
        return advance(next);
    }

    Status begin(const Ahead& ahead) {
        if (ahead.skipped) {
            count_missing(ahead.segment.name, ahead.skipped->index.extent.first);
            found_.next = std::max(found_.next, ahead.skipped->index.extent.last + 1);
            found_.last = std::max(found_.last, ahead.skipped->until);
            return Ok{};
        }
        Result<SegmentCursor> cursor = open(ahead.segment);
        if (!cursor.ok()) {
            return cursor.error();
        }
        open_.push_back(std::move(*cursor));
        return advance(std::prev(open_.end()));
    }

    Status advance(const std::deque<SegmentCursor>::iterator& cursor) {
        const Result<bool> is_there = cursor->advance();
        if (!is_there.ok()) {
            return is_there.error();
        }
        if (!*is_there) {
            end(*cursor);
            open_.erase(cursor);
        }
        return Ok{};
    }

    void end(const SegmentCursor& cursor) {
        found_.damaged += cursor.damaged();
        for (const std::string& problem : cursor.problems()) {
            tell(problem);
        }
        if (cursor.header() && cursor.header()->condensed) {
            const journal::Condensed& condensed = *cursor.header()->condensed;
            count_missing(cursor.name(), condensed.extent.first + condensed.lines);
            found_.next = std::max(found_.next, condensed.extent.last + 1);
        }
    }

    void take(SegmentCursor& cursor) {
        const journal::Stamp& stamp = cursor.stamp();
        if (stamp.number < found_.next) {
            // It was there already.
            return;
        }
        count_missing(cursor.name(), stamp.number);
        found_.next = stamp.number + 1;
        found_.last = std::max(found_.last, stamp.at);
        if (cursor.has_fact()) {
            ++found_.records;
            deliver_(cursor.take_fact(), stamp.at);
        }
    }

    /// The next record that is there has the number `next`.
    void count_missing(const std::string& segment, std::uint64_t next) {
        if (next > found_.next) {
            found_.missing += next - found_.next;
            tell(fmt::format("{}: records {} to {} are missing", segment, found_.next, next - 1));
        }
    }

    void tell(const std::string& problem) {
        if (found_.problems.size() < journal::kMostProblems) {
            found_.problems.push_back(problem);
        }
    }

    std::string directory_;
    const std::vector<TrialId>* wanted_;
    Deliver deliver_;
    RecordReader reader_;
    std::deque<Ahead> ahead_;
    std::deque<SegmentCursor> open_;
    JournalReading found_;
};

Result<JournalReading> read_some_results(
    const std::string& directory,
    const std::vector<TrialId>* wanted,
    const ResultReader& reader
) {
    const Result<std::vector<SegmentFile>> segments =
        journal::list_segments(directory, journal::kResultsStem);
    if (!segments.ok()) {
        return segments.error();
    }
    StemReader stem(directory, wanted, [&](const Fact& fact, TimePoint at) {
        if (const auto* result = std::get_if<ResultReported>(&fact)) {
            reader(*result, at);
        }
    });
    return stem.read(*segments);
}

}  // namespace

bool has_journal(const std::string& directory) {
    const Result<std::vector<SegmentFile>> segments =
        journal::list_segments(directory, journal::kStateStem);
    return segments.ok() && !segments->empty();
}

Result<JournalReading> read_journal(const std::string& directory, const FactReader& reader) {
    const Result<std::vector<SegmentFile>> segments =
        journal::list_segments(directory, journal::kStateStem);
    if (!segments.ok()) {
        return segments.error();
    }
    if (segments->empty()) {
        return Error{ErrorCode::NotFound, "there is no journal in " + directory};
    }
    StemReader stem(directory, nullptr, reader);
    return stem.read(*segments);
}

Result<JournalReading> read_results_of(
    const std::string& directory,
    const std::vector<TrialId>& trials,
    const ResultReader& reader
) {
    return read_some_results(directory, &trials, reader);
}

Result<JournalReading> read_results(
    const std::string& directory,
    std::optional<TrialId> trial,
    const ResultReader& reader
) {
    if (!trial) {
        return read_some_results(directory, nullptr, reader);
    }
    const std::vector<TrialId> wanted{*trial};
    return read_some_results(directory, &wanted, reader);
}

}  // namespace muster
