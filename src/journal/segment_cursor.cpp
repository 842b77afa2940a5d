// SPDX-License-Identifier: Apache-2.0

#include "journal/segment_cursor.hpp"

#include <algorithm>
#include <utility>
#include <variant>

#include <fmt/format.h>

namespace muster::journal {

Result<SegmentCursor> SegmentCursor::open(
    const std::string& directory,
    const SegmentFile& segment,
    RecordReader& reader,
    const std::vector<TrialId>* wanted
) {
    Result<LineFile> file = LineFile::open(directory + "/" + segment.name);
    if (!file.ok()) {
        return file.error();
    }
    return SegmentCursor(std::move(*file), segment.name, reader, wanted);
}

SegmentCursor::SegmentCursor(
    LineFile file,
    std::string name,
    RecordReader& reader,
    const std::vector<TrialId>* wanted
)
    : file_(std::move(file)),
      name_(std::move(name)),
      reader_(&reader),
      wanted_(wanted) {}

Result<bool> SegmentCursor::advance() {
    while (true) {
        const Result<std::optional<LineFile::Line>> line = file_.next();
        if (!line.ok()) {
            return line.error();
        }
        if (!*line) {
            return false;
        }
        Result<bool> is_record = take(**line);
        if (!is_record.ok() || *is_record) {
            return is_record;
        }
    }
}

bool SegmentCursor::is_wanted(TrialId trial) const {
    return wanted_ == nullptr || std::binary_search(wanted_->begin(), wanted_->end(), trial);
}

Result<bool> SegmentCursor::take(const LineFile::Line& line) {
    if (wanted_ != nullptr && line.whole) {
        const std::optional<ResultGlance> glance = RecordReader::glance(line.text);
        if (glance && !is_wanted(glance->trial)) {
            stamp_ = glance->stamp;
            trial_ = glance->trial;
            fact_.reset();
            return true;
        }
    }
    Result<Record> record = line.whole ? reader_->read(line.text)
                                       : Result<Record>(Error{ErrorCode::Corrupt, "it is cut off"});
    if (!record.ok()) {
        ++damaged_;
        torn_ = !line.whole;
        if (problems_.size() < kMostProblems) {
            problems_.push_back(fmt::format("{}:{}: {}", name_, line.number, record.error().message)
            );
        }
        return false;
    }
    if (auto* header = std::get_if<Header>(&record->content)) {
        if (header->format > kFormat) {
            return Error{
                ErrorCode::Corrupt,
                fmt::format(
                    "{} has the journal format {} of muster {}; this version reads up to {}",
                    name_,
                    header->format,
                    header->muster_version,
                    kFormat
                )};
        }
        header_ = std::move(*header);
        return false;
    }
    auto* fact = std::get_if<Fact>(&record->content);
    if (fact == nullptr) {
        return false;
    }
    stamp_ = record->stamp;
    fact_ = std::move(*fact);
    if (const auto* result = std::get_if<ResultReported>(&*fact_)) {
        trial_ = result->trial;
        if (!is_wanted(trial_)) {
            fact_.reset();
        }
    }
    return true;
}

}  // namespace muster::journal
