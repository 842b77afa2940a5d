// SPDX-License-Identifier: Apache-2.0
//
// simulated_node - one node: the real Agent, with simulated members in place of processes. It is
// driven in virtual time, its own: whoever holds it calls wake() at next_wake() and passes messages
// on.

#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "agent/agent.hpp"
#include "base/random.hpp"
#include "base/time.hpp"
#include "protocol/messages.hpp"
#include "resources/node_inventory.hpp"
#include "sim/simulated_storage.hpp"
#include "sim/trial_script.hpp"

namespace muster {

/// A member as the node's processes are: from its launch until nothing of it is left.
struct SimulatedMember {
    /// Fetching: what it is to go on from comes from another node.
    enum class Phase { Fetching, Starting, Running, Leaving };

    TrialScript script;
    Duration grace{0};
    CheckpointPlan checkpoints;
    Phase phase = Phase::Starting;
    TimePoint launched;
    TimePoint started;
    /// When it would have started, had it done all its work without a break.
    TimePoint origin;
    /// When it does what its phase does next.
    TimePoint next;
    std::uint32_t reports_made = 0;
    /// Fetching: the piece that is asked for.
    std::uint32_t piece = 0;
    /// The checkpoint that it waits for to be safe, and since when.
    std::optional<std::uint32_t> awaited;
    TimePoint waits_since;
    bool leaves_when_safe = false;
    /// Leaving: how it will be said to have ended.
    Outcome outcome;
};

struct PeerPiece;

/// Something that happened to a checkpoint on a node.
struct CheckpointTouch {
    enum class Kind {
        /// Its files were removed.
        Removed,
        /// A trial goes on from it.
        Resumed,
        /// A trial was to go on from it, and it is not there.
        Missing,
        /// A trial was told that it is safe.
        Answered,
    };

    Kind kind = Kind::Removed;
    TrialId trial;
    std::uint32_t number = 0;
    /// Who saved it. Of Missing and Answered unknown.
    AttemptId attempt;
    /// Missing: the node that was asked for it.
    std::optional<NodeId> asked;
};

class SimulatedNode {
  public:
    /// `process_delay` is what a launch takes, and a kill. `storage` outlives the node.
    SimulatedNode(
        NodeInventory inventory,
        AgentOptions options,
        DurationRange process_delay,
        SimulatedStorage& storage,
        RandomStream random
    );

    /// The node's process begins with a new agent. REQUIRES: !is_up().
    void start(std::uint32_t incarnation, TimePoint now);
    /// The node is gone with everything on it, whether or not it was up.
    void lose();
    /// What lies on its own disk is gone. REQUIRES: !is_up().
    void lose_disk();

    void head_said(const ToAgent& message, const TrialModel& model, TimePoint now);
    void head_lost(const TrialModel& model, TimePoint now);
    /// It can't run trials any more.
    void break_down(const TrialModel& model, TimePoint now);
    /// It stood still for so long, and its clock with it.
    void stood_still(Duration gap, const TrialModel& model, TimePoint now);
    /// What is launched from now on fails, in this life of the node and in every other.
    void go_bad() { is_bad_ = true; }
    bool is_bad() const { return is_bad_; }
    /// Does whatever is due. `now` is next_wake().
    void wake(const TrialModel& model, TimePoint now);
    /// When wake() is next needed; kNever when nothing is awaited.
    TimePoint next_wake() const;

    /// Something kills the member's process, if it has one. False otherwise.
    bool crash_member(const MemberKey& key, TimePoint now);

    bool is_up() const { return agent_.has_value(); }
    std::uint32_t incarnation() const { return incarnation_; }
    const NodeInventory& inventory() const { return inventory_; }
    const std::map<MemberKey, SimulatedMember>& members() const { return members_; }
    /// Reports that the attempt's process made, in this life of the node.
    std::uint64_t reports_made(AttemptId attempt) const;

    /// What the agent has said since the last call.
    std::vector<FromAgent> take_messages();
    /// What happened to checkpoints since the last call.
    std::vector<CheckpointTouch> take_touches();

  private:
    void tell_agent(const AgentEvent& event, const TrialModel& model, TimePoint now);
    void carry_out(const AgentCommand& command, const TrialModel& model, TimePoint now);
    void launch(const LaunchPlan& plan, const TrialModel& model, TimePoint now);
    void end_member(const EndMember& command, const TrialModel& model, TimePoint now);
    void act(const MemberKey& key, const TrialModel& model, TimePoint now);
    void run_on(const MemberKey& key, const TrialModel& model, TimePoint now);
    void report(const MemberKey& key, const TrialModel& model, TimePoint now);
    /// Does what its script says next, unless it ends or waits.
    void go_on(const MemberKey& key);
    // simulated_checkpoints.cpp
    void clean(const LaunchPlan& plan);
    /// False when it is not there.
    bool resume(const MemberKey& key, TimePoint now);
    void cannot_resume(const MemberKey& key, const TrialModel& model, TimePoint now);
    void save(const MemberKey& key, const TrialModel& model, TimePoint now);
    void wait_until_safe(SimulatedMember& member, const MemberKey& key, TimePoint now);
    void answer(const AnswerCheckpoint& answered, TimePoint now);
    void warn(const MemberKey& key, const TrialModel& model, TimePoint now);
    void ask_piece(const MemberKey& key, const TrialModel& model, TimePoint now);
    void hear_peer(const HandFromPeer& heard, const TrialModel& model, TimePoint now);
    void hear_piece(NodeId from, const PeerPiece& piece, const TrialModel& model, TimePoint now);
    void remove_files(const std::string& directory, std::uint32_t number);
    /// The member's process is gone; its leftovers may stay on.
    void exit(const MemberKey& key, Outcome outcome, TimePoint now);
    /// The member will end so at `when`, unless it was to end earlier.
    void leave_at(const MemberKey& key, Outcome outcome, TimePoint when);
    void move_to(const MemberKey& key, SimulatedMember& member, TimePoint next);
    Duration draw(DurationRange range);

    NodeInventory inventory_;
    AgentOptions options_;
    DurationRange process_delay_;
    SimulatedStorage* storage_;
    RandomStream random_;
    bool is_bad_ = false;
    std::optional<Agent> agent_;
    std::uint32_t incarnation_ = 0;
    std::map<MemberKey, SimulatedMember> members_;
    /// Members by when they act next.
    std::multimap<TimePoint, MemberKey> due_;
    std::map<AttemptId, std::uint64_t> reports_made_;
    std::vector<FromAgent> outbox_;
    std::vector<CheckpointTouch> touches_;
    /// Checkpoint directories that lie on its own disk.
    std::set<std::string> own_directories_;
};

}  // namespace muster
