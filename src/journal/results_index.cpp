// SPDX-License-Identifier: Apache-2.0

#include "journal/results_index.hpp"

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>
#include <variant>

#include "journal/line_file.hpp"

namespace muster::journal {

std::string index_name(const SegmentFile& segment) {
    return segment.name.substr(0, segment.name.rfind('.')) + ".index";
}

std::optional<IndexOfSegment> read_index(const std::string& directory, const SegmentFile& segment) {
    Result<LineFile> file = LineFile::open(directory + "/" + index_name(segment));
    if (!file.ok()) {
        return std::nullopt;
    }
    const Result<std::optional<LineFile::Line>> line = file->next();
    if (!line.ok() || !*line || !(*line)->whole) {
        return std::nullopt;
    }
    Result<Record> record = RecordReader().read((*line)->text);
    auto* index = record.ok() ? std::get_if<ResultsIndex>(&record->content) : nullptr;
    std::error_code error;
    const auto bytes = std::filesystem::file_size(directory + "/" + segment.name, error);
    if (index == nullptr || error || bytes != index->bytes) {
        return std::nullopt;
    }
    return IndexOfSegment{std::move(*index), record->stamp.at};
}

bool concerns(const ResultsIndex& index, const std::vector<TrialId>& trials) {
    return std::any_of(index.trials.begin(), index.trials.end(), [&](const TrialRange& range) {
        const auto found = std::lower_bound(trials.begin(), trials.end(), range.first);
        return found != trials.end() && *found <= range.last;
    });
}

std::vector<TrialRange> ranges_of(std::vector<TrialId> trials) {
    std::sort(trials.begin(), trials.end());
    std::vector<TrialRange> ranges;
    for (const TrialId trial : trials) {
        if (!ranges.empty() && trial.value <= ranges.back().last.value + 1U) {
            ranges.back().last = trial;
        } else {
            ranges.push_back({trial, trial});
        }
    }
    return ranges;
}

}  // namespace muster::journal
