// SPDX-License-Identifier: Apache-2.0
//
// head_state - the head's tables, and the functions that Head::handle routes events to. Private to
// this folder. Each on_… function is named for what happened; it changes the tables and adds to
// `step` what is to be kept and done.

#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "muster/experiment.hpp"

#include "base/ids.hpp"
#include "base/time.hpp"
#include "head/checkpoints.hpp"
#include "head/head.hpp"
#include "head/nodes.hpp"
#include "head/recent_durations.hpp"
#include "head/track_record.hpp"
#include "head/trials.hpp"
#include "placement/cluster.hpp"
#include "placement/queue.hpp"
#include "protocol/commands.hpp"
#include "protocol/events.hpp"
#include "protocol/facts.hpp"

namespace muster {

enum class RunPhase {
    /// Facts of earlier runs come in.
    Restoring,
    /// Waits for the nodes that were promised.
    WaitingForNodes,
    /// Trials are asked for and started.
    Going,
    /// Nothing new starts; what runs is asked to end.
    Ending,
    /// Everybody was dismissed.
    Over,
};

/// When the time of this run ends, and what was done about it.
struct EndOfTime {
    TimePoint at = kNever;
    /// As in EndKnown.
    Duration whole{0};
    /// When this run began.
    TimePoint began;
    std::string why;
    /// The end that people, and that running trials were told of; kNever: none.
    TimePoint told = kNever;
    TimePoint warned_of = kNever;
    /// It ends this run.
    bool has_come = false;
    /// Trials that left by themselves after the warning; they wait for the next run.
    std::vector<TrialId> left;
};

struct HeadState {
    HeadState(ExperimentSpec spec, RunOptions options, std::optional<std::uint64_t> total);

    ExperimentSpec spec;
    RunOptions options;
    std::optional<std::uint64_t> total_trials;

    Cluster cluster;
    PlacementQueue queue;
    Trials trials;
    Nodes nodes;
    TrackRecord record;
    Checkpoints checkpoints;
    /// Where in spec.resources a request is that a function of the program asked for.
    std::unordered_map<std::string, std::uint32_t> requests_by_text;
    /// Of whole trials that came to something, by their requests.
    std::vector<RecentDurations> durations;
    EndOfTime time_ends;
    /// The attempts that hold resources, with their trials.
    std::unordered_map<AttemptId, TrialId> attempts;

    RunPhase phase = RunPhase::Restoring;
    std::uint32_t epoch = 0;
    std::uint32_t next_attempt = 0;
    /// Trials that held resources at once, at most, in this run.
    std::uint64_t most_active = 0;
    /// How this run ends, once it is known to.
    std::optional<RunEnded> ending;
    /// What an earlier run ended as, if it did end.
    std::optional<RunEnd> ended_before;

    bool said_over_budget = false;

    bool ask_open = false;
    bool exhausted = false;

    /// How many nodes were there when trials began to run.
    std::size_t nodes_at_begin = 0;
    /// WaitingForNodes: when to go on without those missing.
    TimePoint start_by = kNever;
    /// When a request that lost nodes made impossible is given up.
    TimePoint give_up_at = kNever;
    std::string give_up_reason;
    /// Running trials by the moment at which their `time_total` bound is reached.
    std::multimap<TimePoint, AttemptId> goal_times;

    /// Checkpoints whose files are to go once a node of that name is there; of the empty name: any.
    std::map<std::string, std::vector<CheckpointRef>> to_delete;
    /// While restoring: what was dropped last, so that perhaps its files are still there.
    std::deque<std::pair<std::string, CheckpointRef>> dropped_last;

