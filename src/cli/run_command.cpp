// SPDX-License-Identifier: Apache-2.0
//
// run_command - `muster run`: the spec, the node, the run, and what to say at its end.

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <optional>

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "cli/background_output.hpp"
#include "cli/commands.hpp"
#include "cli/experiment_view.hpp"
#include "cli/progress.hpp"
#include "cli/sign_of_life.hpp"
#include "cli/watch.hpp"
#include "launch/exit_line.hpp"
#include "model/placeholder.hpp"
#include "runtime/roll_call.hpp"
#include "runtime/run_experiment.hpp"
#include "runtime/signals.hpp"
#include "spec/load_spec.hpp"
#include "spec/resolved_spec.hpp"

namespace muster {
namespace {

constexpr const char* kNoRecovery =
    "this mpirun ends the whole run when one node is lost (what was reported is kept, and the same "
    "command goes on); `muster launch`, or mpirun --enable-recovery, lets the others go on";
/// From the last news of a run until its closing words.
constexpr std::chrono::seconds kTimeToLeave{5};
/// Trials in the closing table.
constexpr std::size_t kClosingRows = 10;

std::vector<EnvironmentVariable> as_variables(const std::vector<std::string>& environment) {
    std::vector<EnvironmentVariable> variables;
    for (const std::string& entry : environment) {
        const std::size_t equals = entry.find('=');
        if (equals != std::string::npos) {
            variables.push_back({entry.substr(0, equals), entry.substr(equals + 1)});
        }
    }
    return variables;
}

/// The command that goes on with this run. The same one would begin yet another with --fresh.
std::string command_to_go_on(const RunOutcome& outcome, const RunCommand& command) {
    std::string text = "muster run " + shell_quoted(command.spec.path);
    for (const std::string& set : command.spec.sets) {
        text += " --set " + shell_quoted(set);
    }
    if (command.fresh) {
        const std::filesystem::path directory(outcome.experiment_dir);
        text += " --set " + shell_quoted("name=" + directory.filename().string());
    }
    if (!command.node.node_resources.empty()) {
        text += " --node-resources " + shell_quoted(command.node.node_resources);
    }
    if (command.node.cpu_unit == CpuUnit::Threads) {
        text += " --cpus threads";
    }
    if (command.team.rank_is_node) {
        text += " --rank-is-node";
    }
    if (command.team.dedicated_head) {
        text += " --dedicated-head";
    }
    if (!command.team.cluster.empty()) {
        text += " --cluster " + shell_quoted(command.team.cluster);
    }
    return text;
}

std::string nothing_was_run(const RunOutcome& outcome) {
    return fmt::format(
        "this experiment was finished before; nothing was run ({}--fresh begins it anew)",
        outcome.summary.failed > 0 ? "--retry failed runs the failed trials again, " : ""
    );
}

std::string how_it_ended(const RunOutcome& outcome, const RunCommand& command) {
    const std::string again = fmt::format(
        "`{}` goes on with it{}",
        command_to_go_on(outcome, command),
        outcome.ranks > 1 ? ", started by the same launcher" : ""
    );
    switch (outcome.end) {
        case RunEnd::Finished:
            return outcome.was_finished ? nothing_was_run(outcome) : "";
        case RunEnd::TimeBudget:
            return outcome.reason;
        case RunEnd::FailFast:
            return outcome.reason + "; " + again;
        case RunEnd::Cancelled:
            return "cancelled; everything reported is kept; " + again;
        case RunEnd::Interrupted:
            return fmt::format("interrupted ({}); {}", outcome.reason, again);
        case RunEnd::NothingWorks:
            return fmt::format("{}; {}", outcome.reason, again);
        case RunEnd::Infeasible:
            return outcome.reason;
    }
    return "";
}

/// The directory as a person would type it: relative where that is shorter.
std::string shown_path(const std::string& path) {
    std::error_code failed;
    // proximate() alone would throw when the current directory is gone.
    const std::filesystem::path here = std::filesystem::current_path(failed);
    if (failed) {
        return path;
    }
    const std::string relative = std::filesystem::proximate(path, here, failed).string();
    return failed || relative.empty() || relative.starts_with("..") ? path : relative;
}

std::string closing_table(const ExperimentView& view, const std::string& directory) {
    std::vector<TrialId> trials = trials_by_rank(*view.head, view.spec.objective);
    if (trials.empty()) {
        return "";
    }
    const std::size_t all = trials.size();
    trials.resize(std::min(trials.size(), kClosingRows));
    std::string text =
        "\n" + format_results(view, trials, ResultsFormat::Table, output_width()) + "\n";
    if (all > kClosingRows) {
        text += fmt::format("… and {} more: muster results {}\n\n", all - kClosingRows, directory);
    }
    return text;
}

/// The closing words: the first few trials, the best, counts, where everything is.
void print_ending(const RunOutcome& outcome, const RunCommand& command) {
    const std::string how = how_it_ended(outcome, command);
    if (outcome.end == RunEnd::Infeasible) {
        complain(Error{ErrorCode::Infeasible, how});
        return;
    }
    const Result<ExperimentView> view = open_experiment(outcome.experiment_dir);
    if (!view) {
        complain(view.error());
        return;
    }
    const std::string directory = shown_path(outcome.experiment_dir);
    std::string text = closing_table(*view, directory);
    if (view->spec.objective) {
        text += format_best(*view->head, view->spec, directory);
    }
    const auto total = outcome.summary.done() + outcome.summary.waiting();
    text += fmt::format(
        "{} trial{}: {}\neverything is in {}\n",
        total,
        total == 1 ? "" : "s",
        format_counts(outcome.summary),
        directory
    );
    BackgroundOutput(STDOUT_FILENO).write(text);
    if (!how.empty()) {
        BackgroundOutput(STDERR_FILENO).write(fmt::format("muster: {}\n", how));
    }
}

}  // namespace

namespace {

/// Whether somebody sees this rank's stdout as a terminal. Launchers make one for it in any case,
/// of no size: it gets that of the real one.
bool is_seen_on_terminal() {
    const char* terminal = std::getenv(kTerminal.data());  // NOLINT(concurrency-mt-unsafe)
    winsize size{};
    if (terminal == nullptr || std::sscanf(terminal, "%hux%hu", &size.ws_col, &size.ws_row) !=
                                   2) {  // NOLINT(cert-err34-c)
        return false;
    }
    ::ioctl(STDOUT_FILENO, TIOCSWINSZ, &size);
    return true;
}

/// "3 nodes: n1, n2, n3".
std::string nodes_text(const std::vector<AgentRank>& agents) {
    constexpr std::size_t kMost = 8;
    std::string text = fmt::format("{} node{}: ", agents.size(), agents.size() == 1 ? "" : "s");
    for (std::size_t index = 0; index < std::min(agents.size(), kMost); ++index) {
        text += (index == 0 ? "" : ", ") + agents[index].inventory.name;
    }
    return agents.size() > kMost ? text + fmt::format(" and {} more", agents.size() - kMost) : text;
}

/// Says what has gone wrong, and nothing else.
class QuietObserver : public Observer {
  public:
    void on_progress(const Head& /*head*/, TimePoint /*now*/) override {}
    void on_note(NoteLevel level, const std::string& text) override {
        if (level != NoteLevel::Info) {
            std::fputs(fmt::format("muster: {}\n", text).c_str(), stderr);
        }
    }
    void on_trial_ended(const Head& /*head*/, TrialId /*trial*/, TimePoint /*now*/) override {}
};

std::unique_ptr<Observer>
make_observer(const ExperimentSpec& spec, const RunCommand& command, bool has_launcher) {
    if (command.quiet) {
        return std::make_unique<QuietObserver>();
    }
    const bool plain = command.plain || (has_launcher && !is_seen_on_terminal());
    return make_observer(
        STDOUT_FILENO, ProgressOptions{.name = spec.name, .objective = spec.objective}, plain
    );
}

/// Fills in what the run's nodes are: this one, or those of the ranks that came.
Status find_nodes(
    const RunCommand& command,
    const ExperimentSpec& spec,
    RollCall* roll_call,
    Observer& observer,
    RunRequest& request
) {
    if (roll_call == nullptr) {
        if (command.team.rank_is_node || command.team.dedicated_head ||
            !command.team.cluster.empty()) {
            return Error{
                ErrorCode::InvalidInput,
                "--rank-is-node, --cluster and --dedicated-head are for several ranks: start "
                "muster by mpirun, srun --mpi=pmix or `muster launch`"};
        }
        Result<NodeInventory> node = node_for(command.node, spec.nodes);
        if (!node) {
            return node.error();
        }
        request.node = std::move(*node);
        return Ok{};
    }
    const Result<NodeRules> rules = node_rules_of(command.team, command.node, spec.nodes);
    if (!rules) {
        return rules.error();
    }
    const Result<std::vector<EnrolledRank>> ranks =
        roll_call->gather(enrol_here(command.node), command.team.start_timeout);
    if (!ranks) {
        return ranks.error();
    }
    Result<Roles> roles = assign_roles(*ranks, *rules);
    if (!roles) {
        return roles.error();
    }
    observer.on_note(NoteLevel::Info, nodes_text(roles->agents));
    for (const std::string& remark : roles->remarks) {
        observer.on_note(NoteLevel::Info, remark);
    }
    request.roles = std::move(*roles);
    return Ok{};
}

}  // namespace

Status check_function(const ExperimentSpec& spec, const std::vector<std::string>& functions) {
    const std::string& name = spec.trial.function;
    if (name.empty() || std::find(functions.begin(), functions.end(), name) != functions.end()) {
        return Ok{};
    }
    if (functions.empty()) {
        return Error{
            ErrorCode::InvalidInput,
            fmt::format(
                "trial.function: '{}' is a function of a C++ program that links muster; start that "
                "program in place of muster (docs/library.md), or give trial.command",
                name
            )};
    }
    std::string known;
    for (const std::string& function : functions) {
        known += (known.empty() ? "" : ", ") + function;
    }
    return Error{
        ErrorCode::InvalidInput,
        fmt::format("trial.function: this program has no function '{}'; it has {}", name, known)};
}

Result<RunOutcome> run_spec(
    const ExperimentSpec& spec,
    const RunCommand& command,
    const Surroundings& surroundings,
    RollCall* roll_call,
    std::unique_ptr<Observer>& observer
) {
    RunRequest request;
    request.spawner = surroundings.spawner;
    request.keep_spawner = surroundings.keep_spawner;
    request.run_dir = surroundings.run_dir;
    request.signals = surroundings.signals;
    request.transport = surroundings.transport;
    request.roll_call = roll_call;
    request.resolved_yaml = resolved_yaml(spec);
    request.environment = as_variables(surroundings.environment);
    request.fresh = command.fresh;
    request.retry_failed = command.retry_failed;
    request.restart_failed = command.restart_failed;
    request.wait_for_owner = !command.no_wait;
    request.lease = command.team.lease;
    request.rejoin = command.team.rejoin;
    request.start_timeout = command.team.start_timeout;
    request.wait_for_nodes = command.team.wait_for_nodes;
    request.keep_going = command.keep_going;
    request.until = command.until;
    // The agents wait so long for a head that says nothing, and then leave.
    const Duration patience = command.team.lease + command.team.rejoin + kTimeToLeave;
    observer = with_sign_of_life(
        make_observer(spec, command, surroundings.transport != nullptr), patience
    );
    if (surroundings.recovery == Recovery::Off && surroundings.transport->size() > 1) {
        observer->on_note(NoteLevel::Warning, kNoRecovery);
    }
    Result<RunOutcome> outcome = Error{};
    if (const Status found = find_nodes(command, spec, roll_call, *observer, request); !found) {
        outcome = found.error();
    } else {
        outcome = run_experiment(spec, request, *observer);
    }
    // What it has to say comes before whatever is said next.
    observer.reset();
    return outcome;
}

CommandEnd carry_out(const RunCommand& command, const Surroundings& surroundings) {
    std::unique_ptr<Observer> observer;
    std::optional<RollCall> roll_call;
    if (surroundings.transport != nullptr) {
        // From here on the other ranks are sent away, whatever goes wrong.
        roll_call.emplace(
            *surroundings.transport,
            [&observer](const std::string& text) {
                if (observer) {
                    observer->on_note(NoteLevel::Warning, text);
                }
            },
            surroundings.signals->fd()
        );
    }
    const auto failed = [&](const Error& error) {
        if (roll_call) {
            roll_call->dismiss();
        }
        return CommandEnd{complain(error), roll_call && roll_call->lost_any()};
    };
    const Result<ExperimentSpec> spec = load_spec(command.spec.path, command.spec.sets);
    if (!spec) {
        return failed(spec.error());
    }
    if (const Status known = check_function(*spec, surroundings.functions); !known) {
        return failed(known.error());
    }
    const Result<RunOutcome> outcome =
        run_spec(*spec, command, surroundings, roll_call ? &*roll_call : nullptr, observer);
    if (!outcome) {
        return failed(outcome.error());
    }
    print_ending(*outcome, command);
    return {outcome->exit_code, outcome->lost_ranks};
}

}  // namespace muster
