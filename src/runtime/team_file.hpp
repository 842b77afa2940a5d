// SPDX-License-Identifier: Apache-2.0
//
// team_file - <experiment>/agents.json: which agents serve a run, and for how long they may go on
// without its head. It is there from before they begin until all of them have been dismissed, so
// that whoever goes on after a head that died knows what may still live.

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "muster/error.hpp"

#include "base/time.hpp"

namespace muster {

struct TeamMember {
    std::uint32_t rank = 0;
    /// The node that it serves, for people.
    std::string node;
    /// As in Enrol.
    std::string host;
    std::string boot_id;
    std::int64_t pid = 0;

    friend bool operator==(const TeamMember&, const TeamMember&) = default;
};

struct TeamFile {
    /// Tells this run's signs from those of others.
    std::string token_path;
    /// No trial runs on a node that has heard nothing of the head for so long. In whole seconds.
    Duration lease{0};
    /// Without rank 0, which lives and dies with the head.
    std::vector<TeamMember> agents;

    friend bool operator==(const TeamFile&, const TeamFile&) = default;
};

/// Errors: System.
Status write_team(const std::string& directory, const TeamFile& team);

/// Nothing when there is none. One that is damaged names an agent of which nothing is known, and a
/// long lease.
std::optional<TeamFile> read_team(const std::string& directory);

/// Nobody is left: takes the file and the signs of its agents away.
void remove_team(const std::string& directory);

/// An agent's sign that it has ended, and no process of a trial is left on its node.
void sign_off(const std::string& token_path, std::uint32_t rank);
bool has_signed_off(const TeamFile& team, const TeamMember& member);

}  // namespace muster
