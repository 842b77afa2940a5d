// SPDX-License-Identifier: Apache-2.0
//
// ids - names for things, each a type of its own so that one cannot be passed for another.

#pragma once

#include <compare>
#include <cstdint>
#include <functional>
#include <string>

namespace muster {

/// A trial: dense, counted from 0 in order of creation. Its directory is "00042".
struct TrialId {
    std::uint32_t value = 0;

    friend auto operator<=>(const TrialId&, const TrialId&) = default;
};

/// A node of the cluster: dense, in the order in which nodes were first heard of.
struct NodeId {
    std::uint32_t value = 0;

    friend auto operator<=>(const NodeId&, const NodeId&) = default;
};

/// One execution of a trial, told apart from every other of any trial and any run of the
/// experiment. `epoch` counts the runs (from 1), `number` the attempts begun in that run (from 0).
struct AttemptId {
    std::uint32_t epoch = 0;
    std::uint32_t number = 0;

    friend auto operator<=>(const AttemptId&, const AttemptId&) = default;
};

/// One process group of an attempt, on one node. A plain trial has member 0 alone.
struct MemberId {
    std::uint32_t value = 0;

    friend auto operator<=>(const MemberId&, const MemberId&) = default;
};

/// "00042": how a trial is written in paths, tables and messages.
std::string to_string(TrialId trial);

/// "epoch.number".
std::string to_string(AttemptId attempt);

}  // namespace muster

template <>
struct std::hash<muster::TrialId> {
    std::size_t operator()(muster::TrialId id) const noexcept { return id.value; }
};

template <>
struct std::hash<muster::NodeId> {
    std::size_t operator()(muster::NodeId id) const noexcept { return id.value; }
};

template <>
struct std::hash<muster::AttemptId> {
    std::size_t operator()(muster::AttemptId id) const noexcept {
        return (std::size_t{id.epoch} << 32U) | id.number;
    }
};
