// SPDX-License-Identifier: Apache-2.0

#include "cli/command_line.hpp"

#include <algorithm>
#include <cstdio>
#include <map>
#include <type_traits>
#include <utility>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "base/nearest.hpp"
#include "cli/until.hpp"
#include "runtime/end_watch.hpp"
#include "spec/scalar.hpp"

namespace muster {
namespace {

/// The structs that the parser fills while it reads, one a command.
struct Commands {
    RunCommand run;
    LaunchCommand launch;
    CheckCommand check;
    NodesCommand nodes;
    StatusCommand status;
    ResultsCommand results;
    LogsCommand logs;
    std::string explain_directory;
    std::string explain_trial;
    SimulateCommand simulate;
    EnvCommand env;
    ReportCommand report;
    CheckpointCommand checkpoint;
    GetCommand get;
};

const std::map<std::string, CpuUnit> kCpuUnits{
    {"cores", CpuUnit::Cores},
    {"threads", CpuUnit::Threads}};
const std::map<std::string, NodesFormat> kNodesFormats{
    {"text", NodesFormat::Text},
    {"json", NodesFormat::Json}};
const std::map<std::string, ResultsFormat> kResultsFormats{
    {"table", ResultsFormat::Table},
    {"csv", ResultsFormat::Csv},
    {"json", ResultsFormat::Json}};

const std::map<std::string, LaunchWith> kLaunchers{
    {"mpirun", LaunchWith::Mpirun},
    {"srun", LaunchWith::Srun}};

/// Takes one of the words of `words`; anything else is refused with all of them.
template <class Choice>
CLI::Validator one_of(const std::map<std::string, Choice>& words) {
    const auto take = [&words](std::string& text) -> std::string {
        const auto found = words.find(text);
        if (found != words.end()) {
            // What the parser reads an enumeration from.
            text = std::to_string(static_cast<std::underlying_type_t<Choice>>(found->second));
            return "";
        }
        std::string known;
        for (const auto& word : words) {
            known += (known.empty() ? "" : ", ") + word.first;
        }
        return fmt::format("expected one of {}, found '{}'", known, text);
    };
    return CLI::Validator(take, "");
}

/// Takes a whole number of 0 or more; the parser alone would take -1 for a very large one.
CLI::Validator count() {
    const auto take = [](const std::string& text) -> std::string {
        const bool is_count =
            !text.empty() && text.find_first_not_of("0123456789") == std::string::npos;
        return is_count ? "" : fmt::format("expected a whole number, found '{}'", text);
    };
    return CLI::Validator(take, "");
}

CLI::App* add_command(
    CLI::App& app,
    const std::string& name,
    const std::string& what,
    const std::string& examples
) {
    CLI::App* command = app.add_subcommand(name, what);
    command->footer("Examples:\n" + examples);
    return command;
}

void add_spec(CLI::App& command, SpecArguments& spec) {
    command.add_option("spec", spec.path, "The spec file (YAML or JSON; see docs/spec.md)")
        ->required()
        ->type_name("SPEC");
    command
        .add_option(
            "--set",
            spec.sets,
            "A value over what the file says: trial.time_limit=10m, space.lr={uniform: [0, 1]}"
        )
        ->type_name("KEY=VALUE")
        ->allow_extra_args(false);
}

void add_node(CLI::App& command, NodeArguments& node) {
    command
        .add_option(
            "--node-resources",
            node.node_resources,
            "What this node has, in place of what it really has (memory=16GiB and custom resources "
            "as well; what is not named is not there): CPUs and GPUs are counted and masked, but "
            "bound to nothing"
        )
        ->type_name("cpu=4,gpu=2,…");
    command.add_option("--cpus", node.cpu_unit, "What counts as one CPU: cores or threads")
        ->transform(one_of(kCpuUnits))
        ->type_name("UNIT");
}

/// A time such as 90s or 10m, of at least `least`.
CLI::Option* add_time(
    CLI::App& command,
    const std::string& name,
    const std::string& what,
    Duration& time,
    Duration least
) {
    const auto take = [&time, least](const std::string& text) -> std::string {
        const Result<Duration> parsed = parse_duration(text);
        if (!parsed.ok()) {
            return parsed.error().message;
        }
        if (*parsed < least) {
            return fmt::format("expected at least {}, found '{}'", format_duration(least), text);
        }
        time = *parsed;
        return "";
    };
    return command
        .add_option_function<std::string>(
            name, [](const std::string&) {}, what
        )
        ->check(CLI::Validator(take, ""))
        ->type_name("TIME");
}

void add_team(CLI::App& command, TeamArguments& team) {
    constexpr const char* kGroup = "Under mpirun, srun and `muster launch`";
    command
        .add_flag(
            "--rank-is-node",
            team.rank_is_node,
            "Every rank is a node, also where several share a host: each has what "
            "--node-resources or --cluster says"
        )
        ->group(kGroup);
    command
        .add_option(
            "--cluster",
            team.cluster,
            "What each node has, from a file: by its name, or in order with --rank-is-node"
        )
        ->type_name("FILE")
        ->group(kGroup);
    command
        .add_flag("--dedicated-head", team.dedicated_head, "Keep the node of rank 0 free of trials")
        ->group(kGroup);
    add_time(
        command,
        "--start-timeout",
        "How long to wait for nodes that do not answer; 60s without it",
        team.start_timeout,
        Duration{0}
    )
        ->group(kGroup);
}

void add_loss(CLI::App& command, TeamArguments& team) {
    constexpr const char* kGroup = "When nodes are lost";
    add_time(
        command,
        "--lease",
        "A node that was silent for so long is lost, and its trials run elsewhere; 60s without it",
        team.lease,
        std::chrono::seconds{1}
    )
        ->group(kGroup);
    add_time(
        command,
        "--rejoin",
        "How long a node that was cut off tries to come back before it ends; 10m without it",
        team.rejoin,
        Duration{0}
    )
        ->group(kGroup);
    add_time(
        command,
        "--wait-for-nodes",
        "How long to wait for a node to come back when those left can't run what waits; then the "
        "run ends with 75; 0s without it",
        team.wait_for_nodes,
        Duration{0}
    )
        ->group(kGroup);
}

void add_until(CLI::App& command, std::optional<Until>& until) {
    const auto take = [&until](const std::string& text) -> std::string {
        Result<Until> parsed = parse_until(text, world_now().since_1970);
        if (!parsed.ok()) {
            return parsed.error().message;
        }
        until = std::move(*parsed);
        return "";
    };
    command
        .add_option_function<std::string>(
            "--until",
            [](const std::string&) {},
            "When the time is over: 2h, 17:30 or 2026-12-01T17:30. Before it trials are warned, "
            "save "
            "what they have and stop, and the run ends with 75. In a Slurm job muster knows its "
            "end by itself"
        )
        ->check(CLI::Validator(take, ""))
        ->type_name("TIME");
}

void add_directory(CLI::App& command, std::string& directory) {
    command.add_option("dir", directory, "The experiment's directory, or its name under ./results")
        ->required()
        ->type_name("DIR");
}

void add_retry(CLI::App& run, RunCommand& to) {
    CLI::Option* retry = run.add_option_function<std::string>(
        "--retry",
        [&to](const std::string&) { to.retry_failed = true; },
        "When going on, run trials that failed again, from their latest checkpoints"
    );
    retry->check(CLI::IsMember({"failed"}))->type_name("failed");
    run.add_flag("--restart", to.restart_failed, "With --retry failed: from nothing")->needs(retry);
    // What it was called at first.
    run.add_flag("--retry-failed", to.retry_failed)->group("");
}

void add_run_commands(CLI::App& app, Commands& to) {
    CLI::App* run = add_command(
        app,
        "run",
        "Run an experiment, or go on with one that is not finished",
        "  muster run sweep.yaml\n"
        "  muster run sweep.yaml --set num_samples=8 --set resources.cpu=2\n"
        "  muster run sweep.yaml --node-resources cpu=4,gpu=2\n"
        "  muster run sweep.yaml --until 17:30\n"
        "  muster launch --hosts n1,n2 -- run sweep.yaml\n"
        "  mpirun -n 3 --oversubscribe muster run sweep.yaml --rank-is-node --node-resources "
        "cpu=2\n"
        "Exit codes: 0 all fine, 1 some trials failed, 2 bad input, 3 infeasible, 4 cancelled,\n"
        "5 the system failed (a full disk, say), 75 run it again to go on.\n"
        "^C once stops cleanly and keeps everything, twice at once. SIGTERM and SIGUSR1 say that "
        "the\ntime is nearly up: trials are warned and stopped, and the run ends with 75."
    );
    add_spec(*run, to.run.spec);
    add_node(*run, to.run.node);
    run->add_flag(
        "--fresh", to.run.fresh, "Begin anew in <name>-2, <name>-3, … beside what is there"
    );
    add_retry(*run, to.run);
    run->add_flag(
        "--no-wait",
        to.run.no_wait,
        "Refuse at once when another run, on another host, may hold the experiment"
    );
    run->add_flag("--plain", to.run.plain, "Log lines in place of the live table");
    run->add_flag(
        "--keep-going", to.run.keep_going, "Go on although every trial fails from the first on"
    );
    add_until(*run, to.run.until);
    add_team(*run, to.run.team);
    add_loss(*run, to.run.team);
}

void add_planning_commands(CLI::App& app, Commands& to) {
    CLI::App* check = add_command(
        app,
        "check",
        "Say what a spec means, without running anything: trials, requests, whether they fit",
        "  muster check sweep.yaml\n"
        "  muster check sweep.yaml --cluster cluster.yaml --show 20"
    );
    add_spec(*check, to.check.spec);
    add_node(*check, to.check.node);
    check->add_option("--cluster", to.check.cluster, "Nodes to check against, from a file")
        ->type_name("FILE");
    check->add_option("--show", to.check.show, "Trials to show; 8 without it")
        ->check(count())
        ->type_name("N");

    CLI::App* simulate = add_command(
        app,
        "simulate",
        "Say what a run would do on a cluster: makespan, use of each resource, a timeline",
        "  muster simulate sweep.yaml --cluster cluster.yaml\n"
        "  muster simulate sweep.yaml --node-resources cpu=64,gpu=8 --duration 20m\n"
        "  muster simulate sweep.yaml --cluster cluster.yaml --duration \"60 + 2 * epochs\""
    );
    add_spec(*simulate, to.simulate.spec);
    simulate->add_option("--cluster", to.simulate.cluster, "The nodes, from a file")
        ->type_name("FILE");
    simulate
        ->add_option(
            "--node-resources",
            to.simulate.node_resources,
            "One node that has this; without it and --cluster, the node that this is"
        )
        ->type_name("cpu=4,gpu=2,…");
    simulate
        ->add_option(
            "--duration",
            to.simulate.duration,
            "How long a trial runs: 90s, 20m, or a formula in seconds over its config; 60s without "
            "it"
        )
        ->type_name("TIME");
    simulate->add_option("--trials", to.simulate.trials, "Only the first so many trials")
        ->check(count())
        ->type_name("N");
    simulate->add_flag("--json", to.simulate.json, "JSON in place of text");
}

void add_launch_command(CLI::App& app, LaunchCommand& to) {
    CLI::App* launch = add_command(
        app,
        "launch",
        "Run muster on several nodes: mpirun or srun with what lets a run survive its nodes",
        "  muster launch --hosts n1,n2,n3 -- run sweep.yaml\n"
        "  muster launch --hostfile hosts --agent 'ssh -p 2222' -- run sweep.yaml\n"
        "  muster launch -n 3 -- run sweep.yaml --rank-is-node --node-resources cpu=2\n"
        "  muster launch -- run sweep.yaml             # inside a Slurm job: a rank on each node\n"
        "  muster launch --dry-run --hosts n1,n2 -- nodes\n"
        "The exit code is the run's own. ^C once stops cleanly, twice at once, three times ends "
        "the\n"
        "launcher; SIGTERM and SIGUSR1 stop the run so that it can go on (75)."
    );
    LaunchOptions& options = to.options;
    launch
        ->add_option(
            "-n", options.ranks, "Ranks: one a host without it; without hosts, so many here"
        )
        ->check(count())
        ->type_name("N");
    launch->add_option("--hosts", options.hosts, "Where to run; rank 0, the head, is on the first")
        ->delimiter(',')
        ->allow_extra_args(false)
        ->type_name("HOST,…");
    launch->add_option("--hostfile", options.hostfile, "The same from a file, one host a line")
        ->type_name("FILE");
    launch->add_option("--agent", options.agent, "What starts a program on a host; ssh without it")
        ->type_name("COMMAND");
    launch
        ->add_option(
            "--interface", options.interface, "The network that ranks talk over: ib0, 10.1.0.0/16"
        )
        ->type_name("NET");
    launch
        ->add_option(
            "--with", options.with, "mpirun or srun; srun inside a Slurm job unless hosts are named"
        )
        ->transform(one_of(kLaunchers))
        ->type_name("LAUNCHER");
    launch->add_option("--program", options.program, "What each rank runs; this muster without it")
        ->type_name("PATH");
    launch->add_option("--args", to.more, "More words for mpirun or srun")->type_name("WORDS");
    add_time(
        *launch,
        "--start-timeout",
        "How long a host may take to begin; 2m without it",
        to.start_timeout,
        std::chrono::seconds{1}
    );
    launch
        ->add_option(
            "--max-requeues",
            to.max_requeues,
            "In a Slurm job: put it back into the queue when the run ends with 75, until that was "
            "done so often in all; 0 without it"
        )
        ->check(count())
        ->type_name("N");
    launch->add_flag("--dry-run", to.dry_run, "Print the line and do nothing");
    launch->add_option("command", options.arguments, "What muster is to do, behind --")
        ->required()
        ->type_name("-- COMMAND…");
}

void add_asking_commands(CLI::App& app, Commands& to) {
    CLI::App* status = add_command(
        app,
        "status",
        "Say how far an experiment is, while it runs or after",
        "  muster status results/digits"
    );
    add_directory(*status, to.status.directory);
    status->add_flag("--json", to.status.json, "JSON in place of text");

    CLI::App* results = add_command(
        app,
        "results",
        "Show the trials of an experiment: as a table best first, as csv or json in their order",
        "  muster results results/digits --limit 10\n"
        "  muster results results/digits --best\n"
        "  muster results results/digits --format csv > trials.csv"
    );
    add_directory(*results, to.results.directory);
    results->add_flag("--best", to.results.best, "Only the best trial");
    results->add_option("--limit", to.results.limit, "Only so many trials")
        ->check(count())
        ->type_name("N");
    results->add_option("--format", to.results.format, "table, csv or json")
        ->transform(one_of(kResultsFormats))
        ->type_name("FORMAT");

    CLI::App* logs = add_command(
        app, "logs", "Print what a trial wrote to its output", "  muster logs results/digits 42"
    );
    add_directory(*logs, to.logs.directory);
    logs->add_option("trial", to.logs.trial, "The trial's number")->required()->type_name("TRIAL");

    CLI::App* explain = add_command(
        app,
        "explain",
        "Say why a trial is where it is, or why trials wait",
        "  muster explain results/digits\n"
        "  muster explain results/digits 42"
    );
    add_directory(*explain, to.explain_directory);
    explain->add_option("trial", to.explain_trial, "The trial's number")->type_name("TRIAL");
}

void add_node_commands(CLI::App& app, Commands& to) {
    CLI::App* nodes = add_command(
        app,
        "nodes",
        "Show what this node offers to trials (under a launcher, all nodes): cores, memory, GPUs",
        "  muster nodes\n"
        "  muster nodes --format json\n"
        "  taskset -c 0-3 muster nodes\n"
        "  mpirun --map-by ppr:1:node muster nodes"
    );
    add_node(*nodes, to.nodes.node);
    add_team(*nodes, to.nodes.team);
    nodes->add_option("--format", to.nodes.format, "text or json")
        ->transform(one_of(kNodesFormats))
        ->type_name("FORMAT");

    CLI::App* env = add_command(
        app,
        "env",
        "Show the environment that trials start from",
        "  muster env\n"
        "  muster env --diff\n"
        "  srun muster env --diff"
    );
    env->add_flag("--diff", to.env.diff, "Only what differs from this environment, and why");
    env->add_option("--keep", to.env.keep, "As keep_env in the spec")
        ->type_name("NAME")
        ->allow_extra_args(false);
    env->add_option("--drop", to.env.drop, "As drop_env in the spec")
        ->type_name("NAME")
        ->allow_extra_args(false);
}

void add_trial_commands(CLI::App& app, Commands& to) {
    CLI::App* report = add_command(
        app,
        "report",
        "Inside a trial: report metrics",
        "  muster report loss=0.31 step=4\n"
        "  [ \"$(muster report --wait loss=$loss)\" = stop ] && exit"
    );
    report->add_option("metrics", to.report.metrics, "What was measured")
        ->required()
        ->type_name("NAME=VALUE");
    report->add_flag("--wait", to.report.wait, "Wait for the decision and print continue or stop");

    CLI::App* checkpoint = add_command(
        app,
        "checkpoint",
        "Inside a trial: save a directory as a checkpoint and print where it lies once it is safe",
        "  mkdir -p \"$MUSTER_CHECKPOINT_DIR/new\" && cp model.bin \"$MUSTER_CHECKPOINT_DIR/new\"\n"
        "  muster checkpoint \"$MUSTER_CHECKPOINT_DIR/new\" --step 4\n"
        "  [ -z \"$MUSTER_CHECKPOINT\" ] || cp \"$MUSTER_CHECKPOINT/model.bin\" .    # resume"
    );
    checkpoint->add_option("directory", to.checkpoint.directory, "What to save; it is moved")
        ->required()
        ->type_name("DIR");
    checkpoint
        ->add_option("--step", to.checkpoint.step, "When it was made; default: the last report's")
        ->type_name("STEP");

    CLI::App* get = add_command(
        app,
        "get",
        "Inside a trial: print a value of its config",
        "  lr=$(muster get lr)\n"
        "  muster get            # all of it, as JSON"
    );
    get->add_option("key", to.get.key, "The key; group/key for nested ones")->type_name("KEY");

    add_command(app, "version", "Print the version and what it was built with", "  muster version");
}

ParsedCommand chosen(const CLI::App& app, Commands commands) {
    const std::vector<CLI::App*> parsed = app.get_subcommands();
    const std::string name = parsed.empty() ? "" : parsed.front()->get_name();
    if (name == "explain") {
        std::optional<std::string> trial;
        if (!commands.explain_trial.empty()) {
            trial = commands.explain_trial;
        }
        return ExplainCommand{commands.explain_directory, std::move(trial)};
    }
    const std::map<std::string, ParsedCommand> by_name{
        {"run", commands.run},
        {"launch", commands.launch},
        {"check", commands.check},
        {"nodes", commands.nodes},
        {"status", commands.status},
        {"results", commands.results},
        {"logs", commands.logs},
        {"simulate", commands.simulate},
        {"env", commands.env},
        {"report", commands.report},
        {"checkpoint", commands.checkpoint},
        {"get", commands.get},
        {"version", VersionCommand{}}};
    const auto found = by_name.find(name);
    return found == by_name.end() ? ParsedCommand(PrintedCommand{kExitBadInput}) : found->second;
}

/// What is wrong when the first word is no command; empty when it is one.
std::string hint_for(const CLI::App& app, int argc, const char* const* argv) {
    if (argc < 2 || argv[1][0] == '-') {
        return "";
    }
    std::vector<std::string> names;
    for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) {
        names.push_back(command->get_name());
    }
    if (std::find(names.begin(), names.end(), argv[1]) != names.end()) {
        return "";
    }
    const std::string meant = did_you_mean(argv[1], names);
    return fmt::format(
        "muster: there is no command '{}'{}\n",
        argv[1],
        meant.empty() ? "; `muster --help` lists them" : meant
    );
}

/// The word that nobody expected, with the option that it was probably meant to be.
std::string unexpected(const CLI::App& command) {
    const std::vector<std::string> extras = command.remaining();
    const auto option = std::find_if(extras.begin(), extras.end(), [](const std::string& extra) {
        return extra.starts_with('-');
    });
    if (extras.empty()) {
        return "a word too many";
    }
    if (option == extras.end()) {
        return fmt::format("'{}' is one word too many", extras.front());
    }
    std::vector<std::string> known;
    for (const CLI::Option* each : command.get_options()) {
        for (const std::string& name : each->get_lnames()) {
            known.push_back("--" + name);
        }
    }
    return fmt::format("there is no option '{}'{}", *option, did_you_mean(*option, known));
}

/// One line on stderr: the command, what is wrong, where help is.
void complain_about(const CLI::App& app, const CLI::ParseError& problem) {
    const std::vector<CLI::App*> parsed = app.get_subcommands();
    const CLI::App& command = parsed.empty() ? app : *parsed.front();
    const std::string name = parsed.empty() ? "muster" : "muster " + command.get_name();
    const bool is_extra = dynamic_cast<const CLI::ExtrasError*>(&problem) != nullptr;
    std::string what = is_extra ? unexpected(command) : problem.what();
    if (!what.ends_with('?')) {
        what += fmt::format("; see `{} --help`", name);
    }
    std::fputs(fmt::format("{}: {}\n", name, what).c_str(), stderr);
}

/// `muster help` and `muster help run` are `muster --help` and `muster run --help`.
std::vector<const char*> with_help_option(int argc, const char* const* argv) {
    std::vector<const char*> words(argv, argv + argc);
    if (words.size() > 1 && std::string_view(words[1]) == "help") {
        words.erase(words.begin() + 1);
        words.push_back("--help");
    }
    return words;
}

}  // namespace

