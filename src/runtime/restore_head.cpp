// SPDX-License-Identifier: Apache-2.0

#include "runtime/restore_head.hpp"

#include <algorithm>
#include <map>
#include <variant>

#include <fmt/format.h>

#include "head/trial.hpp"
#include "journal/reader.hpp"

namespace muster {
namespace {

constexpr std::size_t kMostProblems = 10;

void take_reading(Restored& restored, const JournalReading& reading) {
    restored.last = std::max(restored.last, reading.last);
    restored.problems.insert(
        restored.problems.end(), reading.problems.begin(), reading.problems.end()
    );
    if (reading.missing > 0) {
        restored.problems.push_back(
            fmt::format("{} records of the journal are missing", reading.missing)
        );
    }
}

}  // namespace

void NodesOfTrials::take(const Fact& fact) {
    if (std::holds_alternative<RunStarted>(fact)) {
        of_run_.clear();
    } else if (const auto* joined = std::get_if<NodeJoined>(&fact)) {
        const auto known = std::find(names_.begin(), names_.end(), joined->name);
        of_run_[joined->node] = static_cast<std::uint32_t>(known - names_.begin());
        if (known == names_.end()) {
            names_.push_back(joined->name);
        }
    } else if (const auto* started = std::get_if<AttemptStarted>(&fact)) {
        const std::vector<BundlePlacement>& bundles = started->placement.bundles;
        const auto place = bundles.empty() ? of_run_.end() : of_run_.find(bundles.front().node);
        if (place != of_run_.end()) {
            places_.resize(std::max<std::size_t>(places_.size(), started->trial.value + 1U));
            places_[started->trial.value] = place->second + 1;
        }
    }
}

const std::string& NodesOfTrials::name_of(TrialId trial) const {
    static const std::string nowhere;
    const bool known = trial.value < places_.size() && places_[trial.value] != 0;
    return known ? names_[places_[trial.value] - 1] : nowhere;
}

Result<Restored> restore_head(const std::string& directory, Head& head) {
    Restored restored;
    // The end of a trial that runs again later has taken in what was reported before it.
    std::map<TrialId, TimePoint> taken_in;
    const auto restore = [&](const Fact& fact, TimePoint at) {
        const Status status = head.restore(fact, at);
        if (!status.ok() && restored.problems.size() < kMostProblems) {
            restored.problems.push_back(status.error().message);
        }
    };

    const Result<JournalReading> state =
        read_journal(directory, [&](const Fact& fact, TimePoint at) {
            restore(fact, at);
            restored.nodes.take(fact);
            if (const auto* ended = std::get_if<TrialEnded>(&fact)) {
                taken_in[ended->trial] = at;
            } else if (const auto* run = std::get_if<RunEnded>(&fact)) {
                restored.ended = run->end;
            } else if (std::holds_alternative<RunStarted>(fact)) {
                restored.ended.reset();
            }
        });
    if (!state.ok()) {
        return state.error();
    }
    const Result<JournalReading> results =
        read_results(directory, std::nullopt, [&](const ResultReported& result, TimePoint at) {
            const Trial* trial = head.trial(result.trial);
            const auto ended = taken_in.find(result.trial);
            const bool is_new = ended == taken_in.end() || at > ended->second;
            if (trial != nullptr && !is_final(trial->state) && is_new) {
                restore(result, at);
            }
        });
    if (!results.ok()) {
        return results.error();
    }
    take_reading(restored, *state);
    take_reading(restored, *results);
    restored.next_state = state->next;
    restored.next_result = results->next;
    return restored;
}

}  // namespace muster
