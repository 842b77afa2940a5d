// SPDX-License-Identifier: Apache-2.0
//
// invariants_end - what must hold once: when a head is replaced, and when the experiment has ended.

#include <fmt/format.h>

#include "head/trial.hpp"
#include "sim/invariants.hpp"

namespace muster {
namespace {

/// Whether a head that takes in the facts may see `restored` where the old one saw `old`. A trial
/// that was cancelled in an earlier run is Pending in the next, without a fact that says so.
bool survives(TrialState old, TrialState restored) {
    if (is_final(old)) {
        return restored == old;
    }
    return restored == TrialState::Pending || restored == TrialState::Cancelled;
}

/// In what the two differ; empty when in nothing.
std::string difference(const Trial& old, const Trial& restored) {
    if (!survives(old.state, restored.state)) {
        return fmt::format("is {}, not {}", to_string(restored.state), to_string(old.state));
    }
    if (!(old.config == restored.config) || old.alternative != restored.alternative) {
        return "has another config";
    }
    const TrialProgress none;
    const TrialProgress& before = old.progress ? *old.progress : none;
    const TrialProgress& after = restored.progress ? *restored.progress : none;
    if (before.results != after.results || before.last != after.last || before.best != after.best ||
        before.last_step != after.last_step) {
        return "has other results";
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
        const std::string what = difference(*head.trial(id), *restored.trial(id));
        if (!what.empty()) {
            violate(kSentence, fmt::format("trial {} {} after a restart", to_string(id), what));
        }
    }
}

void Watch::check_trial_end(TrialId id, TrialState state, ExpectedEnd expected) {
    // What was made to fail from outside may have failed once too often.
    if (crashed_.count(id) != 0 && state == TrialState::Failed) {
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

void Watch::check_end(
    const Head& head,
    const std::vector<Fact>& facts,
    const std::vector<Config>& configs,
    const std::vector<ExpectedEnd>& expected
) {
    if (head.trial_count() != configs.size()) {
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
        check_trial_end(id, head.trial(id)->state, expected[value]);
    }
    std::map<TrialId, TrialState> ended;
    for (const Fact& fact : facts) {
        if (const auto* reopened = std::get_if<TrialReopened>(&fact)) {
            ended.erase(reopened->trial);
        }
        const auto* end = std::get_if<TrialEnded>(&fact);
        const auto before = end == nullptr ? ended.end() : ended.find(end->trial);
        if (before != ended.end() && before->second != TrialState::Cancelled) {
            violate(
                "Every trial ends once, or again after it was cancelled or reopened.",
                fmt::format("trial {} does twice", to_string(end->trial))
            );
        }
        if (end != nullptr) {
            ended[end->trial] = end->state;
        }
    }
}

}  // namespace muster
