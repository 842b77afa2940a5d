// SPDX-License-Identifier: Apache-2.0
//
// run_loop - one poll() loop around Head, at rank 0: carries events and commands between it, the
// agent of its own node, the other ranks, the journal and the signals, and decides nothing.
//
// Order in one turn: what is on disk, signals and the end of time, the own node, the other ranks,
// deadlines; then every message until both sides of the own node are quiet.

#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include <poll.h>

#include "muster/error.hpp"

#include "base/time.hpp"
#include "head/head.hpp"
#include "journal/writer.hpp"
#include "runtime/end_watch.hpp"
#include "runtime/experiment_clock.hpp"
#include "runtime/held_commands.hpp"
#include "runtime/live_view.hpp"
#include "runtime/node_side.hpp"
#include "runtime/run_experiment.hpp"
#include "runtime/run_signs.hpp"
#include "runtime/signals.hpp"
#include "runtime/team.hpp"
#include "search/searcher.hpp"
#include "transport/in_process.hpp"

namespace muster {

/// What the loop joins; whoever makes it owns them for longer than the loop.
struct RunParts {
    Head& head;
    BasicSearcher& searcher;
    JournalWriter& journal;
    SignalSource& signals;
    EndWatch& ends;
    RunSigns& signs;
    Observer& observer;
    /// What serves this rank's own node; nothing when it runs no trials.
    Agent* agent = nullptr;
    Processes* processes = nullptr;
    ReportServer* reports = nullptr;
    /// The other ranks; nothing when there are none.
    Team* team = nullptr;
};

/// How the loop was left.
struct LoopEnd {
    Leave leave;
    TimePoint at;
    /// Set when the searcher could not go on: what it said.
    std::optional<Error> search_problem;
};

class RunLoop : private HeadLine {
  public:
    /// `start` is the experiment's time now; `experiment` its name, and `directory` its directory.
    RunLoop(RunParts parts, TimePoint start, std::string experiment, std::string directory);

    /// Runs until the head has left.
    /// Errors: System, when the journal could not be written to its end for too long, or the
    /// directory is no longer this run's.
    /// `node` is what the own node offers.
    Result<LoopEnd> run(const NodeInventory& node);

  private:
    void turn();
    Duration time_to_wait() const;
    bool takes_reports() const;
    void on_journal();
    void watch_storage();
    void release_held();
    void count_durable_facts();
    void on_signals();
    void on_end_signal(int number);
    void look_at_end();
    void on_team();
    void on_deadlines();
    void exchange();

    // The own agent's line.
    void say(FromAgent message) override { transport_.send(std::move(message)); }
    /// It has no lease that could run out.
    void begin_anew(std::uint32_t /*incarnation*/) override {}

    void tell_head(const Event& event);
    void carry_out(Command command);
    void send(Send& send);
    void abandon(const Abandon& lost);
    void ask_searcher(const Ask& ask);
    void request_end(RunEnd end, bool at_once, std::string reason);

    void show(bool last);
    void write_live(const std::string& ended);
    bool has_given_up() const;

    RunParts parts_;
    ExperimentClock clock_;
    std::optional<NodeSide> node_;
    NodeId own_node_{0};
    InProcessTransport transport_;
    std::vector<pollfd> fds_;
    HeldCommands held_;
    /// Events that carrying out a command led to.
    std::deque<Event> inbox_;
    /// The journal's sequence of each fact that is not known to be on disk, oldest first.
    std::deque<std::uint64_t> facts_under_way_;
    std::uint64_t durable_facts_ = 0;

    std::optional<Leave> left_;
    /// The last time that nothing was held up, or that facts came to be on disk.
    TimePoint stuck_since_;
    std::optional<Error> search_problem_;
    bool ending_ = false;
    int interrupts_ = 0;
    /// When the time of the run ends.
    TimePoint ends_at_ = kNever;

    std::string experiment_;
    std::string directory_;
    /// Why the journal, or a sign of life, can't be written at the moment; empty while all is well.
    std::string storage_problem_;
    /// The state has changed since it was last shown, or written to live.json.
    bool unshown_ = true;
    bool unwritten_ = true;
    TimePoint show_at_;
    TimePoint write_at_;
};

}  // namespace muster
