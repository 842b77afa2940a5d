// SPDX-License-Identifier: Apache-2.0
//
// processes - the agent's side of everything that runs on its node.
//
// Each running member has a keeper, a process that starts it, watches it and tells what happens to
// it; keepers are reused. No call here blocks, apart from shutdown(): what can't be sent at once
// is kept and sent from receive().
//
// For every launch() there is exactly one MemberEnded, after which receive() says nothing more of
// that member; a MemberStarted comes before it unless the member could not be started or its
// keeper was lost early. MemberEnded comes only when no process of the member is left on the node,
// children with a session of their own and orphans included.

#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/time.hpp"
#include "process/spawner.hpp"
#include "protocol/agent_events.hpp"
#include "protocol/launch.hpp"

namespace muster {

class Processes {
  public:
    /// `environment` is what trials see below their plan's own variables, as "NAME=value": see
    /// trial_base_environment().
    Processes(Spawner spawner, std::vector<std::string> environment);

    /// As shutdown() with one second.
    ~Processes();

    Processes(Processes&&) noexcept;
    Processes& operator=(Processes&&) noexcept;
    Processes(const Processes&) = delete;
    Processes& operator=(const Processes&) = delete;

    /// Changes the environment of the launches that follow.
    void set_environment(std::vector<std::string> environment);

    /// Starts a member in a keeper of its own.
    ///
    /// REQUIRES: the key does not run here.
    void launch(const LaunchPlan& plan);

    /// Ends a member's processes. Graceful (and GoalReached): SIGTERM, after the plan's grace
    /// SIGKILL; Kill: SIGKILL at once. A member that has ended already is no error.
    void end(MemberKey key, StopKind kind);

    /// Moves all threads of a running member to other hardware threads.
    void bind(MemberKey key, const std::vector<std::uint32_t>& processing_units);

    /// Sends a member's own process, not its children, a signal that does not ask for its end.
    void signal(MemberKey key, int number);

    /// Readable when receive() has something to do. Stays the same for life.
    int fd() const;

    /// What happened since the last call: MemberStarted, MemberEnded, ReportArrived, and
    /// ReportRefused for reports that were no reports as well as for other remarks about a member
    /// (a full disk). Returns at once; bounded work a call, so fd() may still be readable after it.
    std::vector<AgentEvent> receive();

    /// Members that run, by this side's knowledge.
    std::size_t running() const;

    /// False once the spawner is gone: every member ends as Lost and nothing can be launched.
    bool alive() const;

    /// Why nothing can be started any more, in words for the user; empty while alive().
    std::string death_reason() const;

    /// Kills every member, dismisses keepers and spawner and waits for them until `deadline` has
    /// passed. True when nothing is left. Events not yet received are dropped.
    bool shutdown(Duration deadline);

    /// As shutdown(), but the spawner goes on and is given back for another Processes. Nothing when
    /// something is left, or the spawner is gone.
    std::optional<Spawner> give_back(Duration deadline);

  private:
    /// For something to receive; false once it is later than `until`.
    bool wait_a_little(std::chrono::steady_clock::time_point until) const;

    struct State;
    std::unique_ptr<State> state_;
};

}  // namespace muster
