// SPDX-License-Identifier: Apache-2.0
//
// run_experiment - makes everything that a run needs, in order, and takes it away again in the
// other order: directory, owner, what earlier runs left, run directory, socket, journal, loop.

#include "runtime/run_experiment.hpp"

#include <algorithm>
#include <chrono>
#include <csignal>
#include <memory>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "journal/writer.hpp"
#include "process/environment.hpp"
#include "process/processes.hpp"
#include "process/spawner.hpp"
#include "report/report_server.hpp"
#include "runtime/descriptors.hpp"
#include "runtime/end_watch.hpp"
#include "runtime/experiment_dir.hpp"
#include "runtime/host.hpp"
#include "runtime/owner_file.hpp"
#include "runtime/restore_head.hpp"
#include "runtime/roll_call.hpp"
#include "runtime/run_dir.hpp"
#include "runtime/run_loop.hpp"
#include "runtime/run_signs.hpp"
#include "runtime/signals.hpp"
#include "runtime/take_over.hpp"
#include "runtime/team.hpp"
#include "runtime/team_file.hpp"
#include "search/searcher.hpp"
#include "spec/resolved_spec.hpp"

namespace muster {
namespace {

using namespace std::chrono_literals;

/// For a disk that takes no more: after a run that ended by itself, and after one that was asked
/// to.
constexpr Duration kClosePatience = 60s;
constexpr Duration kClosePatienceWhenAsked = 5s;
constexpr Duration kShutdownPatience = 10s;
constexpr int kHeartbeatsInLease = 12;

std::vector<std::string> trial_environment(const RunRequest& request, const TrialSpec& trial) {
    EnvironmentList own;
    for (const EnvironmentVariable& variable : request.environment) {
        own.push_back(variable.name + "=" + variable.value);
    }
    return trial_base_environment(
        own,
        {.keep = trial.keep_env, .drop = trial.drop_env, .muster_directory = program_directory()}
    );
}

int exit_code_of(const RunOutcome& outcome) {
    switch (outcome.end) {
        case RunEnd::Finished:
        case RunEnd::TimeBudget:
            return outcome.summary.failed > 0 ? 1 : 0;
        case RunEnd::FailFast:
        case RunEnd::NothingWorks:
            return 1;
        case RunEnd::Cancelled:
            return 4;
        case RunEnd::Interrupted:
            return 75;
        case RunEnd::Infeasible:
            return 3;
    }
    return 5;
}

/// One experiment on its way, from its directory to its outcome.
class Run {
  public:
    Run(ExperimentSpec spec, const RunRequest& request, Observer& observer)
        : spec_(std::move(spec)),
          request_(request),
          observer_(observer) {}

    Result<RunOutcome> carry_out() {
        Result<ExperimentDir> directory = prepare_experiment_dir(spec_, request_.fresh);
        if (!directory.ok()) {
            return directory.error();
        }
        directory_ = std::move(*directory);
        const bool renamed = spec_.name != directory_.name;
        spec_.name = directory_.name;
        outcome_.experiment_dir = directory_.path;
        outcome_.continued = directory_.has_journal;
        if (Status opened = open_signals(); !opened.ok()) {
            return opened.error();
        }
        Result<std::optional<OwnerFile>> owner = take_ownership(
            directory_.path, request_.spawner->pid(), request_.wait_for_owner, waiting()
        );
        if (!owner.ok()) {
            return owner.error();
        }
        if (!*owner) {
            return stopped_while_waiting();
        }
        const Status ready = write_spec(renamed);
        if (!ready.ok()) {
            return ready.error();
        }
        const Result<bool> alone = outwait_old_run(directory_.path, **owner, waiting());
        if (!alone.ok()) {
            return alone.error();
        }
        if (!*alone) {
            return stopped_while_waiting();
        }
        return with_searcher(std::make_shared<const OwnerFile>(std::move(**owner)));
    }

  private:
    Status open_signals() {
        if (request_.signals != nullptr) {
            signals_ = request_.signals;
            return Ok{};
        }
        Result<SignalSource> opened = SignalSource::open();
        if (!opened.ok()) {
            return opened.error();
        }
        own_signals_.emplace(std::move(*opened));
        signals_ = &*own_signals_;
        return Ok{};
    }

    Waiting waiting() {
        return {
            [this](const std::string& text) { observer_.on_note(NoteLevel::Info, text); },
            [this] { observer_.on_wait(); },
            signals_->fd()};
    }

    /// Somebody wanted the end before anything began.
    Result<RunOutcome> stopped_while_waiting() {
        bool interrupted = false;
        for (const int number : signals_->receive()) {
            interrupted = interrupted || number == SIGINT;
        }
        outcome_.end = interrupted ? RunEnd::Cancelled : RunEnd::Interrupted;
        outcome_.reason = "while it waited for another run";
        outcome_.lost_ranks = request_.roll_call != nullptr && request_.roll_call->lost_any();
        if (directory_.has_journal) {
            Head head(spec_, RunOptions{}, std::nullopt);
            const Result<Restored> restored = restore_head(directory_.journal(), head);
            outcome_.summary = restored.ok() ? head.summary() : HeadSummary{};
        }
        outcome_.exit_code = exit_code_of(outcome_);
        return outcome_;
    }

