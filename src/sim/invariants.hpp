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
#include "sim/simulated_node.hpp"

namespace muster {

struct RunningAttempt;

/// A node as the head counts it: it said Hello and was not reported lost since.
struct CountedNode {
    NodeId id;
    const SimulatedNode* node = nullptr;
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
    /// `lease` is how long the head may take to know that a node is lost.
    Watch(const ExperimentSpec& spec, Duration lease) : spec_(spec), lease_(lease) {}

    // What happens, in order.

    /// A new head has taken in `kept` and begins; whatever the one before it knew is gone.
    void run_begins(const std::vector<Fact>& kept);
    /// The node is reported lost to the head, or comes back before it was.
    void node_gone(NodeId node);
    /// The end of an attempt is about to reach the head; its process made so many reports.
    void reports_made(AttemptId attempt, std::uint64_t made);
    /// The head has taken in `event` and answered `step`.
    void head_stepped(const Head& head, const Event& event, const Step& step);
    void carried_out(const Command& command);
    /// Something outside made an attempt of this trial fail.
    void trial_crashed(TrialId trial) { crashed_.insert(trial); }

    // What must hold.

    void check_now(const Head& head, const std::vector<CountedNode>& nodes, TimePoint now);
    /// A new head that takes in all facts knows what the old one did.
    void check_facts(const Head& head, const Head& restored);
    /// The experiment has ended; `configs` are what an undisturbed run would try.
    void check_end(
        const Head& head,
        const std::vector<Fact>& facts,
        const std::vector<Config>& configs,
        const std::vector<ExpectedEnd>& expected
    );

    /// The first promise that was broken: the sentence and what broke it.
    const std::optional<std::string>& violation() const { return violation_; }
    void violate(std::string_view sentence, const std::string& what);

  private:
    /// An attempt as its messages and facts tell it.
    struct Attempt {
        TrialId trial;
        /// How often each bundle's node had gone when the attempt started.
        std::vector<std::uint32_t> node_losses;
        std::vector<std::uint32_t> told_cores;
        std::uint64_t reports = 0;
    };

    void take_fact(const Fact& fact);
    void take_command(const Command& command);
    void check_report_kept(const Reported& reported, const Step& step);
    void check_attempts(const Head& head);
    void check_promises(const Head& head);
    void check_active(const Head& head, TimePoint now);
    void check_stopping(TrialId id, TimePoint now);
    void check_members(const Head& head, const std::vector<CountedNode>& nodes, TimePoint now);
    void check_waiting(const Head& head, TimePoint now);
    void check_reason(const Head& head, TimePoint now);
    void check_trial_end(TrialId id, TrialState state, ExpectedEnd expected);
    /// Whether the node of this bundle is up and was never gone since the attempt started.
    bool is_there(const Head& head, const RunningAttempt& running, std::size_t bundle) const;

    const ExperimentSpec& spec_;
    Duration lease_;
    std::optional<std::string> violation_;
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
    std::set<TrialId> crashed_;
    std::uint32_t explained_ = 0;
};

}  // namespace muster
