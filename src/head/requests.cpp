// SPDX-License-Identifier: Apache-2.0
//
// requests - which request a trial has: an alternative of the spec, or what a function of the
// program says of its config.

#include <algorithm>
#include <exception>
#include <utility>

#include <fmt/format.h>

#include "head/head_state.hpp"

namespace muster {
namespace {

/// The index of a request, which becomes one of the spec's alternatives when it is new.
std::uint32_t index_of(HeadState& head, PlacementGroupSpec group) {
    const auto next = static_cast<std::uint32_t>(head.spec.resources.size());
    const auto [found, is_new] = head.requests_by_text.try_emplace(to_string(group), next);
    if (is_new) {
        head.queue.add_shape(group);
        head.durations.emplace_back();
        head.spec.resources.push_back({{}, std::move(group)});
    }
    return found->second;
}

Result<PlacementGroupSpec> ask_function(const ExperimentSpec& spec, const Config& config) {
    std::string what = "something that is no std::exception";
    try {
        return spec.resources_of(config);
    } catch (const std::exception& thrown) {
        what = thrown.what();
    } catch (...) {  // NOLINT(bugprone-empty-catch): `what` says it
    }
    return Error{ErrorCode::InvalidInput, "the function threw " + what};
}

}  // namespace

Result<std::uint32_t> request_for(HeadState& head, const Config& config) {
    if (!head.spec.resources_of) {
        for (std::size_t index = 0; index < head.spec.resources.size(); ++index) {
            if (holds(head.spec.resources[index].when, config)) {
                return static_cast<std::uint32_t>(index);
            }
        }
        return Error{
            ErrorCode::InvalidInput,
            fmt::format(
                "no entry of `resources` holds for {}: add a last one without `when`",
                to_text(config)
            )};
    }
    Result<PlacementGroupSpec> group = ask_function(head.spec, config);
    if (!group.ok()) {
        return Error{
            group.error().code,
            fmt::format("the resources of {}: {}", to_text(config), group.error().message)};
    }
    return index_of(head, *std::move(group));
}

std::uint32_t request_or_any(HeadState& head, const Result<std::uint32_t>& request) {
    if (request.ok()) {
        return *request;
    }
    return head.spec.resources.empty() ? index_of(head, {}) : 0;
}

Status judge_request(const HeadState& head, std::uint32_t request) {
    if (!head.spec.resources_of) {
        return Ok{};
    }
    // What nodes that are away now could run is not given up.
    const std::vector<NodeId> up = head.nodes.up();
    const bool is_whole =
        up.size() >= head.nodes_at_begin && std::none_of(up.begin(), up.end(), [&](NodeId node) {
            return head.cluster.is_set_aside(node);
        });
    return is_whole ? head.cluster.feasible(head.spec.resources[request].group) : Ok{};
}

}  // namespace muster
