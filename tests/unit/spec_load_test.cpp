// SPDX-License-Identifier: Apache-2.0

#include <chrono>
#include <csignal>
#include <cstdint>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "spec/load_spec.hpp"
#include "spec_support.hpp"

namespace muster {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;
using testing::HasSubstr;

TEST(SpecLoadTest, ACommandIsEnough) {
    const ExperimentSpec spec = spec_of("trial: {command: [echo, 1, 1e-4, 1.50, true, \"1\", '']}");

    EXPECT_EQ(spec.name, "sweep");
    EXPECT_FALSE(spec.objective.has_value());
    EXPECT_EQ(spec.num_samples, 1);
    EXPECT_EQ(
        spec.trial.command, (std::vector<std::string>{"echo", "1", "1e-4", "1.50", "true", "1", ""})
    );
    EXPECT_EQ(spec.trial.workdir, "/here");
    EXPECT_EQ(spec.trial.grace, seconds(10));
    EXPECT_EQ(spec.resources, std::vector<ResourceAlternative>{ResourceAlternative{}});
    EXPECT_EQ(spec.storage_path, "/here/results");
}

TEST(SpecLoadTest, EveryKeyOfThisVersionIsRead) {
    const ExperimentSpec spec = spec_of(R"(
name: digits
metric: accuracy
mode: min
num_samples: -1
seed: 18446744073709551615
max_concurrent_trials: 16
time_budget: 2h
node_choice: balance
starvation_bound: 1m
trial:
  command: [python3, train.py, --lr, "{lr}", "--out={muster.trial_dir}/m"]
  env: {MODEL: small, N: 08, EMPTY: , LR: "{lr}"}
  files: {run.nml: {content: "lr = {lr}\n"}}
  workdir: trial
  trial_dir: always
  output: stream
  time_limit: 30m
  report_timeout: 1h30m
  grace: 500ms
  launch: single
  metrics:
    - {from: stdout, pattern: 'epoch (?P<step>\d+) acc=(?P<accuracy>\S+)'}
    - {from: file, path: "{muster.trial_id}.log", pattern: '(?P<loss>\S+)'}
  keep_env: [SLURM_CPU_BIND, OMPI_*]
  drop_env: DISPLAY
space: {lr: {loguniform: [1e-4, 1e-1]}}
resources: {cpu: 2, gpu: 0.5, memory: 2GiB, licence: 1}
cluster_resources: {licence: 5}
nodes: {"gpu[01-04]": {nvme: 4}}
reserve: {cpu: 1, memory: 1GiB}
search: {algorithm: random, points: [{lr: 0.01}]}
schedule: {time_attr: epoch}
stop: {accuracy: 0.05, val_loss: "<= 0.5", epoch: 20, time_total: 1h}
failures: {max_failures: -1, fail_fast: true}
checkpoints: {keep: 0, score: accuracy, budget: 50GiB, storage: node, path: /local}
end: {warning: 5m, min_slice: 0, signal: USR1}
storage: {path: /scratch/../results}
)");

    EXPECT_EQ(spec.name, "digits");
    EXPECT_EQ(spec.objective, (ObjectiveSpec{"accuracy", Mode::Min}));
    EXPECT_EQ(spec.num_samples, -1);
    EXPECT_EQ(spec.seed, 18446744073709551615U);
    EXPECT_EQ(spec.max_concurrent_trials, 16);
    EXPECT_EQ(spec.time_budget, hours(2));
    EXPECT_EQ(spec.node_choice, NodeChoice::Balance);
    EXPECT_EQ(spec.starvation_bound, minutes(1));
    EXPECT_EQ(
        spec.trial.env,
        (std::vector<EnvironmentVariable>{
            {"MODEL", "small"}, {"N", "08"}, {"EMPTY", ""}, {"LR", "{lr}"}})
    );
    EXPECT_EQ(spec.trial.files, (std::vector<TemplateFile>{{"run.nml", "", "lr = {lr}\n"}}));
    EXPECT_TRUE(spec.trial.workdir_is_trial_dir);
    EXPECT_EQ(spec.trial.trial_dir, TrialDir::Always);
    EXPECT_EQ(spec.trial.output, OutputMode::Stream);
    EXPECT_EQ(spec.trial.time_limit, minutes(30));
    EXPECT_EQ(spec.trial.report_timeout, minutes(90));
    EXPECT_EQ(spec.trial.grace, milliseconds(500));
    EXPECT_EQ(
        spec.trial.metrics,
        (std::vector<MetricPattern>{
            {MetricSource::Stdout, "", "epoch (?P<step>\\d+) acc=(?P<accuracy>\\S+)"},
            {MetricSource::File, "{muster.trial_id}.log", "(?P<loss>\\S+)"}})
    );
    EXPECT_EQ(spec.trial.keep_env, (std::vector<std::string>{"SLURM_CPU_BIND", "OMPI_*"}));
    EXPECT_EQ(spec.trial.drop_env, std::vector<std::string>{"DISPLAY"});
    EXPECT_EQ(spec.trial.time_attr, "epoch");
    ASSERT_EQ(spec.resources.size(), 1U);
    EXPECT_EQ(to_string(spec.resources[0].group), "{cpu: 2, gpu: 0.5, memory: 2GiB, licence: 1}");
    EXPECT_EQ(spec.cluster_resources, (std::vector<NamedAmount>{{"licence", Amount::whole(5)}}));
    EXPECT_EQ(
        spec.nodes, (std::vector<NodeResources>{{"gpu[01-04]", {{"nvme", Amount::whole(4)}}}})
    );
    EXPECT_EQ(to_string(spec.reserve), "{cpu: 1, memory: 1GiB}");
    ASSERT_EQ(spec.search.points.size(), 1U);
    EXPECT_EQ(spec.search.points[0], (std::vector<ValueMember>{{"lr", 0.01}}));
    EXPECT_EQ(
        spec.stop,
        (std::vector<StopRule>{
            {"accuracy", Comparison::AtMost, 0.05},
            {"val_loss", Comparison::AtMost, 0.5},
            {"epoch", Comparison::AtLeast, 20},
            {"time_total", Comparison::AtLeast, 3600}})
    );
    EXPECT_EQ(spec.failures, (FailureOptions{-1, true}));
    EXPECT_EQ(
        spec.checkpoints,
        (CheckpointOptions{
            0, "accuracy", Mode::Min, std::int64_t{50} << 30U, CheckpointStorage::Node, "/local"})
    );
    EXPECT_EQ(spec.end, (EndOptions{minutes(5), minutes(0), SIGUSR1}));
    EXPECT_EQ(spec.storage_path, "/results");
}

TEST(SpecLoadTest, JsonIsReadAsWell) {
    const ExperimentSpec spec = spec_of(
        R"({
	"name":"digits","trial":{"command":["python3","t.py"],
	"env":{"A":"x\/y \ud83d\ude00 \u00e9"}},
	"space":{"b":{"choice":[1,1.0,"1",true,null]},"a":2}})"
    );

    EXPECT_EQ(spec.trial.env[0].value, "x/y \xF0\x9F\x98\x80 \xC3\xA9");
    ASSERT_EQ(spec.space.parameters.size(), 2U);
    EXPECT_EQ(spec.space.parameters[0].key, "b");
    EXPECT_EQ(
        std::get<Choice>(spec.space.parameters[0].domain).values,
        (std::vector<Value>{1, 1.0, "1", true, {}})
    );
}

