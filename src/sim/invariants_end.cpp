// SPDX-License-Identifier: Apache-2.0
//
// invariants_end - what must hold once: when a head is replaced, and when the experiment has ended.

#include <algorithm>

#include <fmt/format.h>

#include "head/trial.hpp"
#include "sim/invariants.hpp"

namespace muster {
namespace {

/// Whether a head that takes in the facts may see `restored` where the old one saw `old`. A trial
/// that was cancelled in an earlier run is Pending in the next, without a fact that says so, and so
/// is one that failed, when failed ones run again.
bool survives(TrialState old, TrialState restored, bool is_retry) {
    if (is_final(old)) {
        return restored == old;
    }
    return restored == TrialState::Pending || restored == TrialState::Paused ||
           restored == TrialState::Cancelled || (is_retry && restored == TrialState::Failed);
}

/// In what the two differ; empty when in nothing.
std::string difference(const Trial& old, const Trial& restored, bool is_retry, bool has_saved) {
    if (!survives(old.state, restored.state, is_retry)) {
        return fmt::format("is {}, not {}", to_string(restored.state), to_string(old.state));
    }
    if (!(old.config == restored.config) || old.alternative != restored.alternative) {
        return "has another config";
    }
    const TrialProgress none;
    const TrialProgress& before = old.progress ? *old.progress : none;
    const TrialProgress& after = restored.progress ? *restored.progress : none;
    if (before.results != after.results) {
        return fmt::format("has {} results instead of {}", after.results, before.results);
    }
    if (before.last != after.last || before.best != after.best) {
        return "has other results";
    }
    // One that has saved goes on from where it did.
    if (!has_saved && before.last_step != after.last_step) {
        return fmt::format("is at step {} instead of {}", after.last_step, before.last_step);
    }
    if (before.failures != after.failures || before.attempts != after.attempts ||
        before.ran != after.ran) {
        return "has other attempts";
    }
    return "";
}

std::string_view name_of(ExpectedEnd expected) {
    switch (expected) {
        case ExpectedEnd::Completes:
            return "Completed";
        case ExpectedEnd::CompletesOrFails:
            return "Completed or Failed";
        case ExpectedEnd::Fails:
            return "Failed";
        case ExpectedEnd::Stops:
            return "Stopped";
        case ExpectedEnd::Any:
            break;
    }
    return "anything final";
}

bool allows(ExpectedEnd expected, TrialState state) {
    switch (expected) {
        case ExpectedEnd::Completes:
            return state == TrialState::Completed;
        case ExpectedEnd::CompletesOrFails:
            return state == TrialState::Completed || state == TrialState::Failed;
        case ExpectedEnd::Fails:
            return state == TrialState::Failed;
        case ExpectedEnd::Stops:
            return state == TrialState::Stopped;
        case ExpectedEnd::Any:
            break;
    }
    return is_final(state);
}

}  // namespace

void Watch::check_facts(const Head& head, const Head& restored) {
    constexpr std::string_view kSentence = "Facts alone give back what the head knew.";
    if (head.trial_count() != restored.trial_count()) {
        violate(
            kSentence,
            fmt::format("{} trials became {}", head.trial_count(), restored.trial_count())
        );
        return;
    }
    for (std::uint32_t value = 0; value < head.trial_count(); ++value) {
        const TrialId id{value};
        const std::string what =
            difference(*head.trial(id), *restored.trial(id), is_retry_, checkpoints_.has_saved(id));
        if (!what.empty()) {
            violate(kSentence, fmt::format("trial {} {} after a restart", to_string(id), what));
        }
    }
}

void Watch::failed_run_again(const Head& head) {
    is_retry_ = true;
    for (std::uint32_t value = 0; value < head.trial_count(); ++value) {
        if (head.trial(TrialId{value})->state == TrialState::Failed) {
            to_retry_.insert(TrialId{value});
        }
    }
}

void Watch::check_trial_end(TrialId id, TrialState state, RunEnd end, ExpectedEnd expected) {
    // What was made to fail from outside may have failed once too often.
    const bool made_to_fail = crashed_.count(id) != 0 || on_bad_node_.count(id) != 0;
    if (made_to_fail && state == TrialState::Failed) {
        return;
    }
    // A budget that is spent stops what runs and leaves what waits.
    const bool by_budget = state == TrialState::Stopped || state == TrialState::Pending;
    if (end == RunEnd::TimeBudget && by_budget) {
        return;
    }
    if (!allows(expected, state)) {
        violate(
            "Every trial ends as its own behaviour says, whatever happens to nodes and head.",
            fmt::format(
                "trial {} is {}, not {}", to_string(id), to_string(state), name_of(expected)
            )
        );
    }
}

void Watch::check_configs(const Head& head, RunEnd end, const std::vector<Config>& configs) {
    const bool all_made = head.trial_count() == configs.size();
    if (head.trial_count() > configs.size() || (!all_made && end != RunEnd::TimeBudget)) {
        violate(
            "Every config is tried.",
            fmt::format("{} of {} trials were made", head.trial_count(), configs.size())
        );
        return;
    }
    for (std::uint32_t value = 0; value < head.trial_count(); ++value) {
        const TrialId id{value};
        if (!(head.trial(id)->config == configs[value])) {
            violate(
                "The configs are those of an undisturbed run.",
                fmt::format("trial {} has another", to_string(id))
            );
        }
    }
}

void Watch::check_ends(const std::vector<Fact>& facts) {
    std::map<TrialId, TrialState> ended;
    for (const Fact& fact : facts) {
        if (const auto* reopened = std::get_if<TrialReopened>(&fact)) {
            ended.erase(reopened->trial);
        }
        const auto* end = std::get_if<TrialEnded>(&fact);
        const auto before = end == nullptr ? ended.end() : ended.find(end->trial);
        const bool runs_again =
            before != ended.end() && (before->second == TrialState::Cancelled ||
                                      (is_retry_ && before->second == TrialState::Failed));
        if (before != ended.end() && !runs_again) {
            violate(
                "Every trial ends once, or again after it was cancelled, reopened or retried.",
                fmt::format("trial {} does twice", to_string(end->trial))
            );
        }
        if (end != nullptr) {
            ended[end->trial] = end->state;
        }
    }
}

void Watch::check_end(
    const Head& head,
    RunEnd end,
    const std::vector<Fact>& facts,
    const std::vector<Config>& configs,
    const std::vector<ExpectedEnd>& expected
) {
    check_configs(head, end, configs);
    const std::size_t trials = std::min<std::size_t>(head.trial_count(), expected.size());
    for (std::uint32_t value = 0; value < trials; ++value) {
        const TrialId id{value};
        check_trial_end(id, head.trial(id)->state, end, expected[value]);
    }
    check_ends(facts);
    if (end == RunEnd::TimeBudget &&
        (!spec_.time_budget || now_.since_start < *spec_.time_budget)) {
        violate("The time budget ends the run when it is spent.", "it ended before");
    }
    if (end == RunEnd::Finished && !to_retry_.empty()) {
        violate(
            "What failed runs again when that is asked for.",
            fmt::format("trial {} did not", to_string(*to_retry_.begin()))
        );
    }
}

}  // namespace muster
