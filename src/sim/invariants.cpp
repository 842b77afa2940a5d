// SPDX-License-Identifier: Apache-2.0

#include "sim/invariants.hpp"

#include <algorithm>
#include <utility>
#include <variant>

#include <fmt/format.h>

#include "base/overloaded.hpp"
#include "head/trial.hpp"
#include "placement/cluster.hpp"

namespace muster {
namespace {

/// What messages, the disk and the end of processes may take on top of a grace time.
constexpr Duration kSlack = std::chrono::seconds{15};
/// What the end of a process that was killed may take.
constexpr Duration kKillSlack = std::chrono::seconds{1};

const RunningAttempt* running_of(const Head& head, TrialId id) {
    const Trial* trial = head.trial(id);
    const bool runs = trial != nullptr && trial->progress && trial->progress->running;
    return runs ? &*trial->progress->running : nullptr;
}

/// The member that a message is about, if it is about one.
const MemberKey* key_of(const FromAgent& message) {
    return std::visit(
        Overloaded{
            [](const Started& said) { return &said.key; },
            [](const Reported& said) { return &said.key; },
            [](const Ended& said) { return &said.key; },
            [](const Remark& said) { return &said.key; },
            [](const CheckpointSaved& said) { return &said.key; },
            [](const CheckpointGone& said) { return &said.key; },
            [](const ToPeer&) -> const MemberKey* { return nullptr; },
            [](const Hello&) -> const MemberKey* { return nullptr; },
            [](const Heartbeat&) -> const MemberKey* { return nullptr; },
            [](const Farewell&) -> const MemberKey* { return nullptr; }},
        message
    );
}

}  // namespace

void Watch::run_begins(const std::vector<Fact>& kept, TimePoint now) {
    run_began_ = now;
    checkpoints_.run_begins(kept);
    end_.run_begins(kept);
    attempts_.clear();
    waiting_since_.clear();
    stopping_since_.clear();
    node_losses_.clear();
    results_.clear();
    completed_.clear();
    incarnations_.clear();
    failed_in_a_row_.clear();
    aside_.clear();
    std::set<std::pair<TrialId, TrialState>> ended;
    std::map<TrialId, const Config*> created;
    std::set<std::uint32_t> epochs;
    for (const Fact& fact : kept) {
        if (const auto* end = std::get_if<TrialEnded>(&fact)) {
            ended.insert({end->trial, end->state});
            if (end->state == TrialState::Completed) {
                completed_.insert(end->trial);
            }
        } else if (const auto* creation = std::get_if<TrialCreated>(&fact)) {
            created[creation->trial] = &creation->config;
        } else if (const auto* report = std::get_if<ResultReported>(&fact)) {
            results_[report->trial] += report->overrun ? 0U : 1U;
        } else if (const auto* run = std::get_if<RunStarted>(&fact)) {
            epochs.insert(run->epoch);
        }
    }
    for (const std::uint32_t epoch : epochs_used_) {
        if (epochs.count(epoch) == 0) {
            violate(
                "A run is on disk before its first start, so that no two are numbered alike.",
                fmt::format("run {} is not", epoch)
            );
        }
    }
    for (const auto& [trial, state] : announced_) {
        if (ended.count({trial, state}) == 0) {
            violate(
                "An end that people were told is never forgotten.",
                fmt::format("trial {} was announced as {}", to_string(trial), to_string(state))
            );
        }
    }
    for (const auto& [trial, config] : started_) {
        const auto found = created.find(trial);
        if (found == created.end() || !(*found->second == config)) {
            violate(
                "A trial that was started keeps its config.",
                fmt::format("trial {} was started and is not on disk so", to_string(trial))
            );
        }
    }
    for (const auto& [trial, count] : results_behind_stop_) {
        if (results_[trial] < count) {
            violate(
                "The results that a stop rests on are on disk.",
                fmt::format(
                    "trial {} was stopped after {} results, {} are kept",
                    to_string(trial),
                    count,
                    results_[trial]
                )
            );
        }
    }
}

void Watch::node_gone(NodeId node) {
    ++node_losses_[node];
    failed_in_a_row_.erase(node);
    aside_.erase(node);
}

void Watch::head_stepped(const Head& head, const Event& event, const Step& step, TimePoint now) {
    now_ = now;
    const auto* said = std::get_if<AgentSaid>(&event);
    const MemberKey* key = said == nullptr ? nullptr : key_of(said->message);
    if (said != nullptr && std::holds_alternative<Hello>(said->message)) {
        check_hello(said->node, std::get<Hello>(said->message), step);
    }
    if (key != nullptr) {
        const auto attempt = attempts_.find(key->attempt);
        if (attempt == attempts_.end()) {
            if (!step.facts.empty() || !step.commands.empty()) {
                violate(
                    "A message of an attempt that is over changes nothing.",
                    fmt::format("one of attempt {} did", to_string(key->attempt))
                );
            }
        } else if (const auto* reported = std::get_if<Reported>(&said->message)) {
            attempt->second.reports += 1 + reported->coalesced;
            check_report_kept(*reported, step);
        }
    }
    for (const Fact& fact : step.facts) {
        take_fact(fact);
    }
    for (const Command& command : step.commands) {
        take_command(command);
    }
    checkpoints_.head_stepped(head, event, step);
    end_.head_stepped(head, event, step, now);
    check_attempts(head);
    check_set_aside(head);
}

void Watch::check_hello(NodeId node, const Hello& hello, const Step& step) {
    const auto [known, is_first] = incarnations_.emplace(node, hello.incarnation);
    const bool is_news = is_first || hello.incarnation > known->second;
    known->second = std::max(known->second, hello.incarnation);
    if (!is_news && (!step.facts.empty() || !step.commands.empty())) {
        violate(
            "A node is taken in once with each incarnation, and never with an older one.",
            fmt::format("node {} was, with {} again", node.value, hello.incarnation)
        );
    }
}

/// A part of the head's rule: what it leaves out is a matter of judgement.
void Watch::check_set_aside(const Head& head) {
    constexpr std::size_t kLeastTrials = 3;
    // Once the run is about to end the head judges no node any more, nor hears of new ones.
    if (!head.is_going()) {
        return;
    }
    for (const NodeId node : head.cluster().nodes()) {
        if (!head.cluster().is_set_aside(node)) {
            aside_.erase(node);
        } else if (aside_.insert(node).second && failed_in_a_row_[node].size() < kLeastTrials) {
            violate(
                "A node is set aside only when at least three trials failed there in a row.",
                fmt::format("on node {} {} did", node.value, failed_in_a_row_[node].size())
            );
        }
    }
}

void Watch::check_report_kept(const Reported& reported, const Step& step) {
    for (const Fact& fact : step.facts) {
        const auto* kept = std::get_if<ResultReported>(&fact);
        if (kept != nullptr && kept->attempt == reported.key.attempt &&
            kept->result == reported.result) {
            return;
        }
    }
    violate(
        "Every report that the head took is among the facts.",
        fmt::format(
            "step {} of trial {} is not", reported.result.step, to_string(reported.key.trial)
        )
    );
}

void Watch::take_fact(const Fact& fact) {
    std::visit(
        Overloaded{
            [&](const AttemptStarted& started) { start_attempt(started); },
            [&](const AttemptEnded& ended) { end_attempt(ended); },
            [&](const ResultReported& reported) {
                results_[reported.trial] += reported.overrun ? 0U : 1U;
                const auto attempt = attempts_.find(reported.attempt);
                if (attempt != attempts_.end() && !reported.overrun) {
                    failed_in_a_row_.erase(attempt->second.node);
                }
            },
            [&](const TrialEnded& ended) {
                ended_[ended.trial] = ended.state;
                if (ended.state == TrialState::Completed) {
                    completed_.insert(ended.trial);
                }
            },
            // Of what else is kept nothing needs to be known here.
            [](const auto&) {}},
        fact
    );
}

void Watch::start_attempt(const AttemptStarted& started) {
    Attempt attempt{started.trial, {}, {}, 0, started.placement.bundles.front().node};
    for (const BundlePlacement& bundle : started.placement.bundles) {
        attempt.node_losses.push_back(node_losses_[bundle.node]);
    }
    if (!attempts_.emplace(started.attempt, std::move(attempt)).second) {
        violate(
            "An attempt starts once.", fmt::format("{} started again", to_string(started.attempt))
        );
    }
    to_retry_.erase(started.trial);
    if (spec_.time_budget && now_.since_start > *spec_.time_budget) {
        violate(
            "Nothing starts once the time budget is spent.",
            fmt::format("trial {} does", to_string(started.trial))
        );
    }
    if (completed_.count(started.trial) != 0) {
        violate(
            "What has completed never runs again.",
            fmt::format("trial {} does", to_string(started.trial))
        );
    }
}

void Watch::end_attempt(const AttemptEnded& ended) {
    const auto attempt = attempts_.find(ended.attempt);
    if (attempt == attempts_.end()) {
        return;
    }
    const NodeId node = attempt->second.node;
    const bool went_well = ended.outcome.cause == EndCause::TimeLimit ||
                           (ended.outcome.cause == EndCause::Exited && ended.outcome.code == 0);
    if (ended.is_failure) {
        failed_in_a_row_[node].insert(ended.trial);
    } else if (went_well) {
        failed_in_a_row_.erase(node);
    }
    if (ended.is_failure && ended.outcome.cause == EndCause::Lost) {
        violate(
            "That a node is lost is never its trials' failure.",
            fmt::format("trial {} failed so", to_string(ended.trial))
        );
    }
    attempts_.erase(attempt);
}

void Watch::take_command(const Command& command) {
    const auto* send = std::get_if<Send>(&command.action);
    if (send == nullptr) {
        return;
    }
    const auto tell = [&](const MemberKey& key, const std::vector<std::uint32_t>& cores) {
        const auto found = attempts_.find(key.attempt);
        if (found == attempts_.end()) {
            violate(
                "What is started is an attempt among the facts.",
                fmt::format("{} is not", to_string(key.attempt))
            );
        } else {
            found->second.told_cores = cores;
        }
    };
    if (const auto* start = std::get_if<Start>(&send->message)) {
        tell(start->key, start->cores);
    } else if (const auto* cores = std::get_if<SetCores>(&send->message)) {
        tell(cores->key, cores->cores);
    }
}

void Watch::carried_out(const Command& command) {
    if (const auto* announce = std::get_if<Announce>(&command.action)) {
        announced_[announce->trial] = ended_[announce->trial];
        return;
    }
    const auto* send = std::get_if<Send>(&command.action);
    if (send == nullptr) {
        return;
    }
    if (const auto* start = std::get_if<Start>(&send->message)) {
        started_.emplace(start->key.trial, start->config);
        epochs_used_.insert(start->key.attempt.epoch);
    } else if (const auto* stop = std::get_if<Stop>(&send->message)) {
        results_behind_stop_[stop->key.trial] = results_[stop->key.trial];
    }
}

void Watch::reports_made(AttemptId attempt, std::uint64_t made) {
    const auto found = attempts_.find(attempt);
    if (found != attempts_.end() && found->second.reports != made) {
        violate(
            "Every report of a member reaches the head before its end, or is counted there.",
            fmt::format(
                "trial {} made {} and {} were counted",
                to_string(found->second.trial),
                made,
                found->second.reports
            )
        );
    }
}

void Watch::check_attempts(const Head& head) {
    const std::vector<TrialId> active = head.active_trials();
    if (active.size() != attempts_.size()) {
        violate(
            "What holds resources is one attempt of its trial, which has started and not ended.",
            fmt::format("{} trials hold some, {} attempts go on", active.size(), attempts_.size())
        );
    }
    for (const TrialId id : active) {
        const RunningAttempt* running = running_of(head, id);
        if (running == nullptr || attempts_.count(running->attempt) == 0) {
            violate(
                "What holds resources is one attempt of its trial, which has started and not "
                "ended.",
                fmt::format("trial {} holds some without", to_string(id))
            );
        }
    }
}

bool Watch::is_there(const Head& head, const RunningAttempt& running, std::size_t bundle) const {
    const NodeId node = running.placement.bundles[bundle].node;
    const auto attempt = attempts_.find(running.attempt);
    const auto losses = node_losses_.find(node);
    const std::uint32_t now = losses == node_losses_.end() ? 0 : losses->second;
    return head.cluster().has_node(node) && attempt != attempts_.end() &&
           attempt->second.node_losses[bundle] == now;
}

void Watch::check_now(const Head& head, const std::vector<CountedNode>& nodes, TimePoint now) {
    if (violation()) {
        return;
    }
    end_.check_now(head, now);
    check_budget(now);
    check_promises(head);
    check_active(head, now);
    check_members(head, nodes);
    check_waiting(head, now);
}

void Watch::check_budget(TimePoint now) {
    if (!spec_.time_budget) {
        return;
    }
    const TimePoint spent{std::max(*spec_.time_budget, run_began_.since_start + start_timeout_)};
    if (now - spent > 2 * spec_.trial.grace + kSlack + silence_) {
        violate(
            "The run ends when the time budget is spent.",
            fmt::format("{} later it has not", format_duration(now - spent))
        );
    }
}

void Watch::check_active(const Head& head, TimePoint now) {
    const std::vector<TrialId> active = head.active_trials();
    const auto limit = static_cast<std::uint64_t>(spec_.max_concurrent_trials);
    if (limit != 0 && active.size() > limit) {
        violate(
            "No more than max_concurrent_trials run.",
            fmt::format("{} of {} do", active.size(), limit)
        );
    }
    std::set<TrialId> stopping;
    for (const TrialId id : active) {
        const RunningAttempt* running = running_of(head, id);
        if (running == nullptr) {
            continue;
        }
        const bool stops = head.trial(id)->state == TrialState::Stopping;
        for (std::size_t bundle = 0; bundle < running->placement.bundles.size(); ++bundle) {
            const bool must_be_there = bundle == 0 || !stops;
            if (must_be_there && !is_there(head, *running, bundle)) {
                violate(
                    "A running trial's nodes are up.",
                    fmt::format("bundle {} of trial {} is on none", bundle, to_string(id))
                );
                return;
            }
        }
        // Once the run is about to end nothing new starts, so wider or narrower cores harm nobody.
        if (head.is_going() && attempts_.at(running->attempt).told_cores !=
                                   head.cluster().cores_of(running->placement, 0)) {
            violate(
                "A running member was told the cores that are its own now.",
                fmt::format("trial {} was told others", to_string(id))
            );
        }
        if (stops) {
            stopping.insert(id);
            check_stopping(id, now);
        }
    }
    for (auto entry = stopping_since_.begin(); entry != stopping_since_.end();) {
        entry = stopping.count(entry->first) == 0 ? stopping_since_.erase(entry) : std::next(entry);
    }
}

void Watch::check_stopping(TrialId id, TimePoint now) {
    const TimePoint since = stopping_since_.emplace(id, now).first->second;
    if (now - since > 2 * spec_.trial.grace + kSlack + silence_) {
        violate(
            "What is asked to end ends within its grace.",
            fmt::format("trial {} has not, {} later", to_string(id), format_duration(now - since))
        );
    }
}

void Watch::check_members(const Head& head, const std::vector<CountedNode>& nodes) {
    for (const CountedNode& node : nodes) {
        for (const auto& [key, member] : node.node->members()) {
            const RunningAttempt* running = running_of(head, key.trial);
            if (running == nullptr || running->attempt != key.attempt ||
                running->placement.bundles.front().node != node.id) {
                violate(
                    "What runs on a node that is up is an attempt that the head counts there.",
                    fmt::format(
                        "attempt {} of trial {} on node {} is not",
                        to_string(key.attempt),
                        to_string(key.trial),
                        node.id.value
                    )
                );
            }
            check_waits(node, key, member);
            const std::optional<Duration> limit = spec_.trial.time_limit;
            if (limit && node.now - member.launched > *limit + kKillSlack) {
                violate(
                    "No attempt runs longer than its time limit.",
                    fmt::format("trial {} does", to_string(key.trial))
                );
            }
        }
    }
}

/// Its agent loses its lease when nothing gets through for longer.
void Watch::check_waits(
    const CountedNode& node,
    const MemberKey& key,
    const SimulatedMember& member
) {
    const bool runs = member.phase == SimulatedMember::Phase::Running;
    if (runs && member.awaited && node.now - member.waits_since > 2 * silence_ + 4 * kSlack) {
        violate(
            "A trial that saves a checkpoint hears of it.",
            fmt::format("trial {} waits for {}", to_string(key.trial), *member.awaited)
        );
    }
}

void Watch::check_waiting(const Head& head, TimePoint now) {
    struct Line {
        TrialId first;
        TimePoint since = kNever;
    };
    std::map<std::uint32_t, Line> lines;
    for (std::uint32_t value = 0; value < head.trial_count(); ++value) {
        const TrialId id{value};
        const Trial& trial = *head.trial(id);
        if (trial.state != TrialState::Pending) {
            waiting_since_.erase(id);
            continue;
        }
        const TimePoint since = waiting_since_.emplace(id, now).first->second;
        Line& line = lines.emplace(trial.alternative, Line{id, since}).first->second;
        line.since = std::min(line.since, since);
    }
    check_reason(head, now);
    const auto limit = static_cast<std::uint64_t>(spec_.max_concurrent_trials);
    if (!head.is_going() || (limit != 0 && head.active_trials().size() >= limit)) {
        return;
    }
    for (const auto& entry : lines) {
        const std::uint32_t alternative = entry.first;
        const Line& line = entry.second;
        if (end_.may_wait(alternative, now) ||
            !head.cluster().place(spec_.resources[alternative].group)) {
            continue;
        }
        const bool others_starve = std::any_of(lines.begin(), lines.end(), [&](const auto& other) {
            return other.first != alternative && now - other.second.since >= spec_.starvation_bound;
        });
        if (!others_starve) {
            violate(
                "Nothing that fits waits.",
                fmt::format(
                    "trial {} does: {}", to_string(line.first), head.explain(line.first, now)
                )
            );
        }
    }
}

void Watch::check_reason(const Head& head, TimePoint now) {
    // One in a while: words take longer than everything else here.
    constexpr std::uint32_t kEvery = 8;
    if (++explained_ % kEvery != 0 || head.trial_count() == 0) {
        return;
    }
    const TrialId id{explained_ / kEvery % head.trial_count()};
    if (head.trial(id)->state == TrialState::Pending &&
        head.explain(id, now).size() <= std::string_view{"Pending: "}.size()) {
        violate("What waits has a reason.", fmt::format("trial {} has none", to_string(id)));
    }
}

}  // namespace muster
