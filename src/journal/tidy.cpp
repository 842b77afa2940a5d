// SPDX-License-Identifier: Apache-2.0

#include "journal/tidy.hpp"

#include <cerrno>
#include <cstdio>
#include <optional>
#include <string_view>
#include <utility>

#include <fcntl.h>
#include <unistd.h>

#include "journal/condense.hpp"
#include "journal/record.hpp"
#include "journal/results_index.hpp"
#include "journal/segment_cursor.hpp"
#include "journal/segments.hpp"
#include "posix/unique_fd.hpp"

namespace muster {
namespace {

using journal::Extent;
using journal::RecordReader;
using journal::SegmentCursor;
using journal::SegmentFile;

/// The numbers that a segment holds, as long as they follow each other.
class Row {
  public:
    void add(std::uint64_t number) {
        is_whole_ = is_whole_ && (extent_.first == 0 || number == extent_.last + 1);
        extent_.first = extent_.first == 0 ? number : extent_.first;
        extent_.last = number;
    }
    const Extent& extent() const { return extent_; }
    std::uint64_t count() const {
        return extent_.first == 0 ? 0 : extent_.last - extent_.first + 1;
    }

    /// Nothing is missing: the segment can be replaced by what was read of it.
    bool is_sound(const SegmentCursor& cursor) const {
        const std::uint64_t torn = cursor.is_torn() ? 1 : 0;
        return is_whole_ && extent_.first > 0 && cursor.damaged() == torn && cursor.header();
    }