    std::uint64_t facts_emitted = 0;
    Step step;
};

// --- what every event handler uses ---

/// Adds a fact; returns how many there are then.
std::uint64_t keep(HeadState& head, Fact fact);

/// Adds a command that waits for so many facts.
void act(HeadState& head, Action action, std::uint64_t after_facts);

/// Adds a command that waits for nothing.
void act(HeadState& head, Action action);

/// Adds a command that waits for every fact so far.
void act_after_facts(HeadState& head, Action action);

void note(HeadState& head, NoteLevel level, std::string text);

// --- requests.cpp ---

/// The request of a config: an index into spec.resources.
/// Errors: none of them is for it, or the program's function has none for it.
Result<std::uint32_t> request_for(HeadState& head, const Config& config);
/// What stands in the tables for a trial without a request, which never waits.
std::uint32_t request_or_any(HeadState& head, const Result<std::uint32_t>& request);
/// Whether a trial with that request may wait. A function of the program may ask for what not even
/// the idle cluster has.
Status judge_request(const HeadState& head, std::uint32_t request);

// --- nodes_and_messages.cpp ---

void on_agent_said(HeadState& head, const AgentSaid& said, TimePoint now);
/// The node is gone with everything on it; `why` completes "node n1 was lost: …".
void on_node_lost(HeadState& head, NodeId node, const std::string& why, TimePoint now);
/// Gives up nodes that were silent for too long.
void lose_silent_nodes(HeadState& head, TimePoint now);

// --- attempts.cpp ---

/// Starts whatever may start.
void start_what_fits(HeadState& head, TimePoint now);

/// The node of the attempt's only member.
NodeId member_node(const Placement& placement);

/// Asks a running attempt to end; `reason` decides the trial's state afterwards. A harder kind than
/// before hardens it and keeps the first reason, unless the trial was to run again.
void ask_to_stop(HeadState& head, TrialId id, StopReason reason);

/// A member's last message: nothing of it is left.
void on_member_ended(HeadState& head, TrialId id, const Ended& ended, TimePoint now);

/// Ends an attempt whose processes are gone, or were lost, and decides what becomes of the trial.
void finish_attempt(HeadState& head, TrialId id, const Ended& ended, TimePoint now);

/// Brings a trial that holds nothing into a final state.
void end_trial(HeadState& head, TrialId id, TrialState state, std::string reason, TimePoint now);

/// Brings a trial that holds nothing to Failed, and ends the run when that is to end it.
void fail_trial(HeadState& head, TrialId id, const std::string& reason, TimePoint now);

/// To the end of the queue.
void requeue(HeadState& head, TrialId id, TimePoint now);

/// Tells members that share cores where they may run now.
void send_new_cores(HeadState& head);

// --- judgement.cpp ---

/// "exit code 1; it last wrote: …", in one line.
std::string failure_text(const Outcome& outcome, const std::string& last_lines);

/// The trial's attempt has come to something: to be called when it reports or ends well. Whether
/// that says anything new of its node or of others.
bool on_worked(HeadState& head, TrialId id, RunningAttempt& running);
/// An attempt has failed and it counts.
void on_failed(HeadState& head, TrialId id, const Placement& placement, const Ended& ended);
/// Sets nodes aside, and takes back those that are not to blame; to be called after on_worked() and
/// on_failed(). Whether anything changed, so that trials may start.
bool judge_nodes(HeadState& head, TimePoint now);
/// Takes back nodes that were set aside when what waits can't run without. False when that would
/// not help.
bool take_back_needed_nodes(HeadState& head);
/// Ends the run when nothing that was started first has come to anything. `last` has just failed
/// for good.
void end_if_nothing_works(HeadState& head, TrialId last, const Ended& ended, TimePoint now);

// --- results.cpp ---

void on_reported(HeadState& head, TrialId id, const Reported& reported, TimePoint now);
/// Ends the trials whose `time_total` bound has come.
void stop_by_time_total(HeadState& head, TimePoint now);
/// When the trial's `time_total` bound is reached, were it to run on from `now`.
TimePoint
time_total_reached_at(const HeadState& head, const TrialProgress& progress, TimePoint now);

// --- saving.cpp ---

void on_checkpoint_saved(HeadState& head, TrialId id, const CheckpointSaved& saved, TimePoint now);
/// The checkpoint that an attempt was to go on from is not there.
void on_checkpoint_gone(HeadState& head, TrialId id, const CheckpointGone& gone);
/// Passes a word on from one agent to another.
void on_to_peer(HeadState& head, NodeId from, const ToPeer& word);
/// Chooses what the trial's attempt goes on from: the latest that can be had.
void choose_checkpoint(HeadState& head, TrialId id);
/// Fills in what the attempt is told of its trial's checkpoints.
void describe_checkpoints(const HeadState& head, TrialId id, Start& start);
/// The checkpoint is no more: its files go once the fact is on disk.
void drop_checkpoint(HeadState& head, CheckpointRef checkpoint);
/// Gives up checkpoints until the budget is kept, or nothing more can go.
void keep_budget(HeadState& head);
/// A node is there on which files may be removed.
void delete_waiting_files(HeadState& head, NodeId node);
/// Attempts that fetch their checkpoint from a node that is lost hear of it.
void tell_fetchers(HeadState& head, NodeId lost);
/// The failed trial begins anew, from nothing.
void restart_trial(HeadState& head, TrialId id);
/// "checkpoint 4 (step 12)", or "the beginning".
std::string resume_text(const HeadState& head, TrialId id);

// --- end_of_time.cpp ---

void on_end_known(HeadState& head, const EndKnown& known, TimePoint now);
/// Warns running trials, and ends the run, when it is time for that.
void watch_end(HeadState& head, TimePoint now);
/// A trial that starts when others were warned already is warned at once.
void warn_of_near_end(HeadState& head, TrialId id, TimePoint now);
/// When watch_end() is next needed.
TimePoint end_deadline(const HeadState& head);
/// Says of each request whether its trials may still start.
void close_what_will_not_fit(HeadState& head, TimePoint now);
/// Ends the run when nothing runs and, for the time that is left, nothing can start.
void end_if_time_is_short(HeadState& head, TimePoint now);
/// An attempt ended, and its trial goes on in the next run; or it has failed, since no allocation
/// is long enough.
void wait_for_next_run(HeadState& head, TrialId id, const RunningAttempt& ran, TimePoint now);
/// Whether the attempt has left by itself after the warning, to go on later.
bool left_after_warning(
    const HeadState& head,
    const RunningAttempt& running,
    const Outcome& outcome
);
/// "; 3 trials are saved and paused, 40 wait for the next run", or nothing.
std::string left_behind_text(const HeadState& head);
/// Why trials with the request don't start any more.
std::string closed_text(const HeadState& head, std::uint32_t shape, TimePoint now);

// --- run_control.cpp ---

void on_reconcile(HeadState& head, TimePoint now);
void on_suggested(HeadState& head, const Suggested& suggested, TimePoint now);
void on_cancel(HeadState& head, const CancelRequested& cancel, TimePoint now);
void on_tick(HeadState& head, TimePoint now);
/// Begins to start trials once enough nodes are there.
void begin_if_ready(HeadState& head, TimePoint now);
/// Looks whether every waiting request could still be met; sets or clears give_up_at.
void judge_feasibility(HeadState& head, TimePoint now);
/// Asks for more configs when the queue runs short of them.
void look_ahead(HeadState& head);
/// The run is to end so: nothing new starts, what runs is asked to stop.
void end_run(HeadState& head, RunEnded ended, StopKind kind, TimePoint now);
/// Dismisses everybody once nothing is left to do.
void leave_if_done(HeadState& head);

}  // namespace muster
