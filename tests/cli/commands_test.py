# SPDX-License-Identifier: Apache-2.0
"""Every command besides `run`: what it prints and how it exits."""

import csv
import io
import json

from cli_case import CliCase, main

SWEEP = {
    "metric": "loss",
    "mode": "min",
    "trial": {"shell": "echo trial {x}; muster report loss={x} step=2 note='a, \"b\"'"},
    "space": {"x": {"grid": [3, 1, 2]}},
}


class HelpTest(CliCase):
    def test_help_lists_commands_with_examples(self):
        result = self.muster("--help")
        self.assertEqual(result.returncode, 0)
        for word in ("run", "check", "results", "Examples"):
            self.assertIn(word, result.stdout)

    def test_every_command_has_help_with_an_example(self):
        commands = "run check nodes status results logs explain simulate env report checkpoint get version"
        for command in commands.split():
            with self.subTest(command):
                result = self.muster(command, "--help")
                self.assertEqual(result.returncode, 0)
                self.assertIn(f"muster {command}", result.stdout)

    def test_wrong_command_names_the_nearest(self):
        result = self.muster("rnu", "x.yaml")
        self.assertEqual(result.returncode, 2)
        self.assertIn("did you mean 'run'?", result.stderr)

    def test_wrong_arguments_are_refused_in_one_line(self):
        for arguments, message in (
            ("run x.yaml --no-such-option", "run: there is no option '--no-such-option'; see"),
            ("run x.yaml --sett a=1", "run: there is no option '--sett'; did you mean '--set'?"),
            ("run x.yaml y.yaml", "run: 'y.yaml' is one word too many; see `muster run --help`"),
            ("run", "run: spec is required; see `muster run --help`"),
            ("nodes --cpus all", "nodes: --cpus: expected one of cores, threads, found 'all'; see"),
            ("check x.yaml --show -1", "check: --show: expected a whole number, found '-1'; see"),
        ):
            with self.subTest(arguments):
                result = self.muster(*arguments.split())
                self.assertEqual(result.returncode, 2)
                self.assertIn("muster " + message, result.stderr)
                self.assertEqual(result.stderr.count("\n"), 1)

    def test_help_is_a_command_too(self):
        self.assertEqual(self.muster("help").stdout, self.muster("--help").stdout)
        self.assertEqual(self.muster("help", "run").stdout, self.muster("run", "--help").stdout)

    def test_version(self):
        self.assertRegex(self.muster("version").stdout, r"^muster \d+\.\d+\.\d+\n")
        self.assertEqual(self.muster("--version").returncode, 0)


class SpecErrorsTest(CliCase):
    def refused(self, text, *words, code=2):
        result = self.muster("run", self.spec(text))
        self.assertEqual(result.returncode, code, result.stdout)
        for word in words:
            self.assertIn(word, result.stderr)
        self.assertFalse((self.dir / "results").exists())

    def test_misspelt_key_names_its_place_and_the_nearest(self):
        self.refused(
            "trial:\n  comand: [/bin/true]\n", "sweep.yaml:2", "trial.comand", "did you mean"
        )

    def test_share_above_one_gpu(self):
        self.refused(
            "trial: {command: [/bin/true]}\nresources: {gpu: 1.5}\n", "sweep.yaml:2", "gpu", "1.5"
        )

    def test_key_of_a_later_version_is_refused(self):
        self.refused(
            "trial: {command: [/bin/true]}\nsearch: {algorithm: tpe}\n", "not in this version"
        )

    def test_file_that_is_not_there(self):
        result = self.muster("run", "nowhere.yaml")
        self.assertEqual(result.returncode, 2)
        self.assertIn("nowhere.yaml", result.stderr)

    def test_set_is_stronger_than_the_file(self):
        spec = self.spec({"num_samples": 5, "trial": {"command": ["/bin/true"]}})
        result = self.muster("run", spec, "--set", "num_samples=2")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(len(self.results()), 2)


