// SPDX-License-Identifier: Apache-2.0
//
// messages - everything that passes between the head and an agent, and nothing else.

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "muster/config.hpp"
#include "muster/experiment.hpp"
#include "muster/result.hpp"

#include "base/boxed.hpp"
#include "base/ids.hpp"
#include "base/time.hpp"
#include "protocol/outcome.hpp"
#include "resources/node_inventory.hpp"

namespace muster {

/// One process group of one attempt: what agents and keepers talk about.
struct MemberKey {
    TrialId trial;
    AttemptId attempt;
    MemberId member;

    friend auto operator<=>(const MemberKey&, const MemberKey&) = default;
};

// --- head to agent ---

/// The answer to Hello, once: what every trial of this experiment has in common.
struct Setup {
    std::uint32_t epoch = 0;
    std::string experiment;
    /// Absolute; where trial directories are made.
    std::string experiment_dir;
    /// Boxed, so that the other messages do not carry its size.
    Boxed<TrialSpec> trial;
    std::optional<ObjectiveSpec> objective;
    CheckpointStorage checkpoint_storage = CheckpointStorage::Shared;
    /// As CheckpointOptions::path.
    std::string checkpoint_path;
    /// As EndOptions::signal.
    std::int32_t warning_signal = 0;
    /// The experiment's; each trial gets one of its own from it.
    std::uint64_t seed = 0;

    friend bool operator==(const Setup&, const Setup&) = default;
};

/// A bundle of the attempt as its trial is told about it.
struct BundleView {
    std::string host;
    std::vector<std::uint32_t> cores;
    std::vector<std::string> devices;

    friend bool operator==(const BundleView&, const BundleView&) = default;
};

/// Run a member. `cores` index the node's inventory: where its processes may run.
struct Start {
    MemberKey key;
    Config config;
    std::vector<std::uint32_t> cores;
    /// What the member may see, by place in the inventory.
    std::vector<std::uint32_t> devices;
    /// Amounts booked for the member, for {muster.cores}, {muster.gpus} and OMP_NUM_THREADS.
    Amount cpu;
    Amount gpu;
    /// 0 is no limit.
    std::int64_t memory_limit_bytes = 0;
    /// All bundles of the attempt, bundle 0 first.
    std::vector<BundleView> bundles;
    /// The last step that earlier attempts reported, so that steps counted for the trial go on.
    double last_step = 0;
    /// The numbers of its checkpoints that are kept: whatever else lies in its checkpoint directory
    /// is left over from a crash.
    std::vector<std::uint32_t> kept_checkpoints;
    /// Which of them to resume from; nothing is from the start.
    std::optional<std::uint32_t> resume_from;
    /// With node storage, the node where that one lies when it is another.
    std::optional<NodeId> fetch_from;
    /// The number of its next checkpoint; they rise over all attempts.
    std::uint32_t next_checkpoint = 1;

    friend bool operator==(const Start&, const Start&) = default;
};

enum class StopKind : std::uint8_t {
    /// SIGTERM, then after the grace SIGKILL.
    Graceful,
    /// It has reached its goal: it may end by itself within the grace, then as Graceful.
    GoalReached,
    /// SIGKILL at once.
    Kill,
};

/// End a member. Asking again with a harder kind hardens it; a softer one changes nothing.
struct Stop {
    MemberKey key;
    StopKind kind = StopKind::Graceful;

    friend bool operator==(const Stop&, const Stop&) = default;
};

/// Move a running member to other cores, since the shared ones changed.
struct SetCores {
    MemberKey key;
    std::vector<std::uint32_t> cores;

    friend bool operator==(const SetCores&, const SetCores&) = default;
};

/// The checkpoint is in the journal: the trial may rely on it.
struct CheckpointDurable {
    MemberKey key;
    std::uint32_t number = 0;

    friend bool operator==(const CheckpointDurable&, const CheckpointDurable&) = default;
};

/// The journal has dropped the checkpoint: remove its directory, if there is one.
struct DeleteCheckpoint {
    TrialId trial;
    std::uint32_t number = 0;

    friend bool operator==(const DeleteCheckpoint&, const DeleteCheckpoint&) = default;
};

/// The run's time ends in so long: the member may save itself.
struct Warn {
    MemberKey key;
    Duration left{0};