TEST(SpecLoadTest, WindowsLinesAndAByteOrderMarkDoNoHarm) {
    const ExperimentSpec spec =
        spec_of("\xEF\xBB\xBFname: a\r\ntrial:\r\n  shell: |\r\n    one\r\n    two\r\n");

    EXPECT_EQ(spec.name, "a");
    EXPECT_EQ(spec.trial.shell, "one\ntwo\n");
}

TEST(SpecLoadTest, ATrialMayBeAFunctionInPlaceOfACommand) {
    EXPECT_EQ(spec_of("trial: {function: train}").trial.function, "train");
    EXPECT_EQ(
        refused("trial: {function: train, command: [a]}"),
        "sweep.yaml:1:19: trial.function: a command or shell line is there as well; keep one of "
        "them"
    );
    EXPECT_EQ(
        refused("trial: {function: ''}"),
        "sweep.yaml:1:19: trial.function: expected the name of a function, found no text"
    );
}

TEST(SpecLoadTest, AMissingCommandIsTold) {
    const std::string missing =
        "sweep.yaml:1:1: trial.command: missing; say what a trial runs, or give trial.shell";
    EXPECT_EQ(refused(""), missing);
    EXPECT_EQ(refused("# nothing\n"), missing);
    EXPECT_EQ(refused("{}"), missing);
    EXPECT_THAT(
        refused("name: a\ntrial: {env: {A: 1}}"),
        HasSubstr("sweep.yaml:2:8: trial.command: missing")
    );
}

