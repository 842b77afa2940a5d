// SPDX-License-Identifier: Apache-2.0

#include "runtime/restore_head.hpp"

#include <algorithm>
#include <string_view>
#include <utility>
#include <variant>

#include <fmt/format.h>

#include "head/trial.hpp"
#include "journal/reader.hpp"
#include "search/searcher.hpp"

namespace muster {
namespace {

constexpr std::size_t kMostProblems = 20;

/// Gives a head what a journal holds of the state.
class Restorer {
  public:
    Restorer(Head& head, const BasicSearcher* searcher) : head_(head), searcher_(searcher) {}

    void take(const Fact& fact, TimePoint at) {
        if (const auto* created = std::get_if<TrialCreated>(&fact)) {
            // The config is known already when facts of the trial are there, but come too late.
            if (fill_up_to(created->trial) && created->trial.value < head_.trial_count()) {
                return;
            }
        } else if (const auto* condensed = std::get_if<TrialCondensed>(&fact)) {
            fill_up_to(condensed->trial);
            if (!condensed->config) {
                fill_up_to(TrialId{condensed->trial.value + 1});
            }
        } else if (const std::optional<TrialId> trial = trial_of(fact)) {
            fill_up_to(TrialId{trial->value + 1});
        }
        restore(fact, at);
        take_end(fact, at);
        restored_.nodes.take(fact);
    }

    void take(const ResultReported& result, TimePoint at) {
        const auto ended = result.trial.value < taken_in_.size() ? taken_in_[result.trial.value]
                                                                 : TimePoint{Duration{-1}};
        if (at > ended) {
            restore(result, at);
        }
    }

    /// Trials whose results count, since none of their ends has taken them in.
    std::vector<TrialId> unfinished() const {
        std::vector<TrialId> trials;
        for (std::uint32_t id = 0; id < head_.trial_count(); ++id) {
            if (!is_final(head_.trial(TrialId{id})->state)) {
                trials.push_back(TrialId{id});
            }
        }
        return trials;
    }

    Restored finish(const JournalReading& state, const JournalReading& results) {
        if (filled_ > 0) {
            tell(fmt::format(
                "{} trials whose creation was lost have the config that the search gives them",
                filled_
            ));
        }
        take_reading("state", state);
        take_reading("results", results);
        restored_.next_state = state.next;
        restored_.next_result = results.next;
        return std::move(restored_);
    }

  private:
    static std::optional<TrialId> trial_of(const Fact& fact) {
        return std::visit(
            [](const auto& of) -> std::optional<TrialId> {
                if constexpr (requires { of.trial; }) {
                    return of.trial;
                } else {
                    return std::nullopt;
                }
            },
            fact
        );
    }

    /// Creates the trials before `next` that are not there, as the searcher would; true if there
    /// are so many now.
    bool fill_up_to(TrialId next) {
        while (head_.trial_count() < next.value && searcher_ != nullptr) {
            const TrialId id{head_.trial_count()};
            const std::optional<std::uint64_t> total = searcher_->total_trials();
            if (total && id.value >= *total) {
                break;
            }
            Result<Config> config = searcher_->config_at(id.value);
            if (!config.ok() || !head_.restore(TrialCreated{id, std::move(*config)}, {}).ok()) {
                break;
            }
            ++filled_;
        }
        return head_.trial_count() >= next.value;
    }

    void restore(const Fact& fact, TimePoint at) {
        const Status status = head_.restore(fact, at);
        if (!status.ok()) {
            tell(status.error().message);
        }
    }

    void take_end(const Fact& fact, TimePoint at) {
        if (const auto* ended = std::get_if<TrialEnded>(&fact)) {
            take_in(ended->trial, at);
        } else if (const auto* condensed = std::get_if<TrialCondensed>(&fact)) {
            if (condensed->ended) {
                take_in(condensed->trial, condensed->ended_at);
            }
        } else if (const auto* run = std::get_if<RunEnded>(&fact)) {
            restored_.ended = run->end;
        }
        // Each of these says that a later run began.
        if (std::holds_alternative<RunStarted>(fact) ||
            std::holds_alternative<AttemptStarted>(fact)) {
            restored_.ended.reset();
        }
    }

    /// The end of a trial that runs again later has taken in what was reported before it.
    void take_in(TrialId trial, TimePoint at) {
        if (trial.value < head_.trial_count()) {
            taken_in_.resize(
                std::max<std::size_t>(taken_in_.size(), trial.value + 1U), TimePoint{Duration{-1}}
            );
            taken_in_[trial.value] = at;
        }
    }

    void take_reading(std::string_view stem, const JournalReading& reading) {
        restored_.last = std::max(restored_.last, reading.last);
        for (const std::string& problem : reading.problems) {
            tell(problem);
        }
        if (reading.damaged + reading.missing > reading.problems.size()) {
            tell(fmt::format(
                "of the {}, {} lines in all are damaged and {} records missing",
                stem,
                reading.damaged,
                reading.missing
            ));
        }
    }

    void tell(std::string problem) {
        if (restored_.problems.size() < kMostProblems) {
            restored_.problems.push_back(std::move(problem));
        }
    }

    Head& head_;
    const BasicSearcher* searcher_;
    Restored restored_;
    /// By trial: when it ended last.
    std::vector<TimePoint> taken_in_;
    std::uint64_t filled_ = 0;
};

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
        take_placement(started->trial, started->placement);
    } else if (const auto* condensed = std::get_if<TrialCondensed>(&fact)) {
        take_placement(condensed->trial, condensed->placement);
    }
}

void NodesOfTrials::take_placement(TrialId trial, const Placement& placement) {
    const std::vector<BundlePlacement>& bundles = placement.bundles;
    const auto place = bundles.empty() ? of_run_.end() : of_run_.find(bundles.front().node);
    if (place != of_run_.end()) {
        places_.resize(std::max<std::size_t>(places_.size(), trial.value + 1U));
        places_[trial.value] = place->second + 1;
    }
}

const std::string& NodesOfTrials::name_of(TrialId trial) const {
    static const std::string nowhere;
    const bool known = trial.value < places_.size() && places_[trial.value] != 0;
    return known ? names_[places_[trial.value] - 1] : nowhere;
}

Result<Restored>
restore_head(const std::string& directory, Head& head, const BasicSearcher* searcher) {
    Restorer restorer(head, searcher);
    const Result<JournalReading> state =
        read_journal(directory, [&](const Fact& fact, TimePoint at) { restorer.take(fact, at); });
    if (!state.ok()) {
        return state.error();
    }
    const Result<JournalReading> results = read_results_of(
        directory,
        restorer.unfinished(),
        [&](const ResultReported& result, TimePoint at) { restorer.take(result, at); }
    );
    if (!results.ok()) {
        return results.error();
    }
    return restorer.finish(*state, *results);
}

}  // namespace muster
