// SPDX-License-Identifier: Apache-2.0
//
// journal_facts - one or more of every fact, with everything in it that is hard to keep.

#pragma once

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "protocol/facts.hpp"

namespace muster {

inline Config hard_config() {
    auto schema = std::make_shared<ConfigSchema>();
    schema->keys = {"lr", "n", "whole_real", "flip", "text", "nan", "absent", "augment/flip", "l"};
    return {
        schema,
        {Value(1e-5),
         Value(std::numeric_limits<std::int64_t>::min()),
         Value(3.0),
         Value(false),
         Value("quote \" back \\ line\n tab\t ü \x01"),
         Value(std::nan("")),
         std::nullopt,
         Value("nan"),
         Value(Value::List{
             "''-inf",
             "'x",
             -std::numeric_limits<double>::infinity(),
             Value::Map{{"inf", "inf"}, {"", Value()}},
             Value::List{}})}};
}

inline std::vector<Fact> every_fact() {
    const TrialId trial{42};
    const AttemptId attempt{3, 17};
    const TrialResult result{
        2.5, {{"loss", std::nan("")}, {"n", 7}, {"big", 1e300}, {"zero", -0.0}, {"note", "inf"}}};
    BundlePlacement whole;
    whole.node = NodeId{2};
    whole.bundle.cpu = Amount::whole(2);
    whole.bundle.memory_bytes = std::int64_t{2} << 30U;
    whole.bundle.custom = {{"licence", Amount::ten_thousandths(3'333)}};
    whole.cores = {0, 5};
    BundlePlacement shared;
    shared.bundle.gpu = Amount::ten_thousandths(5'000);
    shared.bundle.cpu = Amount::whole(900'000'000'000'000);
    shared.devices = {{1, Amount::ten_thousandths(5'000)}, {3, Amount::whole(1)}};
    return {
        RunStarted{3},
        NodeJoined{NodeId{7}, "gpu \"01\"", 2},
        NodeJoined{},
        TrialCreated{trial, hard_config()},
        TrialCreated{TrialId{0}, Config()},
        AttemptStarted{trial, attempt, {{whole, shared}}},
        ResultReported{trial, attempt, result, true, 12},
        ResultReported{trial, attempt, {std::numeric_limits<double>::infinity(), {}}, false, 0},
        AttemptEnded{
            trial,
            attempt,
            {EndCause::Signalled, -11, "last \"words\"\n"},
            {Duration{1'234'567'890'123}, Duration{5}, 1 << 20},
            true},
        AttemptEnded{trial, attempt, {EndCause::Lost, 0, ""}, {}, false},
        TrialEnded{trial, TrialState::Failed, "exit code 3", 9, result, TrialResult{1, {}}},
        TrialEnded{trial, TrialState::Cancelled, "", 0, std::nullopt, std::nullopt},
        TrialReopened{trial, 2},
        TrialCondensed{.trial = trial, .config = hard_config()},
        TrialCondensed{
            .trial = trial,
            .config = std::nullopt,
            .attempts = 2,
            .attempt = attempt,
            .placement = {{whole, shared}},
            .attempts_ended = 1,
            .failures = 1,
            .outcome = {EndCause::SpawnFailed, 2, "no such file"},
            .usage = {Duration{3}, Duration{2}, 1},
            .ended = TrialEnded{trial, TrialState::Stopped, "plateau", 9, result, std::nullopt},
            .ended_at = TimePoint{Duration{77}},
            .runs_again = true},
        TrialCondensed{
            .trial = trial,
            .config = std::nullopt,
            .attempts = 1,
            .attempt = attempt,
            .placement = {{whole}},
            .paused = "the time ends",
            .checkpoints =
                {{trial, attempt, 7, 2.5, 100, 0.5, "gpu01"},
                 {trial, attempt, 9, 3, 0, std::nullopt, ""}},
            .dropped = {1, 3},
            .last_checkpoint = 9},
        CheckpointKept{trial, attempt, 4, 2.5, std::int64_t{1} << 40U, -0.25, "gpu \"01\""},
        CheckpointKept{trial, attempt, 5, 3, 0, std::nullopt, ""},
        CheckpointDropped{trial, 4},
        TrialRestarted{trial, 4},
        TrialPaused{trial, "the time ends in 15s"},
        TrialPaused{},
        RunEnded{RunEnd::NothingWorks, "8 trials failed"},
        RunEnded{RunEnd::Interrupted, "SIGTERM"}};
}

}  // namespace muster
