// SPDX-License-Identifier: Apache-2.0

#include "library/trial_records.hpp"

#include <algorithm>
#include <optional>
#include <utility>

#include "cli/experiment_view.hpp"
#include "head/trial.hpp"
#include "journal/reader.hpp"

namespace muster {
namespace {

TrialStatus status_of(TrialState state) {
    switch (state) {
        case TrialState::Pending:
        case TrialState::Running:
        case TrialState::Stopping:
            return TrialStatus::Pending;
        case TrialState::Paused:
            return TrialStatus::Paused;
        case TrialState::Completed:
            return TrialStatus::Completed;
        case TrialState::Stopped:
            return TrialStatus::Stopped;
        case TrialState::Failed:
            return TrialStatus::Failed;
        case TrialState::Cancelled:
            return TrialStatus::Cancelled;
    }
    return TrialStatus::Pending;
}

TrialRecord record_of(const ExperimentView& view, TrialId id) {
    const Trial& trial = *view.head->trial(id);
    TrialRecord record{.number = id.value, .id = to_string(id)};
    record.status = status_of(trial.state);
    record.config = trial.config;
    record.directory = view.directory + "/" + record.id;
    const bool has_failed =
        trial.state == TrialState::Failed || trial.state == TrialState::Cancelled;
    if (trial.progress != nullptr && has_failed) {
        record.error = trial.progress->reason;
    }
    return record;
}

/// Takes a report in as the head does: a later attempt replaces what earlier ones reported from its
/// own first step on.
class Reports {
  public:
    explicit Reports(std::vector<TrialRecord>& records)
        : records_(records),
          latest_(records.size()) {}

    void take(const ResultReported& reported, std::uint32_t first_epoch) {
        const std::size_t place = reported.trial.value;
        if (reported.overrun || reported.attempt.epoch < first_epoch) {
            return;
        }
        std::vector<TrialResult>& results = records_[place].results;
        if (latest_[place] && *latest_[place] < reported.attempt) {
            results.erase(
                std::remove_if(
                    results.begin(),
                    results.end(),
                    [&](const TrialResult& old) { return old.step >= reported.result.step; }
                ),
                results.end()
            );
        }
        latest_[place] = reported.attempt;
        results.push_back(reported.result);
    }

  private:
    std::vector<TrialRecord>& records_;
    std::vector<std::optional<AttemptId>> latest_;
};

}  // namespace

Result<std::vector<TrialRecord>> read_trial_records(const std::string& directory) {
    const Result<ExperimentView> view = open_experiment(directory);
    if (!view.ok()) {
        return view.error();
    }
    std::vector<TrialRecord> records;
    for (std::uint32_t number = 0; number < view->head->trial_count(); ++number) {
        records.push_back(record_of(*view, TrialId{number}));
    }
    const std::string journal = view->directory + "/journal";
    if (!has_journal(journal)) {
        return records;
    }
    Reports reports(records);
    const Result<JournalReading> read =
        read_results(journal, std::nullopt, [&](const ResultReported& reported, TimePoint /*at*/) {
            const Trial* trial = view->head->trial(reported.trial);
            if (trial != nullptr) {
                reports.take(reported, trial->progress ? trial->progress->first_epoch : 0);
            }
        });
    if (!read.ok()) {
        return read.error();
    }
    return records;
}

}  // namespace muster