TEST(SpecLoadTest, UnknownKeysAreToldWithTheNearest) {
    EXPECT_EQ(
        refused(kRuns + "num_sample: 3"),
        "sweep.yaml:2:1: num_sample: unknown key 'num_sample'; did you mean 'num_samples'?"
    );
    EXPECT_EQ(
        refused("trial:\n  command: [a]\n  comand: [b]\n"),
        "sweep.yaml:3:3: trial.comand: unknown key 'comand'; did you mean 'command'?"
    );
    EXPECT_EQ(
        refused(kRuns + "failures: {xyz: 1}"),
        "sweep.yaml:2:12: failures.xyz: unknown key 'xyz'; known here are max_failures and "
        "fail_fast"
    );
}

TEST(SpecLoadTest, EverythingWrongIsToldInTheOrderOfTheFile) {
    EXPECT_EQ(
        refused("mode: up\nseed: -1\nnum_samples: 0\ntrial: {command: [a], grace: soon}\nnmae: x\n"
        ),
        "sweep.yaml:1:7: mode: expected max or min, found the text 'up'\n"
        "sweep.yaml:2:7: seed: expected a whole number from 0 to 2^64 - 1, found the number -1\n"
        "sweep.yaml:3:14: num_samples: expected a whole number of 1 or more, or -1 for no end, "
        "found the number 0\n"
        "sweep.yaml:4:30: trial.grace: 'soon' is no duration; write 90, 10s, 500ms, 30m, 2h or "
        "1h30m\n"
        "sweep.yaml:5:1: nmae: unknown key 'nmae'; did you mean 'name'?"
    );
}

TEST(SpecLoadTest, AtMostTenProblemsAreTold) {
    std::string text = kRuns;
    for (int index = 0; index < 14; ++index) {
        text += "xx" + std::to_string(index) + "yy: 1\n";
    }

    const std::string message = refused(text);

    EXPECT_THAT(message, HasSubstr("xx9yy"));
    EXPECT_THAT(message, testing::Not(HasSubstr("xx10yy")));
    EXPECT_THAT(message, HasSubstr("\n… and 4 more"));
}

TEST(SpecLoadTest, DuplicateKeysAreRefused) {
    EXPECT_EQ(
        refused(kRuns + "seed: 1\nseed: 2\n"),
        "sweep.yaml:3:1: seed: the key is written twice; keep one"
    );
}