class CheckTest(CliCase):
    def test_check_shows_trials_and_what_fits(self):
        spec = self.spec({**SWEEP, "resources": {"cpu": 2}})
        result = self.muster("check", spec, "--node-resources", "cpu=4")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("3 trials", result.stdout)
        self.assertRegex(result.stdout, r"\{cpu: 2\} +every trial +2\n")
        self.assertFalse((self.dir / "results").exists())

    def test_check_tells_what_never_fits(self):
        spec = self.spec({**SWEEP, "resources": {"cpu": 64}})
        result = self.muster("check", spec, "--node-resources", "cpu=4")
        self.assertEqual(result.returncode, 3)
        self.assertIn("64", result.stderr)

    def test_check_against_a_cluster_file(self):
        cluster = self.write(
            "cluster.yaml", 'nodes:\n  - {name: "gpu[01-04]", cpu: 64, gpu: 8, memory: 500GiB}\n'
        )
        spec = self.spec({**SWEEP, "resources": {"gpu": 1}})
        result = self.muster("check", spec, "--cluster", cluster)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("4 nodes", result.stdout)
        self.assertRegex(result.stdout, r"\{gpu: 1\} +every trial +32\n")

    def test_nodes_of_a_cluster_file_get_what_the_spec_says_they_have(self):
        cluster = self.write("cluster.yaml", 'nodes:\n  - {name: "n[1-2]", cpu: 4}\n')
        spec = self.spec({**SWEEP, "resources": {"nvme": 1}, "nodes": {"n2": {"nvme": 3}}})
        result = self.muster("check", spec, "--cluster", cluster)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertRegex(result.stdout, r"\{nvme: 1\} +every trial +3\n")


class SimulateTest(CliCase):
    def test_simulated_makespan_is_exact(self):
        spec = self.spec({"num_samples": 10, "trial": {"command": ["/bin/true"]}})
        result = self.muster(
            "simulate", spec, "--node-resources", "cpu=4", "--duration", "60s", "--json"
        )
        self.assertEqual(result.returncode, 0, result.stderr)
        report = json.loads(result.stdout)
        self.assertEqual(report["trials"], 10)
        self.assertAlmostEqual(report["makespan"], 180, delta=1)

    def test_text_has_a_timeline_for_each_node(self):
        cluster = self.write("cluster.yaml", 'nodes:\n  - {name: "n[1-2]", cpu: 2}\n')
        spec = self.spec({"num_samples": 8, "trial": {"command": ["/bin/true"]}})
        result = self.muster("simulate", spec, "--cluster", cluster)
        self.assertEqual(result.returncode, 0, result.stderr)
        for word in ("makespan", "cpu", "n1", "n2"):
            self.assertIn(word, result.stdout)
        self.assertFalse((self.dir / "results").exists())


class NodesTest(CliCase):
    def test_logical_node_as_json(self):
        result = self.muster("nodes", "--node-resources", "cpu=4,gpu=2,a=1", "--format", "json")
        self.assertEqual(result.returncode, 0, result.stderr)
        nodes = json.loads(result.stdout)
        self.assertEqual(len(nodes["nodes"]), 1)

    def test_this_node(self):
        result = self.muster("nodes")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("CPU", result.stdout.upper())

    def test_wrong_resources_are_refused(self):
        result = self.muster("nodes", "--node-resources", "cpu=lots")
        self.assertEqual(result.returncode, 2)
        self.assertIn("cpu=lots", result.stderr)


class EnvTest(CliCase):
    def test_diff_says_what_goes_and_why(self):
        self.env.update(OMPI_COMM_WORLD_RANK="3")
        result = self.muster("env", "--diff")
        self.assertEqual(result.returncode, 0)
        self.assertIn("OMPI_COMM_WORLD_RANK", result.stdout)

    def test_keep_and_drop(self):
        self.env.update(OMPI_COMM_WORLD_RANK="3", SECRET="x")
        result = self.muster("env", "--keep", "OMPI_COMM_WORLD_*", "--drop", "SECRET")
        self.assertIn("OMPI_COMM_WORLD_RANK=3", result.stdout)
        self.assertNotIn("SECRET", result.stdout)


