// SPDX-License-Identifier: Apache-2.0
//
// run_loop - one poll() loop around Head and Agent on one machine. It carries messages, events and
// commands between them, the trials' processes, the report socket, the journal and the signals,
// and decides nothing.
//
// Order in one turn: what is on disk, signals, reports, processes, deadlines; then every message
// until both sides are quiet. A member's reports are always taken in before its end.

#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "muster/error.hpp"

#include "agent/agent.hpp"
#include "base/time.hpp"
#include "head/head.hpp"
#include "journal/writer.hpp"
#include "process/processes.hpp"
#include "report/report_server.hpp"
#include "runtime/experiment_clock.hpp"
#include "runtime/held_commands.hpp"
#include "runtime/live_view.hpp"
#include "runtime/owner_file.hpp"
#include "runtime/run_experiment.hpp"
#include "runtime/signals.hpp"
#include "search/searcher.hpp"
#include "transport/in_process.hpp"

namespace muster {

/// What the loop joins; whoever makes it owns them for longer than the loop.
struct RunParts {
    Head& head;
    Agent& agent;
    BasicSearcher& searcher;
    Processes& processes;
    ReportServer& reports;
    JournalWriter& journal;
    SignalSource& signals;
    const OwnerFile& owner;
    Observer& observer;
};

/// How the loop was left.
struct LoopEnd {
    Leave leave;
    TimePoint at;
    /// Set when the searcher could not go on: what it said.
    std::optional<Error> search_problem;
};

class RunLoop {
  public:
    /// `start` is the experiment's time now; `experiment` its name, and `directory` its directory.
    RunLoop(RunParts parts, TimePoint start, std::string experiment, std::string directory);

    /// Runs until the head has left.
    /// Errors: System, when the journal could not be written to its end for too long, or the
    /// directory is no longer this run's.
    Result<LoopEnd> run(const NodeInventory& node);

  private:
    void turn();
    Duration time_to_wait() const;
    bool takes_reports() const;
    void on_journal();
    void count_durable_facts();
    void on_signals();
    void on_reports();
    void on_processes();
    void on_deadlines();
    void exchange();

    void tell_head(const Event& event);
    void carry_out(Command command);
    void ask_searcher(const Ask& ask);
    void tell_agent(const AgentEvent& event);
    void carry_out(AgentCommand command);
    void launch(const LaunchPlan& plan);
    void request_end(RunEnd end, bool at_once, std::string reason);

    void show(bool last);
    void write_live(const std::string& ended);
    bool has_given_up() const;

    RunParts parts_;
    ExperimentClock clock_;
    InProcessTransport transport_;
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
    /// What the owner file said last.
    Status owned_ = Ok{};
    bool ending_ = false;
    int interrupts_ = 0;

    std::string experiment_;
    std::string directory_;
    /// Why the journal can't be written at the moment; empty while all is well.
    std::string journal_problem_;
    /// The state has changed since it was last shown, or written to live.json.
    bool unshown_ = true;
    bool unwritten_ = true;
    TimePoint show_at_;
    TimePoint write_at_;
    TimePoint touch_at_;
    std::string live_problem_;
};

}  // namespace muster
