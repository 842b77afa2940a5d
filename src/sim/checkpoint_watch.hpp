// SPDX-License-Identifier: Apache-2.0
//
// checkpoint_watch - what must hold of checkpoints: that what is kept is there, what is dropped was
// dropped on disk first, that trials hear of what is safe and go on from the latest, and that
// `keep` and `budget` are respected. Worked out anew from the facts, the messages and the disks.

#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "muster/experiment.hpp"

#include "base/ids.hpp"
#include "head/head.hpp"
#include "protocol/commands.hpp"
#include "protocol/events.hpp"
#include "protocol/facts.hpp"
#include "sim/complaint.hpp"
#include "sim/simulated_node.hpp"
#include "sim/simulated_storage.hpp"

namespace muster {

class CheckpointWatch {
  public:
    CheckpointWatch(const ExperimentSpec& spec, Complaint& complaint)
        : spec_(spec),
          complaint_(complaint) {}

    /// A new head has taken in `kept`; nothing else is on disk.
    void run_begins(const std::vector<Fact>& kept);
    /// The head has taken in `event` and answered `step`.
    void head_stepped(const Head& head, const Event& event, const Step& step);
    /// The journal has the fact on disk.
    void durable(const Fact& fact) { apply(on_disk_, fact); }
    /// The trial has ever saved a checkpoint.
    bool has_saved(TrialId trial) const { return highest_.count(trial) != 0; }
    void touched(const std::string& node, const CheckpointTouch& touch);
    void disk_lost(const std::string& node) { disks_lost_.insert(node); }
    /// The experiment has ended. `undisturbed`: and nothing went wrong in it.
    void check_end(const SimulatedStorage& storage, bool undisturbed);

  private:
    struct Kept {
        /// Who saved it.
        AttemptId attempt;
        std::int64_t bytes = 0;
        std::optional<double> score;
        std::string node;
    };
    using Numbers = std::map<std::uint32_t, Kept>;
    using Table = std::map<TrialId, Numbers>;

    void apply(Table& table, const Fact& fact);
    void take_fact(const Fact& fact);
    void check_dropped(const CheckpointDropped& dropped);
    void check_surplus();
    void check_start(const Head& head, NodeId to, const Start& start);
    std::optional<std::uint32_t>
    latest_within_reach(const Head& head, const Numbers& numbers, NodeId home, bool without) const;
    void check_keep(TrialId trial);
    void check_budget();
    bool is_better(std::uint32_t left, const Kept& a, std::uint32_t right, const Kept& b) const;
    const Kept* find(const Table& table, TrialId trial, std::uint32_t number) const;

    const ExperimentSpec& spec_;
    Complaint& complaint_;
    /// As the head has said, and as the journal has it on disk.
    Table said_;
    Table on_disk_;
    /// Each that ever was on disk.
    std::set<std::tuple<TrialId, std::uint32_t>> ever_on_disk_;
    /// The highest number of each trial.
    std::map<TrialId, std::uint32_t> highest_;
    /// Trials that ended and won't run again, as far as is known.
    std::set<TrialId> ended_;
    /// Of the present step: trials that saved, and what an agent could not find.
    std::set<TrialId> saved_;
    std::optional<CheckpointGone> gone_;
    std::vector<std::pair<CheckpointDropped, Kept>> surplus_;
    /// A node that joined in this step, perhaps after it was lost in it.
    std::optional<NodeId> joined_;
    std::map<std::string, NodeId> nodes_;
    std::set<std::string> disks_lost_;
};

}  // namespace muster
