// SPDX-License-Identifier: Apache-2.0

#include "journal/reader.hpp"

#include <algorithm>
#include <cerrno>
#include <utility>
#include <variant>

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include "journal/record.hpp"
#include "journal/segments.hpp"

namespace muster {
namespace {

using journal::Header;
using journal::Record;
using journal::RecordReader;
using journal::SegmentFile;

// Reasons for a function: a file's lines, and what is done with each, are told apart here.
using LineReader = std::function<Status(std::string_view line, std::uint64_t number, bool whole)>;

/// Gives every line of a file to `reader`, the last one too when it has no newline. Memory is
/// bounded by the longest line, and a line by kLongestLine: what is longer can be no record.
Status read_lines(const std::string& path, const LineReader& reader) {
    constexpr std::size_t kBlock = std::size_t{1} << 18U;
    constexpr std::size_t kLongestLine = std::size_t{1} << 26U;
    const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return journal::system_error("open", path, errno);
    }
    Status status = Ok{};
    std::string text;
    std::uint64_t number = 0;
    while (status.ok()) {
        const std::size_t kept = text.size();
        text.resize(kept + kBlock);
        const ssize_t count = ::read(fd, text.data() + kept, kBlock);
        if (count < 0 && errno == EINTR) {
            text.resize(kept);
            continue;
        }
        if (count < 0) {
            status = journal::system_error("read", path, errno);
            break;
        }
        text.resize(kept + static_cast<std::size_t>(count));
        std::size_t start = 0;
        std::size_t end = text.find('\n', kept);
        for (; end != std::string::npos && status.ok(); end = text.find('\n', start)) {
            status = reader(std::string_view(text).substr(start, end - start), ++number, true);
            start = end + 1;
        }
        text.erase(0, start);
        if (count == 0 || text.size() > kLongestLine) {
            if (!text.empty() && status.ok()) {
                status = reader(text, ++number, false);
            }
            text.clear();
        }
        if (count == 0) {
            break;
        }
    }
    ::close(fd);
    return status;
}

/// Reads all segments of one stem, in order.
class StemReader {
  public:
    using Deliver = std::function<void(Fact fact, TimePoint at)>;

    StemReader(std::string directory, std::optional<TrialId> trial, Deliver deliver)
        : directory_(std::move(directory)),
          trial_(trial),
          deliver_(std::move(deliver)) {}

    Result<JournalReading> read(const std::vector<SegmentFile>& segments) {
        for (const SegmentFile& segment : segments) {
            const Status status = read_lines(
                directory_ + "/" + segment.name,
                [&](std::string_view line, std::uint64_t number, bool whole) {
                    return take(segment, line, number, whole);
                }
            );
            if (!status.ok()) {
                return status.error();
            }
        }
        return std::move(found_);
    }

  private:
    Status
    take(const SegmentFile& segment, std::string_view line, std::uint64_t line_number, bool whole) {
        // Numbers can't be checked when most lines are passed over.
        if (trial_ && line_number > 1 && !RecordReader::may_concern(line, *trial_)) {
            return Ok{};
        }
        Result<Record> record =
            whole ? reader_.read(line) : Result<Record>(Error{ErrorCode::Corrupt, "it is cut off"});
        if (!record.ok()) {
            ++found_.damaged;
            if (found_.problems.size() < kMostProblems) {
                found_.problems.push_back(
                    fmt::format("{}:{}: {}", segment.name, line_number, record.error().message)
                );
            }
            return Ok{};
        }
        if (const auto* header = std::get_if<Header>(&record->content)) {
            return check_format(segment, *header);
        }
        if (record->stamp.number < found_.next) {
            // Written again after a failed commit.
            return Ok{};
        }
        found_.missing += trial_ ? 0 : record->stamp.number - found_.next;
        found_.next = record->stamp.number + 1;
        found_.last = std::max(found_.last, record->stamp.at);
        Fact& fact = std::get<Fact>(record->content);
        const auto* result = std::get_if<ResultReported>(&fact);
        if (!trial_ || (result != nullptr && result->trial == *trial_)) {
            ++found_.records;
            deliver_(std::move(fact), record->stamp.at);
        }
        return Ok{};
    }

    Status check_format(const SegmentFile& segment, const Header& header) const {
        if (header.format <= journal::kFormat) {
            return Ok{};
        }
        return Error{
            ErrorCode::Corrupt,
            fmt::format(
                "{}/{} has the journal format {} of muster {}; this version reads up to {}",
                directory_,
                segment.name,
                header.format,
                header.muster_version,
                journal::kFormat
            )};
    }

    static constexpr std::size_t kMostProblems = 10;

    std::string directory_;
    std::optional<TrialId> trial_;
    Deliver deliver_;
    RecordReader reader_;
    JournalReading found_;
};

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
    StemReader stem(directory, std::nullopt, [&](const Fact& fact, TimePoint at) {
        reader(fact, at);
    });
    return stem.read(*segments);
}

Result<JournalReading> read_results(
    const std::string& directory,
    std::optional<TrialId> trial,
    const ResultReader& reader
) {
    const Result<std::vector<SegmentFile>> segments =
        journal::list_segments(directory, journal::kResultsStem);
    if (!segments.ok()) {
        return segments.error();
    }
    StemReader stem(directory, trial, [&](const Fact& fact, TimePoint at) {
        if (const auto* result = std::get_if<ResultReported>(&fact)) {
            reader(*result, at);
        }
    });
    return stem.read(*segments);
}

}  // namespace muster
