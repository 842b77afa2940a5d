// SPDX-License-Identifier: Apache-2.0
//
// judgement - what follows from where attempts work and fail: nodes that are set aside and taken
// back, and a run that ends since nothing works. head.hpp states the rules.

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "head/head_state.hpp"

namespace muster {
namespace {

constexpr std::uint64_t kLeastFailedFirst = 8;
/// Lines and bytes of output that a message repeats.
constexpr std::size_t kMostLines = 10;
constexpr std::size_t kMostOfALine = 160;
constexpr std::size_t kMostNamed = 5;

/// Whole lines that hold something, without their newlines.
std::vector<std::string_view> lines_of(std::string_view text) {
    std::vector<std::string_view> lines;
    while (!text.empty()) {
        const std::size_t end = std::min(text.find('\n'), text.size());
        std::string_view line = text.substr(0, end);
        text.remove_prefix(std::min(end + 1, text.size()));
        while (!line.empty() && (line.back() == '\r' || line.back() == ' ')) {
            line.remove_suffix(1);
        }
        if (!line.empty()) {
            lines.push_back(line);
        }
    }
    return lines;
}

/// At most so many bytes of the line, never a part of a character.
std::string shortened(std::string_view line) {
    if (line.size() <= kMostOfALine) {
        return std::string(line);
    }
    std::size_t size = kMostOfALine;
    while (size > 0 && (static_cast<unsigned char>(line[size]) & 0xC0U) == 0x80U) {
        --size;
    }
    return std::string(line.substr(0, size)) + "…";
}

/// "; its output ended with" and the lines, or nothing when there are none.
std::string with_output(const std::string& last_lines) {
    const std::vector<std::string_view> lines = lines_of(last_lines);
    std::string text = lines.empty() ? "" : "; its output ended with";
    for (std::size_t at = lines.size() - std::min(lines.size(), kMostLines); at < lines.size();
         ++at) {
        text += "\n    " + shortened(lines[at]);
    }
    return text;
}

/// "00001, 00002, 00003 and 4 others".
std::string names_of(const std::map<TrialId, std::uint32_t>& trials) {
    std::string text;
    std::size_t named = 0;
    for (const auto& entry : trials) {
        if (named == kMostNamed) {
            return fmt::format("{} and {} others", text, trials.size() - named);
        }
        text += (named++ == 0 ? "" : ", ") + to_string(entry.first);
    }
    return text;
}

/// A failure that a node is perhaps to blame for: of an attempt on one node, which did not use more
/// memory than it asked for.
bool may_be_the_nodes(const Placement& placement, const Outcome& outcome) {
    const NodeId node = member_node(placement);
    return outcome.cause != EndCause::MemoryLimit &&
           std::all_of(
               placement.bundles.begin(),
               placement.bundles.end(),
               [&](const BundlePlacement& bundle) { return bundle.node == node; }
           );
}

/// Whether all that waits, and the trials, could still run while some nodes are set aside.
bool could_run(const HeadState& head, const std::vector<TrialId>& trials) {
    std::vector<std::uint32_t> shapes = head.queue.waiting_shapes();
    for (const TrialId id : trials) {
        shapes.push_back(head.trials.find(id)->alternative);
    }
    std::sort(shapes.begin(), shapes.end());
    shapes.erase(std::unique(shapes.begin(), shapes.end()), shapes.end());
    return std::all_of(shapes.begin(), shapes.end(), [&](std::uint32_t shape) {
        return head.cluster.feasible(head.spec.resources[shape].group).ok();
    });
}

/// The failures were the node's: they count no more, and the trial runs again if they ended it.
void reopen(HeadState& head, TrialId id, std::uint32_t failures, TimePoint now) {
    const TrialState state = head.trials.at(id).state;
    if (is_final(state) && state != TrialState::Failed) {
        return;
    }
    head.trials.forgive(id, failures);
    keep(head, TrialReopened{id, failures});
    if (state == TrialState::Failed) {
        head.checkpoints.set_open(id);
        head.queue.push(id, head.trials.at(id).alternative, now);
    }
}

/// The trials of a streak that may run again.
std::vector<TrialId> reopenable(const HeadState& head, const Streak& streak) {
    std::vector<TrialId> trials;
    for (const auto& entry : streak.trials) {
        if (head.record.may_reopen(entry.first)) {
            trials.push_back(entry.first);
        }
    }
    return trials;
}

/// What failed on a node that is, from now on or already, set aside.
void reopen_all(
    HeadState& head,
    NodeId node,
    const Streak& streak,
    const std::vector<TrialId>& trials,
    TimePoint now
) {
    head.record.set_aside(node, trials);
    for (const TrialId id : trials) {
        reopen(head, id, streak.trials.at(id), now);
    }
}

/// False when the node can't be done without.
bool set_aside(HeadState& head, NodeId node, TimePoint now) {
    const Streak streak = *head.record.streak(node);
    const std::vector<TrialId> reopened = reopenable(head, streak);
    const bool is_last = head.record.aside().size() + 1 >= head.nodes.count();
    if (!is_last) {
        head.cluster.set_aside(node, true);
    }
    if (is_last || !could_run(head, reopened)) {
        head.cluster.set_aside(node, false);
        head.record.excuse(node);
        return false;
    }
    note(
        head,
        NoteLevel::Warning,
        fmt::format(
            "node {} is set aside: {} trials failed there in a row ({}) while others succeed "
            "elsewhere. They run again, and these failures don't count. The last was trial {}: "
            "{}{}",
            head.nodes.find(node)->name,
            streak.trials.size(),
            names_of(streak.trials),
            to_string(streak.last),
            streak.last_failure.outcome,
            with_output(streak.last_failure.last_lines)
        )
    );
    reopen_all(head, node, streak, reopened, now);
    return true;
}

/// What still ran on a node when it was set aside, and failed there since.
bool reopen_late_failures(HeadState& head, TimePoint now) {
    std::vector<std::pair<NodeId, Streak>> late;
    for (const NodeId node : head.record.aside()) {
        if (const Streak* streak = head.record.streak(node)) {
            late.emplace_back(node, *streak);
        }
    }
    for (const auto& [node, streak] : late) {
        reopen_all(head, node, streak, reopenable(head, streak), now);
    }
    return !late.empty();
}

void use_again(HeadState& head, NodeId node, std::string_view why) {
    head.cluster.set_aside(node, false);
    head.record.take_back(node);
    note(
        head,
        NoteLevel::Warning,
        fmt::format("node {} is used again: {}", head.nodes.find(node)->name, why)
    );
}

}  // namespace

std::string failure_text(const Outcome& outcome, const std::string& last_lines) {
    const std::vector<std::string_view> lines = lines_of(last_lines);
    return to_string(outcome) +
           (lines.empty() ? "" : "; it last wrote: " + shortened(lines.back()));
}

bool on_worked(HeadState& head, TrialId id, RunningAttempt& running) {
    const std::uint64_t last = std::exchange(running.worked_at, head.record.moment());
    if (last == running.worked_at) {
        return false;
    }
    head.record.worked(member_node(running.placement), id, last);
    return true;
}

void on_failed(HeadState& head, TrialId id, const Placement& placement, const Ended& ended) {
    if (may_be_the_nodes(placement, ended.outcome)) {
        head.record.failed(
            member_node(placement), id, {to_string(ended.outcome), ended.last_lines}
        );
    }
}

bool judge_nodes(HeadState& head, TimePoint now) {
    if (head.phase != RunPhase::Going) {
        return false;
    }
    bool changed = reopen_late_failures(head, now);
    while (const std::optional<NodeId> suspect = head.record.suspect()) {
        changed = set_aside(head, *suspect, now) || changed;
    }
    while (const std::optional<NodeId> acquitted = head.record.acquitted()) {
        use_again(head, *acquitted, "most of the trials that failed there fail elsewhere too");
        changed = true;
    }
    return changed;
}

bool take_back_needed_nodes(HeadState& head) {
    constexpr std::string_view kWhy = "no other can run what waits";
    const std::set<NodeId> aside = head.record.aside();
    const auto take_back = [&](const std::set<NodeId>& nodes) {
        for (const NodeId node : nodes) {
            head.cluster.set_aside(node, false);
        }
        const bool helps = could_run(head, {});
        for (const NodeId node : nodes) {
            if (helps) {
                use_again(head, node, kWhy);
                head.record.excuse(node);
            } else {
                head.cluster.set_aside(node, true);
            }
        }
        return helps;
    };
    for (const NodeId node : aside) {
        if (take_back({node})) {
            return true;
        }
    }
    return aside.size() > 1 && take_back(aside);
}

void end_if_nothing_works(HeadState& head, TrialId last, const Ended& ended, TimePoint now) {
    if (head.phase != RunPhase::Going || head.options.keep_going) {
        return;
    }
    const std::uint64_t failed = head.record.failed_first([&](TrialId id) {
        return head.trials.at(id).state == TrialState::Failed;
    });
    const bool more_will_come =
        !head.exhausted && (!head.total_trials || head.trials.size() < *head.total_trials);
    const bool is_over =
        head.trials.active().empty() && head.queue.waiting() == 0 && !more_will_come;
    if (failed < std::max<std::uint64_t>(kLeastFailedFirst, 2 * head.most_active) || is_over) {
        return;
    }
    end_run(
        head,
        {RunEnd::NothingWorks,
         fmt::format(
             "nothing succeeds: the first {} trials all failed. The last was trial {}: {}{}",
             failed,
             to_string(last),
             to_string(ended.outcome),
             with_output(ended.last_lines)
         )},
        StopKind::Graceful,
        now
    );
}

}  // namespace muster
