// SPDX-License-Identifier: Apache-2.0
//
// keeper_link - the agent's end of the socket to one keeper, and what is known of the keeper.

#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include <sys/types.h>

#include "posix/unique_fd.hpp"
#include "process/frames.hpp"
#include "protocol/messages.hpp"
#include "protocol/outcome.hpp"

namespace muster {

struct KeeperLink {
    std::uint32_t id = 0;
    UniqueFd fd;
    FrameBuffer inbox;
    /// Frames that the socket had no room for.
    std::string outbox;
    bool waits_to_write = false;
    /// The member that it holds.
    std::optional<MemberKey> key;
    /// Of the environment that it was told last.
    std::uint64_t environment_version = 0;
    pid_t pid = -1;

    /// It says nothing more.
    bool end_of_file = false;
    /// Nothing that it held is left, by the spawner's word; or the spawner can't give it any more.
    bool gone = false;
    int fork_error = 0;
    std::optional<int> wait_status;

    /// Sends what the socket takes now.
    void send_some();

    /// Takes in at most one bounded piece.
    void receive_some();

    /// How its member ended, when the keeper is gone and did not say.
    Outcome why_lost(bool spawner_alive) const;
};

}  // namespace muster