    friend bool operator==(const Warn&, const Warn&) = default;
};

/// What another node's agent said with ToPeer.
struct FromPeer {
    NodeId from;
    std::string content;

    friend bool operator==(const FromPeer&, const FromPeer&) = default;
};

/// A ToPeer did not arrive: that node is not there.
struct PeerUnreachable {
    NodeId node;

    friend bool operator==(const PeerUnreachable&, const PeerUnreachable&) = default;
};

/// The answer to a Heartbeat, at once, whatever the disk does: with it the agent's lease begins
/// anew at the moment when it sent that heartbeat.
struct Alive {
    std::uint64_t heartbeat = 0;

    friend bool operator==(const Alive&, const Alive&) = default;
};

/// The run is over: kill what is left and leave.
struct Dismiss {
    /// No rank was lost, so that all can leave together; filled in by whoever sends it.
    bool orderly = true;

    friend bool operator==(const Dismiss&, const Dismiss&) = default;
};

using ToAgent = std::variant<
    Setup,
    Start,
    Stop,
    SetCores,
    Alive,
    Dismiss,
    CheckpointDurable,
    DeleteCheckpoint,
    Warn,
    FromPeer,
    PeerUnreachable>;

// --- agent to head ---

/// The first message of an agent. `incarnation` is higher each time that the node comes anew.
struct Hello {
    std::uint32_t incarnation = 0;
    NodeInventory inventory;

    friend bool operator==(const Hello&, const Hello&) = default;
};

/// The member's process runs.
struct Started {
    MemberKey key;
    std::int32_t pid = 0;

    friend bool operator==(const Started&, const Started&) = default;
};

/// A report of the trial. `coalesced` counts reports that this one replaced because they came too
/// fast.
struct Reported {
    MemberKey key;
    TrialResult result;
    std::uint64_t coalesced = 0;

    friend bool operator==(const Reported&, const Reported&) = default;
};

/// Nothing of the member is left on the node.
struct Ended {
    MemberKey key;
    Outcome outcome;
    Usage usage;
    /// The end of what it wrote to its output, where the outcome does not have it: at a limit. At
    /// most ten lines of valid UTF-8; may be empty.
    std::string last_lines;

    friend bool operator==(const Ended&, const Ended&) = default;
};

/// Something that a person should read about a trial: a refused report, a binding that failed.
struct Remark {
    MemberKey key;
    std::string text;

    friend bool operator==(const Remark&, const Remark&) = default;
};

/// The agent is alive. Answered with Alive.
struct Heartbeat {
    /// Counts the agent's heartbeats.
    std::uint64_t number = 0;

    friend bool operator==(const Heartbeat&, const Heartbeat&) = default;
};

/// The agent leaves by itself, for its node can't run trials any more. Its last message.
struct Farewell {
    std::string reason;

    friend bool operator==(const Farewell&, const Farewell&) = default;
};

/// A checkpoint of the trial lies whole in its checkpoint directory, as `checkpoint_<number>`.
struct CheckpointSaved {
    MemberKey key;
    std::uint32_t number = 0;
    double step = 0;
    std::int64_t bytes = 0;

    friend bool operator==(const CheckpointSaved&, const CheckpointSaved&) = default;
};

/// The checkpoint that the member was to resume from is not there or can't be fetched: it is to be
/// dropped. The member's end (Lost) follows.
struct CheckpointGone {
    MemberKey key;
    std::uint32_t number = 0;
    /// For people.
    std::string why;

    friend bool operator==(const CheckpointGone&, const CheckpointGone&) = default;
};

/// Something for another node's agent (a piece of a checkpoint, say). The head passes it on
/// unread, as FromPeer, or answers PeerUnreachable.
struct ToPeer {
    NodeId to;
    std::string content;

    friend bool operator==(const ToPeer&, const ToPeer&) = default;
};

using FromAgent = std::variant<
    Hello,
    Started,
    Reported,
    Ended,
    Remark,
    Heartbeat,
    Farewell,
    CheckpointSaved,
    CheckpointGone,
    ToPeer>;

}  // namespace muster