  private:
    Extent extent_;
    bool is_whole_ = true;
};

int write_whole(int fd, std::string_view bytes) {
    while (!bytes.empty()) {
        const ssize_t count = ::write(fd, bytes.data(), bytes.size());
        if (count < 0 && errno == EINTR) {
            continue;
        }
        if (count <= 0) {
            return count < 0 ? errno : ENOSPC;
        }
        bytes.remove_prefix(static_cast<std::size_t>(count));
    }
    return ::fsync(fd) == 0 ? 0 : errno;
}

}  // namespace

JournalTidier::JournalTidier(
    std::string directory,
    const std::atomic<bool>& stop,
    std::uint64_t least_bytes
)
    : directory_(std::move(directory)),
      stop_(stop),
      least_bytes_(least_bytes) {}

Status JournalTidier::tidy(std::uint64_t state_before, std::uint64_t results_before) {
    Status state = tidy_state(state_before);
    Status results = tidy_results(results_before);
    return state.ok() ? results : state;
}

Status JournalTidier::replace(const std::string& name, const std::string& content) const {
    const std::string path = directory_ + "/" + name;
    const std::string aside = path + ".new";
    const UniqueFd fd(::open(aside.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
    int error = fd ? write_whole(fd.get(), content) : errno;
    if (error == 0 && ::rename(aside.c_str(), path.c_str()) != 0) {
        error = errno;
    }
    if (error != 0) {
        ::unlink(aside.c_str());
        return journal::system_error("write", path, error);
    }
    error = journal::sync_directory(directory_);
    return error == 0 ? Status(Ok{}) : journal::system_error("sync", directory_, error);
}

Result<std::uint64_t>
JournalTidier::first_number(const std::vector<SegmentFile>& segments, std::size_t at) const {
    RecordReader reader;
    for (; at < segments.size(); ++at) {
        Result<SegmentCursor> cursor =
            SegmentCursor::open(directory_, segments[at], reader, nullptr);
        if (!cursor.ok()) {
            return cursor.error();
        }
        const Result<bool> is_there = cursor->advance();
        if (!is_there.ok()) {
            return is_there.error();
        }
        if (*is_there) {
            return cursor->stamp().number;
        }
    }
    return std::uint64_t{0};
}

Status JournalTidier::tidy_state(std::uint64_t before) {
    const Result<std::vector<SegmentFile>> segments =
        journal::list_segments(directory_, journal::kStateStem);
    if (!segments.ok()) {
        return segments.error();
    }
    for (std::size_t index = 0; index < segments->size(); ++index) {
        const SegmentFile& segment = (*segments)[index];
        if (segment.number <= state_done_) {
            continue;
        }
        const Result<std::uint64_t> after = first_number(*segments, index + 1);
        if (!after.ok()) {
            return after.error();
        }
        if (segment.number >= before || *after == 0 || stop_) {
            break;
        }
        if (Status condensed = condense(segment, *after); !condensed.ok()) {
            return condensed;
        }
    }
    return Ok{};
}

Status JournalTidier::condense(const SegmentFile& segment, std::uint64_t first_after) {
    RecordReader reader;
    Result<SegmentCursor> cursor = SegmentCursor::open(directory_, segment, reader, nullptr);
    if (!cursor.ok()) {
        return cursor.error();
    }
    Row row;
    std::optional<journal::Condenser> condenser;
    while (true) {
        const Result<bool> is_there = cursor->advance();
        if (!is_there.ok()) {
            return is_there.error();
        }
        if (stop_) {
            return Ok{};
        }
        const bool was_condensed = cursor->header() && cursor->header()->condensed;
        if (was_condensed) {
            last_number_ = cursor->header()->condensed->extent.last;
            state_done_ = segment.number;
            return Ok{};
        }
        if (!*is_there) {
            break;
        }
        if (!condenser) {
            condenser.emplace(cursor->stamp().number, std::string(journal::UtcClock().text()));
        }
        row.add(cursor->stamp().number);
        condenser->take(cursor->take_fact(), cursor->stamp().at);
    }
    const bool is_alone = row.extent().first > last_number_ && row.extent().last < first_after;
    if (row.is_sound(*cursor) && is_alone) {
        const std::string& lines = condenser->finish();
        journal::Header header = *cursor->header();
        header.condensed = journal::Condensed{row.extent(), condenser->lines()};
        std::string content;
        journal::append_record(header, journal::UtcClock().text(), content);
        if (condenser->lines() < row.count() && cursor->bytes_read() >= least_bytes_) {
            if (Status replaced = replace(segment.name, content + lines); !replaced.ok()) {
                return replaced;
            }
        }
    }
    last_number_ = std::max(last_number_, row.extent().last);
    state_done_ = segment.number;
    return Ok{};
}

Status JournalTidier::tidy_results(std::uint64_t before) {
    const Result<std::vector<SegmentFile>> segments =
        journal::list_segments(directory_, journal::kResultsStem);
    if (!segments.ok()) {
        return segments.error();
    }
    for (const SegmentFile& segment : *segments) {
        if (segment.number <= results_done_ || segment.number >= before || stop_) {
            continue;
        }
        if (!read_index(directory_, segment)) {
            if (Status made = make_index(segment); !made.ok()) {
                return made;
            }
        }
        results_done_ = stop_ ? results_done_ : segment.number;
    }
    return Ok{};
}

Status JournalTidier::make_index(const SegmentFile& segment) {
    RecordReader reader;
    // Results are only glanced at.
    const std::vector<TrialId> none;
    Result<SegmentCursor> cursor = SegmentCursor::open(directory_, segment, reader, &none);
    if (!cursor.ok()) {
        return cursor.error();
    }
    Row row;
    std::vector<TrialId> trials;
    TimePoint until;
    while (!stop_) {
        const Result<bool> is_there = cursor->advance();
        if (!is_there.ok()) {
            return is_there.error();
        }
        if (!*is_there) {
            break;
        }
        row.add(cursor->stamp().number);
        until = std::max(until, cursor->stamp().at);
        trials.push_back(cursor->trial_of_result());
    }
    if (stop_ || !row.is_sound(*cursor) || cursor->bytes_read() < least_bytes_) {
        return Ok{};
    }
    std::string content;
    append_record(
        journal::ResultsIndex{
            cursor->bytes_read(), row.extent(), journal::ranges_of(std::move(trials))},
        until,
        journal::UtcClock().text(),
        content
    );
    return replace(journal::index_name(segment), content);
}

}  // namespace muster