TEST(SpecLoadTest, WrongTypesSayWhatWasExpectedAndFound) {
    EXPECT_EQ(
        refused("trial: run\n"), "sweep.yaml:1:8: trial: expected a map, found the text 'run'"
    );
    EXPECT_EQ(refused("- a\n"), "sweep.yaml:1:1: expected a map, found a list");
    EXPECT_THAT(
        refused(kRuns + "num_samples: 1.5"),
        HasSubstr("num_samples: expected a whole number of 1 or more, or -1 for no end, found the "
                  "number 1.5")
    );
    EXPECT_THAT(
        refused(kRuns + "failures: {fail_fast: yes}"),
        HasSubstr("failures.fail_fast: expected true or false, found the text 'yes'")
    );
    EXPECT_THAT(refused(kRuns + "metric: [a]"), HasSubstr("metric: expected text, found a list"));
    EXPECT_THAT(
        refused(kRuns + "mode: max"), HasSubstr("mode: there is no `metric` that it could be of")
    );
    EXPECT_THAT(
        refused(kRuns + "time_budget: 0"),
        HasSubstr("time_budget: 0 is no time at all; leave the key out for no limit")
    );
    EXPECT_THAT(
        refused(kRuns + "time_budget: -5s"), HasSubstr("time_budget: '-5s' is no duration")
    );
}

TEST(SpecLoadTest, NullIsTheDefault) {
    EXPECT_EQ(spec_of(kRuns + "seed:\nmetric: ~\ntime_budget: null\n").seed, 0U);
}

TEST(SpecLoadTest, ANameMustFitADirectory) {
    EXPECT_THAT(
        refused(kRuns + "name: a/b"),
        HasSubstr("sweep.yaml:2:7: name: 'a/b': a name must not hold '/'")
    );
    EXPECT_THAT(refused(kRuns + "name: .a"), HasSubstr("begin with a dot"));
    EXPECT_THAT(refused(kRuns + "name: ''"), HasSubstr("must not be empty"));
    EXPECT_EQ(spec_of(kRuns + "name: 2024").name, "2024");
}

TEST(SpecLoadTest, CheckpointsAreScoredAsTheObjectiveIs) {
    const std::string minimised = kRuns + "metric: loss\nmode: min\n";

    EXPECT_EQ(spec_of(minimised + "checkpoints: {score: loss}").checkpoints.mode, Mode::Min);
    EXPECT_EQ(spec_of(minimised + "checkpoints: {score: f1}").checkpoints.mode, Mode::Max);
    EXPECT_EQ(
        spec_of(minimised + "checkpoints: {score: loss, mode: max}").checkpoints.mode, Mode::Max
    );
    EXPECT_EQ(spec_of(minimised).checkpoints, CheckpointOptions{});
}

TEST(SpecLoadTest, WrongCheckpointOptionsAreRefusedWithWhatWouldBeRight) {
    EXPECT_EQ(
        refused(kRuns + "checkpoints: {keep: -1}"),
        "sweep.yaml:2:21: checkpoints.keep: expected a whole number, or 0 for all, found the "
        "number -1"
    );
    EXPECT_THAT(
        refused(kRuns + "checkpoints: {mode: min}"),
        HasSubstr("checkpoints.mode: there is no checkpoints.score that it could be of")
    );
    EXPECT_THAT(
        refused(kRuns + "checkpoints: {budget: lots}"),
        HasSubstr("checkpoints.budget: \"lots\" is not a number of bytes")
    );
    EXPECT_THAT(
        refused(kRuns + "checkpoints: {storage: disk}"),
        HasSubstr("checkpoints.storage: expected shared or node, found the text 'disk'")
    );
    EXPECT_THAT(
        refused(kRuns + "checkpoints: {path: /local}"),
        HasSubstr("checkpoints.path: it is for `storage: node`; shared checkpoints lie below")
    );
    EXPECT_THAT(
        refused(kRuns + "checkpoints: {storage: node, path: local}"),
        HasSubstr("checkpoints.path: 'local' is not absolute; give a directory that every node")
    );
}

TEST(SpecLoadTest, AWarningSignalIsOneThatAProgramCanTake) {
    EXPECT_EQ(spec_of(kRuns + "end: {signal: SIGUSR2}").end.signal, SIGUSR2);
    EXPECT_EQ(spec_of(kRuns + "end: {signal: none}").end.signal, 0);
    EXPECT_EQ(
        refused(kRuns + "end: {signal: KILL}"),
        "sweep.yaml:2:15: end.signal: expected none, USR1, USR2, TERM, INT, HUP, CONT, URG or "
        "WINCH, found the text 'KILL'"
    );
    EXPECT_THAT(
        refused(kRuns + "end: {warning: soon}"), HasSubstr("end.warning: 'soon' is no duration")
    );
}

