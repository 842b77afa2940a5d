// SPDX-License-Identifier: Apache-2.0
//
// segments - the files of a journal: "state-000001.log", "results-000001.log", ….

#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "muster/error.hpp"

#include "journal/files.hpp"

namespace muster::journal {

inline constexpr std::string_view kStateStem = "state";
inline constexpr std::string_view kResultsStem = "results";

struct SegmentFile {
    std::uint64_t number = 0;
    /// "state-000001.log"
    std::string name;
};

/// The segments of one stem, by number. A directory that is not there has none.
/// Errors: System, when the directory can't be read.
Result<std::vector<SegmentFile>> list_segments(const std::string& directory, std::string_view stem);

std::string segment_name(std::string_view stem, std::uint64_t number);

/// A new name in a directory is safe only once the directory itself is on disk. 0, or an errno.
int sync_directory(const std::string& directory);

/// "cannot write /x/y: No space left on device".
Error system_error(std::string_view action, std::string_view path, int error);

/// The current time for people: "2026-11-30T21:40:10.123Z". Cheap to call often.
class UtcClock {
  public:
    std::string_view text();

  private:
    std::int64_t second_ = -1;
    std::string text_;
};

/// Appends to the newest segment of a stem and begins new ones. Keeps whatever is not yet known to
/// be on disk, so that nothing is lost when the system refuses: after a failed write or sync the
/// next call tries again, in a new segment when the old one can't be trusted any more.
class SegmentAppender {
  public:
    struct Options {
        std::string directory;
        std::string stem;
        std::string experiment;
        std::uint64_t segment_bytes = 0;
        /// The number of the first segment to make.
        std::uint64_t number = 1;
        std::shared_ptr<JournalFiles> files = std::make_shared<JournalFiles>();
    };

    explicit SegmentAppender(Options options);
    ~SegmentAppender();
    SegmentAppender(const SegmentAppender&) = delete;
    SegmentAppender& operator=(const SegmentAppender&) = delete;

    /// Takes whole lines in; they are written by the next write().
    void add(std::string_view lines) { pending_ += lines; }

    /// Hands everything to the system. Makes the first or next segment when there is need.
    /// Errors: System; what was not written stays pending.
    Status write();

    /// write(), then fdatasync(). Nothing is pending afterwards.
    /// Errors: System; all of it stays pending.
    Status sync();

    /// Segments with a number below this grow no more.
    std::uint64_t open_number() const { return fd_ >= 0 ? options_.number - 1 : options_.number; }

    /// Bytes that are not known to be on disk.
    std::size_t pending() const { return pending_.size(); }

  private:
    Status open_next();
    /// 0, or the errno of what went wrong.
    int write_out(std::string_view bytes);
    void abandon();

    Options options_;
    std::string path_;
    int fd_ = -1;
    std::uint64_t size_ = 0;
    std::string pending_;
    /// How much of pending_ the current segment has been given.
    std::size_t written_ = 0;
};

}  // namespace muster::journal
