// SPDX-License-Identifier: Apache-2.0
//
// queue_why - why a trial waits, in words. It asks the same questions as next(), so that the answer
// is what next() would do.

#include <algorithm>

#include <fmt/format.h>

#include "placement/queue_state.hpp"

namespace muster {
namespace {

/// "00003, 00007 and 12 more".
std::string list_trials(const std::vector<TrialId>& trials) {
    constexpr std::size_t kMost = 5;
    std::string text;
    for (std::size_t i = 0; i < std::min(trials.size(), kMost); ++i) {
        text += (i == 0 ? "" : ", ") + to_string(trials[i]);
    }
    return trials.size() <= kMost ? text
                                  : fmt::format("{} and {} more", text, trials.size() - kMost);
}

/// Of the kinds that `asked` names, what `left` has: "{cpu: 1, gpu: 0}" without braces.
std::string left_of(const PlacementGroupSpec& asked, const Cluster& cluster) {
    const ResourceSet& all = cluster.capacity();
    const ResourceSet& used = cluster.in_use();
    std::string text;
    const auto add = [&text](std::string_view name, const std::string& value) {
        text += fmt::format("{}{} {}", text.empty() ? "" : ", ", name, value);
    };
    ResourceSet kinds;
    for (const Bundle& bundle : asked.bundles) {
        kinds.cpu += bundle.cpu;
        kinds.gpu += bundle.gpu;
        kinds.memory_bytes += bundle.memory_bytes;
        for (const NamedAmount& entry : bundle.custom) {
            kinds.set_custom(entry.name, entry.amount);
        }
    }
    const auto of = [](Amount free, Amount total) {
        return fmt::format("{} of {}", to_string(free), to_string(total));
    };
    if (!kinds.cpu.is_zero()) {
        add("cpu", of(all.cpu - used.cpu, all.cpu));
    }
    if (!kinds.gpu.is_zero()) {
        add("gpu", of(all.gpu - used.gpu, all.gpu));
    }
    if (kinds.memory_bytes != 0) {
        add("memory",
            fmt::format(
                "{} of {}",
                format_bytes(all.memory_bytes - used.memory_bytes),
                format_bytes(all.memory_bytes)
            ));
    }
    for (const NamedAmount& entry : kinds.custom) {
        const Amount total = all.custom_amount(entry.name);
        add(entry.name, of(total - used.custom_amount(entry.name), total));
    }
    return text;
}

}  // namespace

/// What is asked, what is free, and who holds what would serve first.
std::string PlacementQueue::State::shortage(std::uint32_t shape, const Cluster& cluster) const {
    std::string text = fmt::format("needs {}", to_string(shapes[shape]));
    const std::string left = left_of(shapes[shape], cluster);
    text += left.empty() ? "; every core has such a trial already"
                         : fmt::format("; free in the whole cluster: {}", left);
    const std::optional<RoomPlan> plan = cluster.plan_room(shapes[shape], by_end());
    if (!plan) {
        return text;
    }
    std::vector<TrialId> holders;
    for (const NodeId node : plan->nodes) {
        const std::vector<TrialId> there = cluster.holders(node);
        holders.insert(holders.end(), there.begin(), there.end());
    }
    std::sort(holders.begin(), holders.end());
    holders.erase(std::unique(holders.begin(), holders.end()), holders.end());
    if (!holders.empty() && !plan->nodes.empty()) {
        text += fmt::format(
            "; room is expected first on {}{}, held by {}",
            cluster.inventory(plan->nodes.front()).name,
            plan->nodes.size() > 1 ? fmt::format(" and {} more", plan->nodes.size() - 1) : "",
            list_trials(holders)
        );
    }
    return text;
}

WaitExplanation
PlacementQueue::State::why_first(std::uint32_t shape, const Cluster& cluster, TimePoint now) const {
    if (const Status feasible = cluster.feasible(shapes[shape]); !feasible) {
        return {WaitReason::Infeasible, feasible.error().message};
    }
    if (at_limit()) {
        return {
            WaitReason::ConcurrencyLimit,
            fmt::format(
                "{} trials run, which is all that max_concurrent_trials: {} allows",
                running.size(),
                options.max_concurrent_trials
            )};
    }
    if (try_place(cluster, shape, now)) {
        return {
            WaitReason::Startable,
            fmt::format("{} fits and starts next", to_string(shapes[shape]))};
    }
    if (!may_use_held(shape, now) && cluster.place(shapes[shape])) {
        return {
            WaitReason::NodesHeld,
            fmt::format(
                "needs {}; it would fit, but on what is held for trial {}, which has waited longer "
                "than {}",
                to_string(shapes[shape]),
                to_string(hold->trial),
                format_duration(options.starvation_bound)
            )};
    }
    return {WaitReason::DoesNotFit, shortage(shape, cluster)};
}

WaitExplanation PlacementQueue::why(TrialId trial, const Cluster& cluster, TimePoint now) const {
    const std::optional<std::uint32_t> shape = state_->waiting.find(trial);
    if (!shape) {
        return {WaitReason::NotWaiting, "does not wait for resources"};
    }
    if (state_->closed[*shape]) {
        return {
            WaitReason::Closed,
            fmt::format(
                "no more trials that need {} are to start", to_string(state_->shapes[*shape])
            )};
    }
    WaitExplanation first = state_->why_first(*shape, cluster, now);
    const std::size_t ahead = state_->waiting.ahead_of(trial);
    if (ahead == 0 || first.reason == WaitReason::Infeasible ||
        first.reason == WaitReason::ConcurrencyLimit) {
        return first;
    }
    return {
        WaitReason::BehindOthers,
        fmt::format(
            "{} trial{} that ask{} for the same {} before it; the first of them {}",
            ahead,
            ahead == 1 ? "" : "s",
            ahead == 1 ? "s" : "",
            ahead == 1 ? "is" : "are",
            first.text
        )};
}

}  // namespace muster
