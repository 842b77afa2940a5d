// SPDX-License-Identifier: Apache-2.0
//
// commands - what can be asked of `muster` on its command line: one struct a command, each with a
// function that carries it out and returns the exit code. command_line.hpp makes them.

#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/time.hpp"
#include "cli/results_report.hpp"
#include "launch/launch_line.hpp"
#include "probe/format_nodes.hpp"
#include "probe/probe.hpp"
#include "protocol/roll_call.hpp"
#include "runtime/end_watch.hpp"
#include "runtime/roles.hpp"
#include "runtime/run_experiment.hpp"
#include "transport/launcher.hpp"

namespace muster {

class Observer;
class RollCall;
class SignalSource;
class RunDir;
class Spawner;
class Transport;

// Exit codes of every command.
inline constexpr int kExitOk = 0;
/// Some trials failed.
inline constexpr int kExitTrialsFailed = 1;
/// Something that the user wrote is wrong.
inline constexpr int kExitBadInput = 2;
inline constexpr int kExitInfeasible = 3;
inline constexpr int kExitCancelled = 4;
/// The system failed: a full disk, a directory that cannot be made.
inline constexpr int kExitSystem = 5;
/// Run the same command again to go on.
inline constexpr int kExitContinue = 75;

/// Where a spec comes from.
struct SpecArguments {
    std::string path;
    /// "key=value", stronger than the file.
    std::vector<std::string> sets;
};

/// What the node has, when it is not asked itself.
struct NodeArguments {
    /// "cpu=4,gpu=2": a logical node.
    std::string node_resources;
    CpuUnit cpu_unit = CpuUnit::Cores;
};

/// How the ranks of a launcher become nodes, and what may happen to them. Without a launcher only
/// `keep_going` means something.
struct TeamArguments {
    bool rank_is_node = false;
    bool dedicated_head = false;
    /// A cluster file that says what each node has.
    std::string cluster;
    Duration start_timeout = std::chrono::seconds{60};
    Duration lease = std::chrono::seconds{60};
    Duration wait_for_nodes{0};
    Duration rejoin = std::chrono::minutes{10};
};

struct RunCommand {
    SpecArguments spec;
    NodeArguments node;
    TeamArguments team;
    bool keep_going = false;
    bool fresh = false;
    bool retry_failed = false;
    /// … from nothing in place of their checkpoints.
    bool restart_failed = false;
    /// Refuse at once when another run may hold the experiment.
    bool no_wait = false;
    std::optional<Until> until;
    /// Log lines even on a terminal.
    bool plain = false;
    /// Warnings and errors alone.
    bool quiet = false;
};

struct LaunchCommand {
    LaunchOptions options;
    /// More words for the launcher, apart by blanks.
    std::string more;
    /// How long until muster must have begun on rank 0.
    Duration start_timeout = std::chrono::minutes{2};
    /// How often a Slurm job is put back into the queue when its run ends with 75.
    std::uint32_t max_requeues = 0;
    /// Print the line alone.
    bool dry_run = false;
};

struct CheckCommand {
    SpecArguments spec;
    NodeArguments node;
    /// A cluster file, in place of this node.
    std::string cluster;
    /// Trials to show.
    std::size_t show = 8;
};

struct NodesCommand {
    NodeArguments node;
    /// Without a launcher, the nodes of `team.cluster` when it is given.
    TeamArguments team;
    NodesFormat format = NodesFormat::Text;
};

struct StatusCommand {
    std::string directory;
    bool json = false;
};

struct ResultsCommand {
    std::string directory;
    bool best = false;
    ResultsFormat format = ResultsFormat::Table;
    /// Trials to show; 0 is all.
    std::size_t limit = 0;
};

struct LogsCommand {
    std::string directory;
    std::string trial;
};

struct ExplainCommand {
    std::string directory;
    std::optional<std::string> trial;
};

struct SimulateCommand {
    SpecArguments spec;
    std::string cluster;
    std::string node_resources;
    std::string duration = "60s";
    /// Only the first so many.
    std::optional<std::uint64_t> trials;
    bool json = false;
};

struct EnvCommand {
    bool diff = false;
    std::vector<std::string> keep;
    std::vector<std::string> drop;
};

struct ReportCommand {
    std::vector<std::string> metrics;
    bool wait = false;
};

struct CheckpointCommand {
    std::string directory;
    /// Empty: that of the last report.
    std::string step;
};

struct GetCommand {
    std::string key;
};

struct VersionCommand {};

/// Something that was settled while the arguments were read: help, or what is wrong with them.
struct PrintedCommand {
    int exit_code = 0;
};

using ParsedCommand = std::variant<
    RunCommand,
    LaunchCommand,
    CheckCommand,
    NodesCommand,
    StatusCommand,
    ResultsCommand,
    LogsCommand,
    ExplainCommand,
    SimulateCommand,
    EnvCommand,
    ReportCommand,
    CheckpointCommand,
    GetCommand,
    VersionCommand,
    PrintedCommand>;

/// What was made before everything else in the process.
struct Surroundings {
    /// This process's own, as "NAME=value", from before any library changed it.
    std::vector<std::string> environment;
    const RunDir* run_dir = nullptr;
    Spawner* spawner = nullptr;
    SignalSource* signals = nullptr;
    /// The other ranks of a launcher; nothing when this process is alone.
    Transport* transport = nullptr;
    Recovery recovery = Recovery::Unknown;
    /// What `trial.function` may name.
    std::vector<std::string> functions;
    /// The roll call of a program that runs one experiment after the other; nothing: one is made.
    RollCall* roll_call = nullptr;
    /// The spawner is needed again afterwards.
    bool keep_spawner = false;
};

/// How the process is to be left.
struct CommandEnd {
    int exit_code = kExitOk;
    /// Some rank was lost: nobody may wait for the others in MPI_Finalize.
    bool lost_ranks = false;
};

// Rank 0 of a launcher, or a process alone.
CommandEnd carry_out(const RunCommand& command, const Surroundings& surroundings);
CommandEnd carry_out(const NodesCommand& command, const Surroundings& surroundings);
/// Any other rank: serves its node, whatever rank 0 does with it.
CommandEnd serve(const NodeArguments& node, const Surroundings& surroundings);

/// Ok when the program has the function that `spec` names, or it names none.
/// Errors: InvalidInput, with those that there are.
Status check_function(const ExperimentSpec& spec, const std::vector<std::string>& functions);

/// Runs `spec`, in place of the one that the command names. `observer` is made here, and gone when
/// this returns. `roll_call` is nothing without other ranks.
/// Errors: as run_experiment(), and what is wrong with the command's options.
Result<RunOutcome> run_spec(
    const ExperimentSpec& spec,
    const RunCommand& command,
    const Surroundings& surroundings,
    RollCall* roll_call,
    std::unique_ptr<Observer>& observer
);

int carry_out(const LaunchCommand& command);
int carry_out(const CheckCommand& command);
int carry_out(const StatusCommand& command);
int carry_out(const ResultsCommand& command);
int carry_out(const LogsCommand& command);
int carry_out(const ExplainCommand& command);
int carry_out(const SimulateCommand& command);
int carry_out(const EnvCommand& command);
int carry_out(const ReportCommand& command);
int carry_out(const CheckpointCommand& command);
int carry_out(const GetCommand& command);
int carry_out(const VersionCommand& command);

// --- what the commands share ---

/// Prints "muster: …" on stderr and returns the exit code that goes with the error.
int complain(const Error& error);

/// Prints on stdout. A reader that went away (`| head`) is no error.
void print(std::string_view text);

/// Characters in a line of the terminal that stdout is; 0 when it is none.
std::size_t output_width();

/// What this rank says at the roll call: what its node is and really has.
Enrol enrol_here(const NodeArguments& arguments);

/// Errors: as parse_node_resources() and load_cluster(), naming the option.
Result<NodeRules> node_rules_of(
    const TeamArguments& team,
    const NodeArguments& node,
    const std::vector<NodeResources>& custom
);

/// The node that trials run on, with the custom resources that `spec` gives it.
Result<NodeInventory>
node_for(const NodeArguments& arguments, const std::vector<NodeResources>& custom);

/// The nodes of the cluster file `cluster`, or the node_for() of this machine when it is empty.
Result<std::vector<NodeInventory>> nodes_for(
    const std::string& cluster,
    const NodeArguments& arguments,
    const std::vector<NodeResources>& custom
);

}  // namespace muster
