// SPDX-License-Identifier: Apache-2.0

#include "journal/condense.hpp"

#include <algorithm>
#include <utility>
#include <variant>

#include "base/overloaded.hpp"
#include "journal/record.hpp"

namespace muster::journal {
namespace {

void add_usage(Usage& sum, const Usage& usage) {
    sum.wall += usage.wall;
    sum.cpu += usage.cpu;
    sum.max_rss_bytes = std::max(sum.max_rss_bytes, usage.max_rss_bytes);
}

auto find_kept(TrialCondensed& condensed, std::uint32_t number) {
    return std::find_if(
        condensed.checkpoints.begin(),
        condensed.checkpoints.end(),
        [&](const CheckpointKept& kept) { return kept.number == number; }
    );
}

void append_dropped(TrialCondensed& to, std::uint32_t number) {
    to.last_checkpoint = std::max(to.last_checkpoint, number);
    const auto known = find_kept(to, number);
    if (known != to.checkpoints.end()) {
        to.checkpoints.erase(known);
    } else if (std::find(to.dropped.begin(), to.dropped.end(), number) == to.dropped.end()) {
        to.dropped.push_back(number);
    }
}

void append_kept(TrialCondensed& to, CheckpointKept kept) {
    const auto known = find_kept(to, kept.number);
    if (known != to.checkpoints.end()) {
        *known = std::move(kept);
        return;
    }
    if (to.last_checkpoint == 0 || kept.number <= to.last_checkpoint) {
        // Perhaps it has only moved, and is known from before: then this one takes its place.
        append_dropped(to, kept.number);
    }
    to.last_checkpoint = std::max(to.last_checkpoint, kept.number);
    to.checkpoints.push_back(std::move(kept));
}

/// What comes later of the same trial, put behind what came before.
void append(TrialCondensed& to, TrialCondensed later) {
    if (later.config) {
        to.config = std::move(later.config);
    }
    if (later.attempts > 0) {
        to.attempts += later.attempts;
        to.attempt = later.attempt;
        to.placement = std::move(later.placement);
        to.runs_again = to.ended.has_value();
        to.paused.reset();
    }
    if (later.attempts_ended > 0) {
        to.attempts_ended += later.attempts_ended;
        to.failures += later.failures;
        to.outcome = std::move(later.outcome);
        add_usage(to.usage, later.usage);
    }
    if (later.ended) {
        to.ended = std::move(later.ended);
        to.ended_at = later.ended_at;
        to.runs_again = later.runs_again;
        to.paused.reset();
    }
    if (later.paused) {
        to.paused = std::move(later.paused);
    }
    for (const std::uint32_t number : later.dropped) {
        append_dropped(to, number);
    }
    for (CheckpointKept& kept : later.checkpoints) {
        append_kept(to, std::move(kept));
    }
    to.last_checkpoint = std::max(to.last_checkpoint, later.last_checkpoint);
}

}  // namespace

TrialCondensed& Condenser::open(TrialId trial, TimePoint at) {
    std::vector<Kept>& kept = trials_[trial];
    if (kept.empty() || !std::holds_alternative<TrialCondensed>(kept.back().fact)) {
        TrialCondensed condensed;
        condensed.trial = trial;
        kept.push_back({std::move(condensed), at});
    }
    kept.back().at = at;
    return std::get<TrialCondensed>(kept.back().fact);
}

void Condenser::keep(TrialId trial, Fact fact, TimePoint at) {
    trials_[trial].push_back({std::move(fact), at});
}

void Condenser::take(Fact fact, TimePoint at) {
    const auto of_the_run = [&] {
        end_stretch();
        write(fact, at);
    };
    std::visit(
        Overloaded{
            [&](RunStarted&) { of_the_run(); },
            [&](NodeJoined&) { of_the_run(); },
            [&](RunEnded&) { of_the_run(); },
            [&](TrialCreated& created) {
                open(created.trial, at).config = std::move(created.config);
            },
            [&](AttemptStarted& started) {
                TrialCondensed later;
                later.attempts = 1;
                later.attempt = started.attempt;
                later.placement = std::move(started.placement);
                append(open(started.trial, at), std::move(later));
            },
            [&](AttemptEnded& ended) {
                TrialCondensed later;
                later.attempts_ended = 1;
                later.failures = ended.is_failure ? 1 : 0;
                later.outcome = std::move(ended.outcome);
                later.usage = ended.usage;
                append(open(ended.trial, at), std::move(later));
            },
            [&](TrialEnded& ended) {
                TrialCondensed later;
                const TrialId trial = ended.trial;
                later.ended = std::move(ended);
                later.ended_at = at;
                append(open(trial, at), std::move(later));
            },
            [&](TrialCondensed& condensed) {
                TrialCondensed& kept = open(condensed.trial, at);
                append(kept, std::move(condensed));
            },
            // What it means depends on what was before it.
            [&](TrialReopened& reopened) { keep(reopened.trial, reopened, at); },
            [&](TrialRestarted& restarted) { keep(restarted.trial, restarted, at); },
            [&](TrialPaused& paused) { open(paused.trial, at).paused = std::move(paused.reason); },
            [&](CheckpointKept& kept) {
                TrialCondensed& condensed = open(kept.trial, at);
                append_kept(condensed, std::move(kept));
            },
            [&](CheckpointDropped& dropped) {
                append_dropped(open(dropped.trial, at), dropped.number);
            },
            [&](ResultReported& result) { keep(result.trial, result, at); }},
        fact
    );
}

void Condenser::write(const Fact& fact, TimePoint at) {
    append_record(fact, {next_, at}, utc_, text_);
    ++next_;
    ++lines_;
}

void Condenser::end_stretch() {
    for (const auto& [trial, kept] : trials_) {
        for (const Kept& one : kept) {
            write(one.fact, one.at);
        }
    }
    trials_.clear();
}

const std::string& Condenser::finish() {
    end_stretch();
    return text_;
}

}  // namespace muster::journal
