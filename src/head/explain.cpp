// SPDX-License-Identifier: Apache-2.0
//
// explain - why a trial is where it is, in words.

#include <fmt/format.h>

#include "head/head_state.hpp"

namespace muster {
namespace {

std::string list_of(const std::vector<std::uint32_t>& numbers) {
    std::string text;
    for (const std::uint32_t number : numbers) {
        text += text.empty() ? "" : ",";
        text += std::to_string(number);
    }
    return text;
}

std::string where(const HeadState& head, const RunningAttempt& running) {
    std::string text;
    for (std::size_t index = 0; index < running.placement.bundles.size(); ++index) {
        const BundlePlacement& bundle = running.placement.bundles[index];
        const NodeRecord* node = head.nodes.find(bundle.node);
        const std::string name = node == nullptr ? "a lost node" : node->name;
        text += fmt::format(
            "{}bundle {} {} on {}", index == 0 ? "" : "; ", index, to_string(bundle.bundle), name
        );
        if (node == nullptr) {
            continue;
        }
        text += fmt::format(", cores {}", list_of(head.cluster.cores_of(running.placement, index)));
        for (const DeviceShare& share : bundle.devices) {
            text += fmt::format(
                ", {} of device {}", to_string(share.share), node->devices.at(share.device)
            );
        }
    }
    return text;
}

/// "; node n3 is set aside, since …", or nothing when none is.
std::string set_aside_text(const HeadState& head) {
    std::string names;
    for (const NodeId node : head.record.aside()) {
        names += (names.empty() ? "" : ", ") + head.nodes.find(node)->name;
    }
    return names.empty() ? "" : "; set aside, since trials fail there: " + names;
}

}  // namespace

std::string Head::explain(TrialId id, TimePoint now) const {
    const HeadState& head = *state_;
    const Trial* trial = head.trials.find(id);
    if (trial == nullptr) {
        return fmt::format(
            "trial {} does not exist; {} were created so far", to_string(id), head.trials.size()
        );
    }
    const TrialProgress* progress = trial->progress.get();
    if (progress != nullptr && progress->running) {
        const RunningAttempt& running = *progress->running;
        return fmt::format(
            "{}{} for {} in attempt {}{}: {}",
            to_string(trial->state),
            running.stop ? " (" + running.stop->text + ")" : "",
            format_duration(now - running.started),
            to_string(running.attempt),
            running.resume_from ? fmt::format(", from checkpoint {}", *running.resume_from) : "",
            where(head, running)
        );
    }
    if (trial->state != TrialState::Pending) {
        const bool has_reason = progress != nullptr && !progress->reason.empty();
        return fmt::format(
            "{}{}{}",
            to_string(trial->state),
            has_reason ? ": " + progress->reason : "",
            trial->state == TrialState::Paused
                ? "; it goes on in the next run, from " + resume_text(head, id)
                : ""
        );
    }
    switch (head.phase) {
        case RunPhase::Restoring:
        case RunPhase::WaitingForNodes:
            return fmt::format(
                "Pending: waits for nodes, {} of {} have reported",
                head.nodes.count(),
                head.options.expected_nodes
            );
        case RunPhase::Going:
            if (head.queue.is_closed(trial->alternative)) {
                return "Pending: " + closed_text(head, trial->alternative, now);
            }
            return "Pending: " + head.queue.why(id, head.cluster, now).text + set_aside_text(head);
        case RunPhase::Ending:
        case RunPhase::Over:
            return fmt::format("Pending: the run ends: {}", head.ending->reason);
    }
    return "Pending";
}

}  // namespace muster