TEST(SpecLoadTest, KeysOfLaterVersionsAreKnownAndRefused) {
    EXPECT_EQ(
        refused(kRuns + "scaling: {num_workers: 2}\ngrow: {max_nodes: 4}\n"),
        "sweep.yaml:2:1: scaling: this key is not in this version\n"
        "sweep.yaml:3:1: grow: this key is not in this version"
    );
    EXPECT_EQ(parsed(kRuns + "grow: {idle: 2m}").error().code, ErrorCode::NotSupported);
    EXPECT_EQ(parsed(kRuns + "grow: {}\nxyz: 1").error().code, ErrorCode::InvalidInput);
    EXPECT_EQ(
        refused("trial: {command: [a], launch: mpi}"),
        "sweep.yaml:1:31: trial.launch: 'mpi' is not in this version"
    );
    EXPECT_EQ(
        refused(kRuns + "search: {algorithm: tpe}"),
        "sweep.yaml:2:21: search.algorithm: 'tpe' is not in this version"
    );
    EXPECT_EQ(
        refused(kRuns + "schedule: {algorithm: asha, max_t: 20, grace_period: 1}"),
        "sweep.yaml:2:23: schedule.algorithm: 'asha' is not in this version"
    );
    EXPECT_EQ(
        refused(kRuns + "schedule: {max_t: 20}"),
        "sweep.yaml:2:12: schedule.max_t: this key is not in this version"
    );
    EXPECT_EQ(
        refused(kRuns + "stop: {plateau: {std: 0.1}}"),
        "sweep.yaml:2:8: stop.plateau: this stopper is not in this version"
    );
}

TEST(SpecLoadTest, AlgorithmsThatNobodyKnowsAreToldWithTheNearest) {
    EXPECT_EQ(
        refused(kRuns + "search: {algorithm: gird}"),
        "sweep.yaml:2:21: search.algorithm: expected random or grid, found the text 'gird'; did "
        "you mean 'grid'?"
    );
}

TEST(SpecLoadTest, StopRulesMustSayWhichWay) {
    EXPECT_EQ(
        refused(kRuns + "metric: acc\nstop: {val_loss: 0.05}"),
        "sweep.yaml:3:18: stop.val_loss: the bare number 0.05 does not say which way; write "
        "val_loss: \">= 0.05\" or val_loss: \"<= 0.05\""
    );
    EXPECT_EQ(
        refused(kRuns + "schedule: {time_attr: epoch}\nstop: {step: 5}"),
        "sweep.yaml:3:14: stop.step: the step is called 'epoch' here; write epoch"
    );
    EXPECT_EQ(
        refused(kRuns + "stop: {a: \"< 5\"}"),
        "sweep.yaml:2:11: stop.a: expected a number or a comparison such as \"<= 0.05\", found the "
        "text '< 5'"
    );
    EXPECT_THAT(refused(kRuns + "stop: {a: [1]}"), HasSubstr("found a list"));
    EXPECT_THAT(refused(kRuns + "stop: {a: .nan}"), HasSubstr("stop.a: expected a number"));
}

TEST(SpecLoadTest, AFileThatIsNotThereIsNamed) {
    const Result<ExperimentSpec> spec = load_spec("no/such.yaml", {}, LoadOptions{"/here"});

    ASSERT_FALSE(spec.ok());
    EXPECT_EQ(spec.error().code, ErrorCode::NotFound);
    EXPECT_EQ(spec.error().message, "/here/no/such.yaml: No such file or directory");
    EXPECT_EQ(load_spec("/tmp").error().message, "/tmp: a directory; name a file in it");
}

}  // namespace
}  // namespace muster