    Status write_spec(bool renamed) {
        if (directory_.has_journal) {
            if (Status continues = check_continues(directory_, spec_); !continues.ok()) {
                return continues;
            }
        }
        const bool made_here = renamed || request_.resolved_yaml.empty();
        return replace_file(
            directory_.spec_file(), made_here ? resolved_yaml(spec_) : request_.resolved_yaml, true
        );
    }

    Result<RunOutcome> with_searcher(std::shared_ptr<const OwnerFile> owner) {
        Result<BasicSearcher> searcher =
            BasicSearcher::make(spec_.space, spec_.search, spec_.num_samples, spec_.seed);
        if (!searcher.ok()) {
            return searcher.error();
        }
        if (Status enlisted = enlist(); !enlisted.ok()) {
            return enlisted.error();
        }
        keep_within_descriptors();
        Head head(spec_, run_options(), searcher->total_trials());
        if (directory_.has_journal) {
            Result<Restored> restored = restore_head(directory_.journal(), head, &*searcher);
            if (!restored.ok()) {
                return restored.error();
            }
            restored_ = std::move(*restored);
            for (const std::string& problem : restored_.problems) {
                observer_.on_note(NoteLevel::Warning, "journal: " + problem);
            }
        }
        if (was_finished(head.summary(), searcher->total_trials())) {
            outcome_.was_finished = true;
            outcome_.lost_ranks = team_ && team_->lost_any();
            outcome_.end = *restored_.ended;
            outcome_.summary = head.summary();
            outcome_.exit_code = exit_code_of(outcome_);
            return outcome_;
        }
        searcher->skip(head.trial_count());
        return with_edges(std::move(owner), head, *searcher);
    }

    /// Gives the other ranks their roles, and waits until their agents are ready.
    Status enlist() {
        if (request_.roll_call == nullptr) {
            return Ok{};
        }
        Result<std::vector<AgentRank>> agents = request_.roll_call->enlist(
            request_.roles,
            {.environment = trial_environment(request_, spec_.trial),
             .shared_directory = directory_.path,
             .heartbeat = request_.lease / kHeartbeatsInLease,
             // A head that takes a node for lost may be sure that its trials were killed before.
             .lease = request_.lease * 3 / 4,
             .rejoin = request_.rejoin,
             .timeout = request_.start_timeout}
        );
        if (!agents.ok()) {
            return agents.error();
        }
        agents_ = std::move(*agents);
        outcome_.ranks = request_.transport->size();
        team_.emplace(*request_.transport, *request_.roll_call, agents_);
        return write_team(directory_.path, request_.roll_call->team(agents_, request_.lease));
    }

    RunOptions run_options() const {
        RunOptions options;
        options.experiment_dir = directory_.path;
        if (request_.retry_failed) {
            options.retry_failed =
                request_.restart_failed ? RetryFailed::FromNothing : RetryFailed::FromCheckpoint;
        }
        options.keep_going = request_.keep_going;
        options.wait_for_nodes = request_.wait_for_nodes;
        options.start_timeout = request_.start_timeout;
        if (team_) {
            options.expected_nodes = static_cast<std::uint32_t>(agents_.size());
            options.lease = request_.lease;
        }
        return options;
    }

    EndSources end_sources() const {
        std::vector<std::string> environment;
        environment.reserve(request_.environment.size());
        for (const EnvironmentVariable& variable : request_.environment) {
            environment.push_back(variable.name + "=" + variable.value);
        }
        return {
            .until = request_.until,
            .job = slurm_job_of(environment),
            .warning = spec_.end.warning};
    }

    /// What this rank's own node offers; nothing when it runs no trials.
    const NodeInventory* own_node() const {
        if (!team_) {
            return &request_.node;
        }
        const bool serves = team_->local_node().has_value();
        return serves ? &agents_[team_->local_node()->value].inventory : nullptr;
    }

    /// A trial that can't be connected with would fail, through no fault of its own.
    void keep_within_descriptors() {
        constexpr std::uint32_t kWorthSaying = 256;
        const DescriptorRoom room = make_descriptor_room();
        const auto nodes = static_cast<std::int64_t>(std::max<std::size_t>(agents_.size(), 1));
        const std::int64_t most = nodes * room.trials;
        const std::int64_t wanted = spec_.max_concurrent_trials;
        if (wanted > 0 && wanted <= most) {
            return;
        }
        spec_.max_concurrent_trials = most;
        if (room.trials < kWorthSaying) {
            observer_.on_note(
                NoteLevel::Info,
                fmt::format(
                    "at most {} trials at once, since no more than {} files may be open: see "
                    "'ulimit -n'",
                    room.trials,
                    room.files
                )
            );
        }
    }