Status take_run_options(std::vector<std::string>& words, RunCommand& command) {
    CLI::App app;
    // The program may have its own.
    app.set_help_flag();
    app.allow_extras();
    add_node(app, command.node);
    add_team(app, command.team);
    add_loss(app, command.team);
    add_until(app, command.until);
    app.add_flag("--fresh", command.fresh);
    add_retry(app, command);
    app.add_flag("--no-wait", command.no_wait);
    app.add_flag("--keep-going", command.keep_going);
    app.add_flag("--plain", command.plain);
    app.add_flag("--quiet", command.quiet);
    try {
        // It takes them from the end.
        std::reverse(words.begin(), words.end());
        app.parse(words);
    } catch (const CLI::ParseError& problem) {
        return Error{ErrorCode::InvalidInput, problem.what()};
    }
    words = app.remaining();
    return Ok{};
}

ParsedCommand parse_command_line(int argc, const char* const* argv) {
    const std::vector<const char*> words = with_help_option(argc, argv);
    const auto count_of_words = static_cast<int>(words.size());
    CLI::App app{"muster runs hyper-parameter trials with the resources that each asks for."};
    app.name("muster");
    app.footer(
        "Examples:\n"
        "  muster run sweep.yaml            run every trial of a spec\n"
        "  muster results results/sweep     see what came of them\n"
        "`muster COMMAND --help` says more, with examples."
    );
    app.require_subcommand(0, 1);
    Commands commands;
    add_run_commands(app, commands);
    add_planning_commands(app, commands);
    add_launch_command(app, commands.launch);
    add_asking_commands(app, commands);
    add_node_commands(app, commands);
    add_trial_commands(app, commands);
    bool version = false;
    app.add_flag("--version", version, "Print the version");
    const std::string hint = hint_for(app, count_of_words, words.data());
    if (!hint.empty()) {
        std::fputs(hint.c_str(), stderr);
        return PrintedCommand{kExitBadInput};
    }
    try {
        app.parse(count_of_words, words.data());
    } catch (const CLI::ParseError& problem) {
        if (problem.get_exit_code() == 0) {
            app.exit(problem);
            return PrintedCommand{kExitOk};
        }
        complain_about(app, problem);
        return PrintedCommand{kExitBadInput};
    }
    if (version) {
        return VersionCommand{};
    }
    if (app.get_subcommands().empty()) {
        std::fputs(app.help().c_str(), stdout);
        return PrintedCommand{kExitOk};
    }
    return chosen(app, std::move(commands));
}

}  // namespace muster
