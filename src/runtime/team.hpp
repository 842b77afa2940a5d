// SPDX-License-Identifier: Apache-2.0
//
// team - the other ranks of a run, as the head's loop sees them: nodes in place of ranks, events in
// place of messages.

#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include <poll.h>

#include "base/ids.hpp"
#include "base/time.hpp"
#include "protocol/commands.hpp"
#include "protocol/events.hpp"
#include "runtime/post.hpp"
#include "runtime/roll_call.hpp"
#include "transport/transport.hpp"

namespace muster {

class Team {
  public:
    /// `agents` are those that RollCall::enlist() returned; their places are their NodeIds. Both
    /// others outlive it.
    Team(Transport& transport, RollCall& roll_call, const std::vector<AgentRank>& agents);
    /// Dismisses those agents that nobody did. As leave().
    ~Team();
    Team(const Team&) = delete;
    Team& operator=(const Team&) = delete;

    /// The node that rank 0 itself serves.
    std::optional<NodeId> local_node() const { return local_; }
    std::size_t node_count() const { return rank_of_.size(); }

    /// REQUIRES: not the local node.
    void send(NodeId node, ToAgent message);
    /// Ends the sessions with the node up to that of the lost incarnation; a newer one may have
    /// begun.
    void abandon(const Abandon& lost);

    /// What has come in, and the nodes that are certainly gone. Reports and endings stay where they
    /// are, and hold their senders back, unless `with_bulk`. Sends what is to be sent.
    std::vector<Event> receive(bool with_bulk);

    /// Sends what is to be sent, at the end of a turn.
    void flush() { post_.flush(); }

    void add_poll_fds(std::vector<pollfd>& fds) { transport_.add_poll_fds(fds); }
    void polled(std::span<const pollfd> fds) { transport_.polled(fds); }
    Duration longest_wait() const { return transport_.longest_wait(); }

    /// Some rank was lost: nobody may wait for the others in MPI_Finalize.
    bool lost_any() const { return lost_any_ || roll_call_.lost_any(); }

    /// The run is over and every agent was dismissed: sends the idle away too, and waits a little
    /// until all of them have heard it.
    void leave();

  private:
    void take_broken(std::vector<Event>& events);
    void take_unreadable(const HeadPost::Unreadable& unreadable, std::vector<Event>& events);
    void lose(std::uint32_t rank, const std::string& why, std::vector<Event>& events);

    Transport& transport_;
    RollCall& roll_call_;
    HeadPost post_;
    std::vector<std::uint32_t> rank_of_;
    std::map<std::uint32_t, NodeId> node_of_;
    /// The session in which each agent spoke last: its incarnation.
    std::map<std::uint32_t, std::uint32_t> session_of_;
    /// Agents that are not abandoned.
    std::vector<std::uint32_t> reached_;
    std::optional<NodeId> local_;
    bool lost_any_ = false;
    bool has_left_ = false;
};

}  // namespace muster
