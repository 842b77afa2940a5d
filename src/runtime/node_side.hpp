// SPDX-License-Identifier: Apache-2.0
//
// node_side - what a node's loop does for its Agent: carries events in from the trials' processes
// and the report socket, and commands out. Rank 0's loop has one beside the head, the loop of every
// other rank has nothing else.
//
// A member's reports are always taken in before its end.

#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <vector>

#include <poll.h>

#include "agent/agent.hpp"
#include "base/time.hpp"
#include "process/processes.hpp"
#include "report/report_server.hpp"
#include "runtime/node_checkpoints.hpp"

namespace muster {

/// The agent's line to the head.
class HeadLine {
  public:
    virtual ~HeadLine() = default;

    virtual void say(FromAgent message) = 0;
    /// Everything said before is void; the Hello of `incarnation` comes next.
    virtual void begin_anew(std::uint32_t incarnation) = 0;
};

class NodeSide {
  public:
    /// Entries that add_poll_fds() adds.
    static constexpr std::size_t kPollFds = 3;

    /// All of these outlive it.
    NodeSide(Agent& agent, Processes& processes, ReportServer& reports, HeadLine& head);

    void tell(AgentEvent event, TimePoint now);

    /// Adds kPollFds entries for poll(). Without `reading` they wait for nothing: what trials say
    /// stays where it is, and holds them back.
    void add_poll_fds(std::vector<pollfd>& fds, bool reading) const;
    /// Takes in what poll() found. REQUIRES: `fds` are the entries that were added.
    void take(const pollfd* fds, TimePoint now);

    /// What is due by the clock.
    void tick(TimePoint now);
    TimePoint next_deadline() const;

    std::size_t member_count() const { return agent_.member_count(); }
    /// The agent has left its node: it said all that it will ever say.
    bool has_left() const { return has_left_; }

  private:
    void take_reports(TimePoint now);
    void take_processes(TimePoint now);
    void take_checkpoints();
    void end_member(MemberEnded ended, TimePoint now);
    void carry_out(AgentCommand command, TimePoint now);
    void launch(const LaunchPlan& plan, TimePoint now);

    Agent& agent_;
    Processes& processes_;
    ReportServer& reports_;
    HeadLine& head_;
    NodeCheckpoints checkpoints_;
    /// What carrying out a command led to; told once its turn comes.
    std::deque<AgentEvent> events_;
    bool telling_ = false;
    bool said_broken_ = false;
    bool has_left_ = false;
};

}  // namespace muster
