// SPDX-License-Identifier: Apache-2.0
//
// invariants - what must hold after every event of a simulated run, each said in a sentence. They
// are worked out anew from the facts, the messages and the placements, so that a mistake in the
// head's own books shows.

#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "muster/experiment.hpp"

#include "base/ids.hpp"
#include "base/time.hpp"
#include "head/head.hpp"
#include "protocol/commands.hpp"
#include "protocol/events.hpp"
#include "protocol/facts.hpp"
#include "sim/checkpoint_watch.hpp"
#include "sim/complaint.hpp"
#include "sim/end_watch.hpp"
#include "sim/simulated_node.hpp"

namespace muster {

struct RunningAttempt;

/// A node as the head counts it: it said Hello and was not reported lost since.
struct CountedNode {
    NodeId id;
    const SimulatedNode* node = nullptr;
    /// By the node's own clock.
    TimePoint now;
};

/// How a trial must end.
enum class ExpectedEnd {
    Completes,
    /// Completes or fails, depending on what else happens to it.
    CompletesOrFails,
    Fails,
    /// By its time limit.
    Stops,
    Any,
};

/// Watches one experiment through all its runs.
class Watch {
  public:
    /// `silence` is how long the head may take to know that a node does not hear it,
    /// `start_timeout` is RunOptions's.
    Watch(const ExperimentSpec& spec, Duration silence, Duration start_timeout)
        : spec_(spec),
          silence_(silence),
          start_timeout_(start_timeout),
          checkpoints_(spec, complaint_),
          end_(spec, complaint_) {}

    // What happens, in order.

    /// A new head has taken in `kept` and begins; whatever the one before it knew is gone.
    void run_begins(const std::vector<Fact>& kept, TimePoint now);
    /// The node is reported lost to the head, or comes back before it was.
    void node_gone(NodeId node);
    /// The end of an attempt is about to reach the head; its process made so many reports.
    void reports_made(AttemptId attempt, std::uint64_t made);
    /// The head has taken in `event` and answered `step`.
    void head_stepped(const Head& head, const Event& event, const Step& step, TimePoint now);
    void carried_out(const Command& command);
    /// Something outside made an attempt of this trial fail.
    void trial_crashed(TrialId trial) { crashed_.insert(trial); }
    /// An attempt of this trial is on a node where everything fails.
    void fails_by_its_node(TrialId trial) { on_bad_node_.insert(trial); }

    /// All trials have ended; those that failed are to run again.
    void failed_run_again(const Head& head);
    /// They need not any more.
    void failed_stay() { to_retry_.clear(); }

    // What must hold.

    void check_now(const Head& head, const std::vector<CountedNode>& nodes, TimePoint now);
    /// A new head that takes in all facts knows what the old one did.
    void check_facts(const Head& head, const Head& restored);
    /// The experiment has ended so; `configs` are what an undisturbed run would try.
    void check_end(
        const Head& head,
        RunEnd end,
        const std::vector<Fact>& facts,
        const std::vector<Config>& configs,
        const std::vector<ExpectedEnd>& expected
    );

    /// The first promise that was broken: the sentence and what broke it.
    const std::optional<std::string>& violation() const { return complaint_.first(); }
    void violate(std::string_view sentence, const std::string& what) {
        complaint_.say(sentence, what);
    }

    CheckpointWatch& checkpoints() { return checkpoints_; }

  private:
    /// An attempt as its messages and facts tell it.
    struct Attempt {
        TrialId trial;
        /// How often each bundle's node had gone when the attempt started.
        std::vector<std::uint32_t> node_losses;
        std::vector<std::uint32_t> told_cores;
        std::uint64_t reports = 0;
        NodeId node;
    };

    void start_attempt(const AttemptStarted& started);
    void end_attempt(const AttemptEnded& ended);

    void take_fact(const Fact& fact);
    void take_command(const Command& command);
    void check_report_kept(const Reported& reported, const Step& step);
    void check_hello(NodeId node, const Hello& hello, const Step& step);
    void check_set_aside(const Head& head);
    void check_attempts(const Head& head);
    void check_promises(const Head& head);
    void check_active(const Head& head, TimePoint now);
    void check_stopping(TrialId id, TimePoint now);
    void check_members(const Head& head, const std::vector<CountedNode>& nodes);
    void check_waits(const CountedNode& node, const MemberKey& key, const SimulatedMember& member);
    void check_waiting(const Head& head, TimePoint now);
    void check_reason(const Head& head, TimePoint now);
    void check_budget(TimePoint now);
    void check_configs(const Head& head, RunEnd end, const std::vector<Config>& configs);
    void check_trial_end(TrialId id, TrialState state, RunEnd end, ExpectedEnd expected);
    void check_ends(const std::vector<Fact>& facts);
    /// Whether the node of this bundle is up and was never gone since the attempt started.
    bool is_there(const Head& head, const RunningAttempt& running, std::size_t bundle) const;

    const ExperimentSpec& spec_;
    Duration silence_;
    Duration start_timeout_;
    Complaint complaint_;
    /// When the present run began, and the present step is taken, by the head's clock.
    TimePoint run_began_;
    TimePoint now_;
    std::map<NodeId, std::uint32_t> node_losses_;
    std::map<AttemptId, Attempt> attempts_;
    std::map<TrialId, TimePoint> waiting_since_;
    std::map<TrialId, TimePoint> stopping_since_;
    /// Ends that people were told, results that a Stop rests on, configs that were started.
    std::map<TrialId, TrialState> announced_;
    std::map<TrialId, TrialState> ended_;
    std::map<TrialId, std::uint64_t> results_behind_stop_;
    std::map<TrialId, Config> started_;
    std::set<std::uint32_t> epochs_used_;
    std::map<TrialId, std::uint64_t> results_;
    std::set<TrialId> completed_;
    std::set<TrialId> crashed_;
    std::set<TrialId> on_bad_node_;
    /// Failed ones run again; these have not yet.
    bool is_retry_ = false;
    std::set<TrialId> to_retry_;
    /// The newest incarnation that each node came with, in this run.
    std::map<NodeId, std::uint32_t> incarnations_;
    /// Trials that failed on each node since something worked there.
    std::map<NodeId, std::set<TrialId>> failed_in_a_row_;
    std::set<NodeId> aside_;
    std::uint32_t explained_ = 0;
    CheckpointWatch checkpoints_;
    EndWatch end_;
};

}  // namespace muster