    /// Whether there is nothing left to do: an edited spec may ask for more than there was.
    bool was_finished(const HeadSummary& summary, std::optional<std::uint64_t> total) const {
        if (!restored_.ended || (request_.retry_failed && summary.failed > 0)) {
            return false;
        }
        const std::uint64_t done =
            summary.completed + summary.stopped + summary.failed + summary.cancelled;
        switch (*restored_.ended) {
            case RunEnd::Finished:
                return !total || done >= *total;
            case RunEnd::TimeBudget:
                return spec_.time_budget && restored_.last.since_start >= *spec_.time_budget;
            case RunEnd::FailFast:
            case RunEnd::Cancelled:
            case RunEnd::Interrupted:
            case RunEnd::Infeasible:
            case RunEnd::NothingWorks:
                return false;
        }
        return false;
    }

    Result<RunOutcome>
    with_edges(std::shared_ptr<const OwnerFile> owner, Head& head, BasicSearcher& searcher) {
        std::optional<RunDir> own_run_dir;
        if (request_.run_dir == nullptr) {
            Result<RunDir> made = RunDir::make();
            if (!made.ok()) {
                return made.error();
            }
            own_run_dir.emplace(std::move(*made));
        }
        const RunDir* run_dir = own_run_dir ? &*own_run_dir : request_.run_dir;
        Result<ReportServer> reports = ReportServer::listen(run_dir->path());
        if (!reports.ok()) {
            return reports.error();
        }
        Result<JournalWriter> journal = JournalWriter::open(
            {.directory = directory_.journal(),
             .experiment = directory_.name,
             .next_state = restored_.next_state,
             .next_result = restored_.next_result}
        );
        if (!journal.ok()) {
            return journal.error();
        }
        Result<RunSigns> signs = RunSigns::begin(std::move(owner), directory_.path);
        if (!signs.ok()) {
            return signs.error();
        }
        Processes processes(std::move(*request_.spawner), trial_environment(request_, spec_.trial));
        Agent agent(AgentOptions{
            .run_dir = run_dir->path(),
            .socket_path = reports->socket_path(),
            .scratch_dir = scratch_directory(),
            .user = user_number(),
            // The head hears from its own node as from any other.
            .heartbeat = team_ ? request_.lease / kHeartbeatsInLease : Duration{0}});
        EndWatch ends(end_sources(), [this](NoteLevel level, const std::string& text) {
            observer_.on_note(level, text);
        });
        RunParts parts{head, searcher, *journal, *signals_, ends, *signs, observer_};
        const NodeInventory* own = own_node();
        if (own != nullptr) {
            parts.agent = &agent;
            parts.processes = &processes;
            parts.reports = &*reports;
        }
        parts.team = team_ ? &*team_ : nullptr;
        RunLoop loop(parts, restored_.last, directory_.name, directory_.path);
        Result<LoopEnd> end = loop.run(own != nullptr ? *own : NodeInventory{});
        if (team_ && end.ok()) {
            team_->leave();
            outcome_.lost_ranks = team_->lost_any();
            // All were dismissed, or lost for a whole lease.
            remove_team(directory_.path);
        }
        if (!end_processes(processes)) {
            observer_.on_note(
                NoteLevel::Error,
                "some processes of trials could not be ended: they may hang in the kernel"
            );
        }
        const Status kept = close_files(end, *journal, *signs);
        if (!end.ok()) {
            return end.error();
        }
        return kept.ok() ? outcome_of(head, *end) : kept.error();
    }

    static Status close_files(const Result<LoopEnd>& end, JournalWriter& journal, RunSigns& signs) {
        const bool ended_by_itself = end.ok() && (end->leave.end == RunEnd::Finished ||
                                                  end->leave.end == RunEnd::TimeBudget);
        Status closed = journal.close(ended_by_itself ? kClosePatience : kClosePatienceWhenAsked);
        Status shown = signs.close(kClosePatienceWhenAsked);
        return closed.ok() ? shown : closed;
    }

    /// False when something is left of them.
    bool end_processes(Processes& processes) const {
        if (!request_.keep_spawner) {
            return processes.shutdown(kShutdownPatience);
        }
        std::optional<Spawner> spawner = processes.give_back(kShutdownPatience);
        if (!spawner) {
            return false;
        }
        *request_.spawner = *std::move(spawner);
        return true;
    }

    Result<RunOutcome> outcome_of(const Head& head, const LoopEnd& end) {
        outcome_.end = end.leave.end;
        outcome_.reason = end.leave.reason;
        outcome_.summary = head.summary();
        outcome_.exit_code = exit_code_of(outcome_);
        if (end.search_problem && outcome_.exit_code <= 1) {
            outcome_.reason = "search: " + end.search_problem->message;
            outcome_.exit_code = 2;
        }
        return outcome_;
    }

    ExperimentSpec spec_;
    const RunRequest& request_;
    Observer& observer_;
    ExperimentDir directory_;
    std::optional<SignalSource> own_signals_;
    SignalSource* signals_ = nullptr;
    std::vector<AgentRank> agents_;
    std::optional<Team> team_;
    Restored restored_;
    RunOutcome outcome_;
};

}  // namespace

Result<RunOutcome>
run_experiment(const ExperimentSpec& spec, const RunRequest& request, Observer& observer) {
    return Run(spec, request, observer).carry_out();
}

}  // namespace muster
