// SPDX-License-Identifier: Apache-2.0

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "spec/resolved_spec.hpp"
#include "spec/yaml_text.hpp"
#include "spec_support.hpp"

namespace muster {
namespace {

using testing::HasSubstr;

/// What is written must read back the same, from any directory and under any name.
void expect_round_trip(const ExperimentSpec& spec) {
    const std::string written = resolved_yaml(spec);
    const Result<ExperimentSpec> read =
        parse_spec(written, "elsewhere/experiment.yaml", {}, LoadOptions{"/other"});

    ASSERT_TRUE(read.ok()) << read.error().message << "\n" << written;
    EXPECT_EQ(resolved_yaml(*read), written);
    EXPECT_EQ(read->name, spec.name);
    EXPECT_EQ(read->objective, spec.objective);
    EXPECT_EQ(read->seed, spec.seed);
    EXPECT_EQ(read->num_samples, spec.num_samples);
    EXPECT_EQ(read->max_concurrent_trials, spec.max_concurrent_trials);
    EXPECT_EQ(read->time_budget, spec.time_budget);
    EXPECT_EQ(read->starvation_bound, spec.starvation_bound);
    EXPECT_EQ(read->node_choice, spec.node_choice);
    EXPECT_EQ(read->trial, spec.trial);
    EXPECT_EQ(read->resources, spec.resources);
    EXPECT_EQ(read->cluster_resources, spec.cluster_resources);
    EXPECT_EQ(read->nodes, spec.nodes);
    EXPECT_EQ(read->reserve, spec.reserve);
    EXPECT_EQ(read->search, spec.search);
    EXPECT_EQ(read->stop, spec.stop);
    EXPECT_EQ(read->failures, spec.failures);
    EXPECT_EQ(read->checkpoints, spec.checkpoints);
    EXPECT_EQ(read->end, spec.end);
    EXPECT_EQ(read->storage_path, spec.storage_path);
    EXPECT_TRUE(compare_for_continue(spec, *read).ok());
}

TEST(SpecResolvedTest, DefaultsAreAllShownAndReadBack) {
    const ExperimentSpec spec = spec_of(kRuns);

    expect_round_trip(spec);
    EXPECT_EQ(
        resolved_yaml(spec),
        "name: sweep\n"
        "metric: null\n"
        "mode: null\n"
        "num_samples: 1\n"
        "seed: 0\n"
        "max_concurrent_trials: 0\n"
        "time_budget: null\n"
        "trial:\n"
        "  command: [run]\n"
        "  env: {}\n"
        "  files: {}\n"
        "  workdir: /here\n"
        "  trial_dir: auto\n"
        "  output: file\n"
        "  time_limit: null\n"
        "  report_timeout: null\n"
        "  grace: 10s\n"
        "  launch: single\n"
        "  metrics: []\n"
        "  keep_env: []\n"
        "  drop_env: []\n"
        "space: {}\n"
        "resources:\n"
        "  - {cpu: 1}\n"
        "cluster_resources: {}\n"
        "nodes: {}\n"
        "reserve: {}\n"
        "node_choice: tightest\n"
        "starvation_bound: 1m\n"
        "search: {algorithm: random, points: []}\n"
        "schedule: {algorithm: fifo, time_attr: step}\n"
        "stop: {}\n"
        "failures: {max_failures: 0, fail_fast: false}\n"
        "checkpoints: {keep: 2, storage: shared}\n"
        "end: {warning: 2m, min_slice: 10m, signal: none}\n"
        "storage: {path: /here/results}\n"
    );
}

TEST(SpecResolvedTest, EverythingReadsBack) {
    expect_round_trip(spec_of(R"(
name: "yes"
metric: "1"
mode: min
num_samples: -1
seed: 18446744073709551615
max_concurrent_trials: 16
time_budget: 1h30m
node_choice: balance
starvation_bound: 0.5
trial:
  shell: "cat <<'X'\n a: b # c\nX\ntrue {lr} \t \\ é 😀 \"q\""
  env: {A: "", B: "null", C: 1e5, "D.x y": "{lr}"}
  files: {run.nml: {content: "lr = {lr}\n\ttab: # \r\n"}}
  workdir: trial
  trial_dir: always
  output: pty
  time_limit: 30m
  report_timeout: 1.25s
  grace: 0
  metrics:
    - {from: stdout, pattern: 'epoch (?P<step>\d+) acc=(?P<accuracy>\S+)'}
    - {from: file, path: "{muster.trial_id}.log", pattern: '(?P<loss>\S+)'}
  keep_env: [SLURM_CPU_BIND, OMPI_*]
  drop_env: [DISPLAY]
space:
  lr: {loguniform: [1.0e-4, 1.0e-1]}
  opt: {choice: [sgd, "1", 1, 1.0, true, null, .nan, .inf, -.inf, [1, a], {b: "no", c: {}}]}
  momentum: {quniform: [0.0, 0.75, 0.25], when: {opt: [sgd, "1"]}}
  group: {flag: true, when: {opt: sgd}, deep: {n: {qrandint: [2, 8, 2]}}}
  warm: {expr: "lr * 10"}
  name with blanks: {grid: [1, 2]}
  big: 1e300
resources:
  - {when: {opt: [sgd, true]}, cpu: 1, gpu: 0.5, licence: 2.5}
  - {when: {lr: 0.5}, placement_group: {bundles: [{}, {cpu: 4, memory: 3GiB}], strategy: SPREAD}}
  - {gpu: 0}
cluster_resources: {licence: 5}
nodes: {"gpu[01-04]": {nvme: 4, a/b: 0.5}}
reserve: {cpu: 1, gpu: 1, memory: 2GiB}
search: {points: [{lr: 0.01, opt: sgd}, {name with blanks: 2}]}
schedule: {time_attr: epoch}
stop: {"1": 0.99, val_loss: "<= -0.05", epoch: 20, time_total: 30m}
failures: {max_failures: 2, fail_fast: true}
checkpoints: {keep: 3, score: val loss, mode: min, budget: 50GiB, storage: node, path: "/a b"}
end: {warning: 90s, min_slice: 1h, signal: SIGUSR2}
storage: {path: "/a b/c"}
)"));
}

TEST(SpecResolvedTest, TextsAreQuotedWhereTheyWouldMeanSomethingElse) {
    EXPECT_EQ(yaml_text("train.py"), "train.py");
    EXPECT_EQ(yaml_text("null"), "\"null\"");
    EXPECT_EQ(yaml_text("true"), "\"true\"");
    EXPECT_EQ(yaml_text(".inf"), "\".inf\"");
    EXPECT_EQ(yaml_text("-x"), "\"-x\"");
    EXPECT_EQ(yaml_text(""), "\"\"");
    EXPECT_EQ(yaml_text("a: b"), "\"a: b\"");
    EXPECT_EQ(yaml_text("..."), "\"...\"");
}

TEST(SpecContinueTest, LimitsMayChange) {
    const ExperimentSpec before = spec_of(kRuns + "num_samples: 4\nspace: {a: 1}");
    const ExperimentSpec after = spec_of(
        "trial: {command: [other], time_limit: 5m}\nnum_samples: 8\nspace: {a: 1}\n"
        "failures: {max_failures: 3}\ncheckpoints: {keep: 5}\nend: {warning: 9m}\ntime_budget: "
        "1h\nresources: {cpu: 2}\nstop: {step: 3}"
    );

    EXPECT_TRUE(compare_for_continue(before, after).ok());
}

TEST(SpecContinueTest, TheFirstKeyThatDiffersIsNamed) {
    const std::string base = kRuns + "space: {a: {uniform: [0, 1]}, b: 1}\n";
    const ExperimentSpec before = spec_of(base);
    const auto message = [&](const std::string& text) {
        const Status status = compare_for_continue(before, spec_of(text));
        return status.ok() ? "nothing differs" : status.error().message;
    };

    EXPECT_EQ(
        message(base + "seed: 3\n"),
        "seed: the experiment was begun with 0, now it is 3; one that goes on keeps its space, "
        "seed, metric, mode and search"
    );
    EXPECT_THAT(
        message(base + "metric: m\n"), HasSubstr("metric: the experiment was begun with null")
    );
    EXPECT_THAT(message(base + "search: {points: [{b: 1}]}\n"), HasSubstr("search.points: "));
    EXPECT_THAT(
        message(kRuns + "space: {a: {uniform: [0, 2]}, b: 1}"),
        HasSubstr("space.a: the experiment was begun with {uniform: [0.0, 1.0]}, now it is "
                  "{uniform: [0.0, 2.0]}")
    );
    EXPECT_THAT(
        message(kRuns + "space: {a: {uniform: [0, 1]}}"),
        HasSubstr("space.b: the experiment was begun with 1, now it is not there; ")
    );
    EXPECT_THAT(
        message(kRuns + "space: {a: {uniform: [0, 1]}, b: 1, c: 3}"),
        HasSubstr("space.c: the experiment was begun without it, now it is 3; ")
    );
    EXPECT_THAT(message(base + "mode:"), HasSubstr("nothing differs"));
    EXPECT_THAT(
        message(kRuns + "space: {b: 1, a: {uniform: [0, 1]}}"),
        HasSubstr("space.b: it stands where space.a stood")
    );
}

}  // namespace
}  // namespace muster
