// SPDX-License-Identifier: Apache-2.0

#include "sim/checkpoint_watch.hpp"

#include <algorithm>
#include <cmath>
#include <variant>

#include <fmt/format.h>

#include "muster/result.hpp"

#include "placement/cluster.hpp"

namespace muster {
namespace {

std::string name_of(TrialId trial, std::uint32_t number) {
    return fmt::format("checkpoint {} of trial {}", number, to_string(trial));
}

}  // namespace

const CheckpointWatch::Kept*
CheckpointWatch::find(const Table& table, TrialId trial, std::uint32_t number) const {
    const auto found = table.find(trial);
    if (found == table.end()) {
        return nullptr;
    }
    const auto kept = found->second.find(number);
    return kept == found->second.end() ? nullptr : &kept->second;
}

void CheckpointWatch::apply(Table& table, const Fact& fact) {
    if (const auto* kept = std::get_if<CheckpointKept>(&fact)) {
        const Kept* before = find(table, kept->trial, kept->number);
        // One that moved is still the one of who saved it.
        const AttemptId attempt = before == nullptr ? kept->attempt : before->attempt;
        table[kept->trial].insert_or_assign(
            kept->number, Kept{attempt, kept->bytes, kept->score, kept->node}
        );
        if (&table == &on_disk_) {
            ever_on_disk_.emplace(kept->trial, kept->number);
        }
    } else if (const auto* dropped = std::get_if<CheckpointDropped>(&fact)) {
        table[dropped->trial].erase(dropped->number);
    }
}

void CheckpointWatch::run_begins(const std::vector<Fact>& kept) {
    said_.clear();
    on_disk_.clear();
    highest_.clear();
    ended_.clear();
    nodes_.clear();
    for (const Fact& fact : kept) {
        apply(on_disk_, fact);
        take_fact(fact);
    }
    saved_.clear();
}

void CheckpointWatch::take_fact(const Fact& fact) {
    if (const auto* kept = std::get_if<CheckpointKept>(&fact)) {
        saved_.insert(kept->trial);
        std::uint32_t& highest = highest_[kept->trial];
        highest = std::max(highest, kept->number);
    } else if (const auto* ended = std::get_if<TrialEnded>(&fact)) {
        // What was cancelled goes on when the experiment does.
        if (ended->state != TrialState::Cancelled) {
            ended_.insert(ended->trial);
        }
    } else if (const auto* started = std::get_if<AttemptStarted>(&fact)) {
        ended_.erase(started->trial);
    } else if (const auto* reopened = std::get_if<TrialReopened>(&fact)) {
        ended_.erase(reopened->trial);
    } else if (const auto* joined = std::get_if<NodeJoined>(&fact)) {
        nodes_[joined->name] = joined->node;
    }
    apply(said_, fact);
}

void CheckpointWatch::head_stepped(const Head& head, const Event& event, const Step& step) {
    saved_.clear();
    gone_.reset();
    joined_.reset();
    surplus_.clear();
    if (const auto* said = std::get_if<AgentSaid>(&event)) {
        if (const auto* gone = std::get_if<CheckpointGone>(&said->message)) {
            gone_ = *gone;
        } else if (std::holds_alternative<Hello>(said->message)) {
            joined_ = said->node;
        }
    }
    for (const Fact& fact : step.facts) {
        if (const auto* dropped = std::get_if<CheckpointDropped>(&fact)) {
            check_dropped(*dropped);
        }
        take_fact(fact);
    }
    check_surplus();
    for (const TrialId trial : saved_) {
        check_keep(trial);
    }
    if (!saved_.empty()) {
        check_budget();
    }
    for (const Command& command : step.commands) {
        const auto* send = std::get_if<Send>(&command.action);
        if (send == nullptr) {
            continue;
        }
        if (const auto* start = std::get_if<Start>(&send->message)) {
            check_start(head, send->node, *start);
        }
    }
}

void CheckpointWatch::check_dropped(const CheckpointDropped& dropped) {
    const Kept* known = find(said_, dropped.trial, dropped.number);
    if (known == nullptr) {
        complaint_.say(
            "Only what is kept is dropped.", name_of(dropped.trial, dropped.number) + " was not"
        );
        return;
    }
    const bool was_gone =
        gone_ && gone_->key.trial == dropped.trial && gone_->number == dropped.number;
    const bool has_ended = ended_.count(dropped.trial) != 0;
    if (was_gone || has_ended) {
        return;
    }
    const Numbers& numbers = said_.at(dropped.trial);
    if (numbers.rbegin()->first == dropped.number) {
        complaint_.say(
            "The latest checkpoint of a trial that may go on is kept.",
            name_of(dropped.trial, dropped.number) + " was dropped"
        );
    }
    if (spec_.checkpoints.budget_bytes == 0) {
        surplus_.emplace_back(dropped, *known);
    }
}

/// Of those that `keep` dropped in this step.
void CheckpointWatch::check_surplus() {
    for (const auto& [dropped, known] : surplus_) {
        const Numbers& numbers = said_[dropped.trial];
        for (const auto& [number, kept] : numbers) {
            const bool is_latest = number == numbers.rbegin()->first;
            if (!is_latest && is_better(dropped.number, known, number, kept)) {
                complaint_.say(
                    "The best checkpoints are kept.",
                    fmt::format(
                        "{} was dropped, and {} was not",
                        name_of(dropped.trial, dropped.number),
                        number
                    )
                );
            }
        }
    }
}

bool CheckpointWatch::is_better(
    std::uint32_t left,
    const Kept& a,
    std::uint32_t right,
    const Kept& b
) const {
    const double score = a.score.value_or(NAN);
    const double other = b.score.value_or(NAN);
    if (better(score, other, spec_.checkpoints.mode)) {
        return true;
    }
    return !better(other, score, spec_.checkpoints.mode) && left > right;
}

void CheckpointWatch::check_keep(TrialId trial) {
    const std::size_t most = spec_.checkpoints.keep;
    const Numbers& numbers = said_[trial];
    if (most == 0 || numbers.size() <= most) {
        return;
    }
    const auto worst = std::min_element(
        numbers.begin(),
        numbers.end(),
        [this](const auto& left, const auto& right) {
            return is_better(right.first, right.second, left.first, left.second);
        }
    );
    if (numbers.size() > most + 1 || worst->first != numbers.rbegin()->first) {
        complaint_.say(
            "No more than `keep` checkpoints of a trial are kept, and the latest.",
            fmt::format("of trial {} {} are", to_string(trial), numbers.size())
        );
    }
}

void CheckpointWatch::check_budget() {
    const std::int64_t budget = spec_.checkpoints.budget_bytes;
    if (budget == 0) {
        return;
    }
    std::int64_t bytes = 0;
    std::optional<TrialId> could_give;
    for (const auto& [trial, numbers] : said_) {
        for (const auto& entry : numbers) {
            bytes += entry.second.bytes;
        }
        if (numbers.size() > 1 || (ended_.count(trial) != 0 && !numbers.empty())) {
            could_give = trial;
        }
    }
    if (bytes > budget && could_give) {
        complaint_.say(
            "The budget is kept while anything can be given up.",
            fmt::format(
                "{} of {} bytes are in use, and trial {} has some to spare",
                bytes,
                budget,
                to_string(*could_give)
            )
        );
    }
}

std::optional<std::uint32_t> CheckpointWatch::latest_within_reach(
    const Head& head,
    const Numbers& numbers,
    NodeId home,
    bool without
) const {
    for (auto kept = numbers.rbegin(); kept != numbers.rend(); ++kept) {
        const auto node = nodes_.find(kept->second.node);
        const bool is_away = without && node != nodes_.end() && node->second == joined_;
        const bool is_up = node != nodes_.end() && !is_away &&
                           (node->second == home || head.cluster().has_node(node->second));
        if (kept->second.node.empty() || is_up) {
            return kept->first;
        }
    }
    return std::nullopt;
}

void CheckpointWatch::check_start(const Head& head, NodeId to, const Start& start) {
    const TrialId trial = start.key.trial;
    const Numbers& numbers = said_[trial];
    std::vector<std::uint32_t> kept;
    for (const auto& entry : numbers) {
        kept.push_back(entry.first);
    }
    if (kept != start.kept_checkpoints) {
        complaint_.say(
            "A node is told which checkpoints of a trial are kept.",
            fmt::format(
                "of trial {} it was told {} instead of {}",
                to_string(trial),
                start.kept_checkpoints.size(),
                kept.size()
            )
        );
    }
    if (start.next_checkpoint <= highest_[trial]) {
        complaint_.say(
            "The numbers of checkpoints rise.",
            fmt::format(
                "the next of trial {} is {} after {}",
                to_string(trial),
                start.next_checkpoint,
                highest_[trial]
            )
        );
    }
    // A node that came anew was lost before, in the same step.
    const std::optional<std::uint32_t> before = latest_within_reach(head, numbers, to, true);
    const std::optional<std::uint32_t> latest =
        start.resume_from == before ? before : latest_within_reach(head, numbers, to, false);
    if (start.resume_from != latest) {
        complaint_.say(
            "A trial goes on from its latest checkpoint within reach.",
            fmt::format(
                "trial {} goes on from {} instead of {}",
                to_string(trial),
                start.resume_from.value_or(0),
                latest.value_or(0)
            )
        );
    }
    if (!latest) {
        return;
    }
    const std::string& where = numbers.at(*latest).node;
    const bool is_here = where.empty() || nodes_.at(where) == to;
    const std::optional<NodeId> expected = is_here ? std::nullopt : std::optional(nodes_.at(where));
    if (start.fetch_from != expected) {
        complaint_.say(
            "A checkpoint is fetched from the node where it lies.",
            name_of(trial, *latest) + " is not"
        );
    }
}

void CheckpointWatch::touched(const std::string& node, const CheckpointTouch& touch) {
    const Kept* kept = find(on_disk_, touch.trial, touch.number);
    const std::string name = name_of(touch.trial, touch.number);
    switch (touch.kind) {
        case CheckpointTouch::Kind::Removed: {
            const bool is_here = kept != nullptr && (kept->node.empty() || kept->node == node);
            if (is_here && kept->attempt == touch.attempt) {
                complaint_.say(
                    "The files of a checkpoint go only when the journal has dropped it.",
                    fmt::format("those of {} went on node {}", name, node)
                );
            }
            return;
        }
        case CheckpointTouch::Kind::Resumed: {
            const Kept* known = find(said_, touch.trial, touch.number);
            if (known != nullptr && known->attempt != touch.attempt) {
                complaint_.say(
                    "A trial goes on from what it saved.",
                    fmt::format(
                        "{} on node {} is of attempt {}, not {}",
                        name,
                        node,
                        to_string(touch.attempt),
                        to_string(known->attempt)
                    )
                );
            }
            return;
        }
        case CheckpointTouch::Kind::Missing: {
            // A node that is asked may be gone by then.
            const bool may_be = !touch.asked && disks_lost_.count(node) != 0;
            if (!may_be && !touch.asked) {
                complaint_.say(
                    "What a trial is to go on from is there.",
                    fmt::format("{} is not on node {}", name, node)
                );
            }
            return;
        }
        case CheckpointTouch::Kind::Answered:
            if (ever_on_disk_.count({touch.trial, touch.number}) == 0) {
                complaint_.say(
                    "A trial hears that its checkpoint is safe when the journal has it.",
                    name + " was not there"
                );
            }
            return;
    }
}

void CheckpointWatch::check_end(const SimulatedStorage& storage, bool undisturbed) {
    std::set<std::tuple<TrialId, std::uint32_t>> there;
    for (const auto& [directory, numbers] : storage.directories()) {
        for (const auto& [number, state] : numbers) {
            there.emplace(state.trial, number);
            if (undisturbed && find(said_, state.trial, number) == nullptr) {
                complaint_.say(
                    "Files of what was dropped go.",
                    fmt::format("{} is still in {}", name_of(state.trial, number), directory)
                );
            }
        }
    }
    for (const auto& [trial, numbers] : said_) {
        for (const auto& [number, kept] : numbers) {
            if (there.count({trial, number}) == 0 && disks_lost_.count(kept.node) == 0) {
                complaint_.say("What is kept is there.", name_of(trial, number) + " is not");
            }
        }
    }
}

}  // namespace muster