class AskingTest(CliCase):
    def setUp(self):
        super().setUp()
        self.run_spec(SWEEP, "--node-resources", "cpu=1")

    def test_table_is_best_first(self):
        result = self.muster("results", "results/sweep")
        trials = [line.split()[0] for line in result.stdout.splitlines()[1:]]
        self.assertEqual(trials, ["00001", "00002", "00000"])

    def test_name_alone_is_looked_for_in_results(self):
        self.assertEqual(self.muster("results", "sweep").returncode, 0)

    def test_csv(self):
        result = self.muster("results", "results/sweep", "--format", "csv")
        rows = list(csv.DictReader(io.StringIO(result.stdout, newline="")))
        self.assertEqual([row["config/x"] for row in rows], ["3", "1", "2"])
        self.assertEqual(rows[0]["note"], 'a, "b"')

    def test_json(self):
        trial = self.results()[1]
        self.assertEqual(trial["config"], {"x": 1})
        self.assertEqual(trial["best"], {"step": 2, "loss": 1, "note": 'a, "b"'})

    def test_logs(self):
        result = self.muster("logs", "results/sweep", "2")
        self.assertEqual(result.stdout, "trial 2\n")

    def test_trial_that_does_not_exist(self):
        result = self.muster("logs", "results/sweep", "9")
        self.assertEqual(result.returncode, 2)
        self.assertIn("3 trials", result.stderr)

    def test_directory_that_is_no_experiment(self):
        result = self.muster("status", "elsewhere")
        self.assertEqual(result.returncode, 2)
        self.assertIn("elsewhere", result.stderr)

    def test_status_of_a_run_that_is_over(self):
        result = self.muster("status", "results/sweep")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("3 completed", result.stdout)
        self.assertIn("best 00001", result.stdout)

    def test_explain_a_trial_that_ended(self):
        result = self.muster("explain", "results/sweep", "1")
        self.assertIn("Completed", result.stdout)

    def test_finished_experiment_is_shown_again_and_fresh_begins_anew(self):
        again = self.muster("run", self.dir / "sweep.yaml", "--node-resources", "cpu=1")
        self.assertEqual(again.returncode, 0, again.stderr)
        self.assertIn("finished before", again.stderr)
        fresh = self.muster("run", self.dir / "sweep.yaml", "--node-resources", "cpu=1", "--fresh")
        self.assertEqual(fresh.returncode, 0, fresh.stderr)
        self.assertTrue((self.dir / "results" / "sweep-2").is_dir())

    def test_changed_space_is_refused_by_name(self):
        changed = dict(SWEEP, space={"x": {"grid": [3, 1, 2, 5]}})
        result = self.muster("run", self.spec(changed), "--node-resources", "cpu=1")
        self.assertEqual(result.returncode, 2)
        self.assertIn("space", result.stderr)


class OtherSpecTest(CliCase):
    def test_failed_experiment_says_how_to_retry(self):
        spec = self.spec({"trial": {"command": ["false"]}})
        self.assertEqual(self.muster("run", spec).returncode, 1)
        self.assertIn("--retry failed runs the failed trials again", self.muster("run", spec).stderr)

    def test_space_may_change_after_a_refusal(self):
        spec = self.spec(dict(SWEEP, resources={"gpu": 9}))
        refused = self.muster("run", spec, "--node-resources", "cpu=1")
        self.assertEqual(refused.returncode, 3, refused.stderr)
        again = self.muster(
            *("run", spec, "--node-resources", "cpu=1"),
            *("--set", "resources.gpu=0", "--set", "space.x=1"),
        )
        self.assertEqual(again.returncode, 0, again.stderr)

    def test_metric_by_another_name_is_told(self):
        spec = self.spec(dict(SWEEP, metric="accuracy"))
        result = self.muster("run", spec, "--node-resources", "cpu=1")
        self.assertIn("finite accuracy; reported were loss, note\n", result.stdout)


class WhileItRunsTest(CliCase):
    def test_status_and_explain_of_a_live_run(self):
        spec = {"num_samples": 3, "trial": {"shell": "while [ ! -e go ]; do sleep 0.02; done"}}
        run = self.start("run", self.spec(spec), "--node-resources", "cpu=2", "--plain")
        self.wait_for_states(2, 1)
        status = self.muster("status", "results/sweep")
        self.assertIn("2 running", status.stdout)
        self.assertIn(str(run.pid), status.stdout)
        waiting = self.muster("explain", "results/sweep", "2")
        self.assertIn("Pending", waiting.stdout)
        self.assertIn("cpu", waiting.stdout)
        running = self.muster("explain", "results/sweep", "0")
        self.assertIn("Running", running.stdout)
        self.assertIn("cores", running.stdout)
        everything = self.muster("explain", "results/sweep")
        self.assertIn("00002", everything.stdout)
        (self.dir / "go").touch()
        run.communicate(timeout=30)
        self.assertEqual(run.returncode, 0)


class OutsideTest(CliCase):
    def test_report_outside_a_trial_is_harmless(self):
        result = self.muster("report", "loss=0.5")
        self.assertEqual(result.returncode, 0)

    def test_get_outside_a_trial_says_so(self):
        result = self.muster("get", "lr")
        self.assertEqual(result.returncode, 2)
        self.assertIn("not", result.stderr)


if __name__ == "__main__":
    main()
