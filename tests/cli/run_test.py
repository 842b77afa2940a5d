# SPDX-License-Identifier: Apache-2.0
"""`muster run` from its beginning to every kind of end."""

import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import unittest

from cli_case import MUSTER, CliCase, main, processes_with, wait_until

ARGUMENTS = [
    "",
    "two words",
    "it's",
    'a "quote"',
    "$HOME `id` $(id)",
    "back\\slash",
    "line\nbreak",
    "tab\tstop",
    "-lr",
    "--",
    "*",
    "größer ≥ 日本",
    "{literal}",
]

DUMP = """import json, os, sys
with open(sys.argv[1], "w") as out:
    json.dump({"argv": sys.argv[2:], "env": dict(os.environ), "cwd": os.getcwd()}, out)
"""

HOLD = """
echo $$ > $MUSTER_TRIAL_ID.new
mv $MUSTER_TRIAL_ID.new pids/$MUSTER_TRIAL_ID
while [ ! -e go ]; do sleep 0.02; done
"""


class ArgumentsTest(CliCase):
    def dump(self, spec):
        script = self.write("dump.py", DUMP)
        out = self.dir / "dump.json"
        trial = spec.pop("trial", {})
        command = [sys.executable, str(script), str(out)] + trial.pop("arguments", [])
        self.run_spec({"trial": {"command": command, **trial}, **spec})
        return json.loads(out.read_text())

    def test_arguments_arrive_unchanged(self):
        escaped = [text.replace("{", "{{").replace("}", "}}") for text in ARGUMENTS]
        seen = self.dump({"trial": {"arguments": escaped}})
        self.assertEqual(seen["argv"], ARGUMENTS)

    def test_values_arrive_unchanged(self):
        space = {f"v{index}": {"choice": [text]} for index, text in enumerate(ARGUMENTS)}
        seen = self.dump(
            {"trial": {"arguments": ["{" + key + "}" for key in space]}, "space": space}
        )
        self.assertEqual(seen["argv"], ARGUMENTS)

    def test_numbers_are_shortest_and_keep_their_type(self):
        space = {"a": 1.0e-5, "b": 1, "c": 1.0, "d": True, "e": None, "f": [1, 2.5, "x"]}
        seen = self.dump(
            {"trial": {"arguments": ["{" + key + "}" for key in space]}, "space": space}
        )
        self.assertEqual(seen["argv"], ["1e-05", "1", "1.0", "true", "null", '[1, 2.5, "x"]'])

    def test_shell_lines_get_their_values_quoted(self):
        nasty = "it's $HOME; `id` > x"
        spec = {
            "trial": {"shell": "printf '%s' {value} > seen"},
            "space": {"value": {"choice": [nasty]}},
        }
        self.run_spec(spec)
        self.assertEqual((self.dir / "seen").read_text(), nasty)

    def test_environment_says_who_the_trial_is(self):
        seen = self.dump({"space": {"lr": 0.5, "model": {"depth": 3}}, "resources": {"cpu": 1}})
        env = seen["env"]
        self.assertEqual(env["MUSTER_TRIAL_ID"], "00000")
        self.assertEqual(env["MUSTER_EXPERIMENT"], "sweep")
        self.assertEqual(env["OMP_NUM_THREADS"], "1")
        self.assertEqual(env["PYTHONUNBUFFERED"], "1")
        self.assertEqual(env["CUDA_VISIBLE_DEVICES"], "")
        self.assertEqual(env["CUDA_DEVICE_ORDER"], "PCI_BUS_ID")
        self.assertTrue(env["MUSTER_TRIAL_DIR"].endswith("results/sweep/00000"))
        self.assertEqual(os.path.realpath(seen["cwd"]), os.path.realpath(self.dir))

    def test_launcher_variables_are_removed_and_the_users_stay(self):
        self.env.update(
            OMPI_COMM_WORLD_RANK="0", PMIX_RANK="0", SLURM_PROCID="0", SLURM_JOB_ID="7", MINE="x"
        )
        env = self.dump({"trial": {"env": {"MODEL": "small {lr}"}}, "space": {"lr": 0.5}})["env"]
        for gone in ("OMPI_COMM_WORLD_RANK", "PMIX_RANK", "SLURM_PROCID"):
            self.assertNotIn(gone, env)
        self.assertEqual(env["SLURM_JOB_ID"], "7")
        self.assertEqual(env["MINE"], "x")
        self.assertEqual(env["MODEL"], "small 0.5")

    def test_params_file_holds_the_nested_config(self):
        spec = {
            "trial": {"shell": "cp \"$MUSTER_CONFIG\" seen.json"},
            "space": {"lr": 0.5, "augment": {"flip": {"choice": [True]}}},
        }
        self.run_spec(spec)
        seen = json.loads((self.dir / "seen.json").read_text())
        self.assertEqual(seen, {"lr": 0.5, "augment": {"flip": True}})

    def test_template_files_are_filled_in(self):
        self.write("run.nml.in", "&grid n={n} {{braces}} /\n")
        spec = {
            "trial": {
                "command": ["cp", "run.nml", "copy"],
                "files": {"run.nml": "run.nml.in"},
                "workdir": "trial",
            },
            "space": {"n": {"grid": [8]}},
        }
        self.run_spec(spec)
        self.assertEqual(
            (self.dir / "results/sweep/00000/copy").read_text(), "&grid n=8 {braces} /\n"
        )


class OutcomeTest(CliCase):
    def test_failures_are_told_with_their_last_words(self):
        spec = {
            "num_samples": 3,
            "trial": {"shell": "echo about to fail >&2; exit 7"},
        }
        result = self.run_spec(spec, "--node-resources", "cpu=2", expect=1)
        self.assertIn("exit code 7", result.stdout)
        self.assertIn("about to fail", result.stdout)
        self.assertEqual([trial["state"] for trial in self.results()], ["Failed"] * 3)

    def test_program_that_is_not_there(self):
        result = self.run_spec({"trial": {"command": ["no-such-program"]}}, expect=1)
        self.assertIn("no-such-program", result.stdout)

    def test_retries(self):
        spec = {
            "trial": {"shell": "echo x >> tries; [ $(wc -l < tries) -ge 3 ]"},
            "failures": {"max_failures": 2},
        }
        self.run_spec(spec)
        trial = self.results()[0]
        self.assertEqual((trial["state"], trial["failures"], trial["attempts"]), ("Completed", 2, 3))

    def test_fail_fast(self):
        spec = {
            "num_samples": 20,
            "trial": {"shell": "[ $MUSTER_TRIAL_ID != 00001 ] && sleep 60; exit 1", "grace": "1s"},
            "failures": {"fail_fast": True},
        }
        self.run_spec(spec, "--node-resources", "cpu=4", expect=1)
        states = [trial["state"] for trial in self.results()]
        self.assertEqual(states.count("Failed"), 1)
        self.assertEqual(set(states), {"Failed", "Cancelled"})

    def test_time_limit_is_kept_whatever_the_trial_does(self):
        spec = {"trial": {"shell": "trap '' TERM; sleep 60 & sleep 60", "time_limit": "300ms"}}
        self.run_spec(spec, timeout=20)
        self.assertEqual(self.results()[0]["state"], "Stopped")
        self.assert_nothing_left()

    def test_silent_trial_fails_by_its_report_timeout(self):
        spec = {"trial": {"shell": "sleep 60", "report_timeout": "300ms"}}
        self.run_spec(spec, expect=1, timeout=20)
        self.assertIn("report timeout", self.results()[0]["reason"])

    def test_time_budget(self):
        spec = {"num_samples": 100, "trial": {"shell": "sleep 60"}, "time_budget": "500ms"}
        result = self.run_spec(spec, "--node-resources", "cpu=2", timeout=20)
        self.assertIn("time_budget", result.stderr)

    def test_memory_limit(self):
        script = self.write("eat.py", "held = bytearray(400 << 20)\nimport time\ntime.sleep(60)\n")
        spec = {
            "trial": {"command": [sys.executable, str(script)]},
            "resources": {"cpu": 1, "memory": "64MiB"},
        }
        self.run_spec(spec, "--node-resources", "cpu=1,memory=1GiB", expect=1, timeout=30)
        self.assertIn("memory: asked 64MiB, used", self.results()[0]["reason"])

    def test_children_that_leave_the_session_end_with_the_trial(self):
        spec = {"trial": {"shell": "setsid sleep 1234 & (setsid sleep 1234 &) ; exit 0", "grace": "1s"}}
        self.run_spec(spec)
        self.assert_nothing_left()

    def test_current_directory_that_is_gone_is_said(self):
        spec = self.spec({"trial": {"command": ["true"]}})
        (self.dir / "gone").mkdir()
        script = 'cd gone && rmdir ../gone && exec "$0" run "$1"'
        result = subprocess.run(
            ["sh", "-c", script, MUSTER, spec],
            cwd=self.dir,
            env=self.env,
            capture_output=True,
            text=True,
            timeout=60,
        )
        self.assertEqual(result.returncode, 2, result.stderr)
        self.assertIn("the current directory is gone", result.stderr)

    def test_current_directory_may_go_during_the_run(self):
        (self.dir / "gone").mkdir()
        spec = self.spec(
            {
                "trial": {"shell": f"rmdir {self.dir}/gone", "workdir": str(self.dir)},
                "storage": {"path": str(self.dir / "results")},
            }
        )
        script = 'cd gone && exec "$0" run "$1"'
        result = subprocess.run(
            ["sh", "-c", script, MUSTER, spec],
            cwd=self.dir,
            env=self.env,
            capture_output=True,
            text=True,
            timeout=60,
        )
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn(f"everything is in {self.dir}/results/sweep", result.stdout)

    def test_output_that_is_closed_is_no_harm(self):
        spec = self.spec({"trial": {"command": ["true"]}, "num_samples": 20})
        for closed in (">&-", "2>&-", "<&- >&- 2>&-"):
            script = f'exec "$0" run --fresh "$1" {closed}'
            code = subprocess.call(
                ["sh", "-c", script, MUSTER, spec],
                cwd=self.dir,
                env=self.env,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                timeout=60,
            )
            self.assertEqual(code, 0, closed)

    def test_few_descriptors_fail_no_trial_and_lose_no_report(self):
        spec = {
            "trial": {"shell": "muster report a=1; sleep 0.2"},
            "num_samples": 100,
            "resources": {"cpu": 0.01},
        }

        def limit_files():
            resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))

        result = self.muster("run", self.spec(spec), preexec_fn=limit_files)
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
        self.assertIn("at most 10 trials at once", result.stdout)
        self.assertEqual([trial["reports"] for trial in self.results()], [1] * 100)

    def test_trials_keep_their_limit_of_open_files(self):
        def limit_files():
            hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
            resource.setrlimit(resource.RLIMIT_NOFILE, (min(200, hard), hard))

        spec = self.spec({"trial": {"shell": "ulimit -n"}})
        self.assertEqual(self.muster("run", spec, preexec_fn=limit_files).returncode, 0)
        self.assertEqual(self.muster("logs", "results/sweep", "0").stdout, "200\n")

    @unittest.skipIf(os.getuid() != 0, "only root can become a user without processes")
    def test_few_processes_are_said_and_abort_nothing(self):
        nobody = 65534
        program = self.dir / "muster"
        shutil.copy(MUSTER, program)
        spec = self.spec({"trial": {"command": ["true"]}, "num_samples": 4})
        for path in (self.dir, self.tmp):
            path.chmod(0o777)
        for most in range(1, 10):

            def become_nobody(most=most):
                os.setgid(nobody)
                os.setuid(nobody)
                resource.setrlimit(resource.RLIMIT_NPROC, (most, most))

            result = subprocess.run(
                [program, "run", spec, "--fresh"],
                cwd=self.dir,
                env=self.env,
                preexec_fn=become_nobody,
                capture_output=True,
                text=True,
                timeout=60,
            )
            said = result.stdout + result.stderr
            self.assertIn(result.returncode, (0, 1, 5), said)
            self.assertIn("ulimit -u" if result.returncode else "4 completed", said)
            self.assert_nothing_left()

    def test_nothing_is_left_after_a_plain_run(self):
        self.run_spec({"num_samples": 20, "trial": {"command": ["/bin/true"]}})
        self.assert_nothing_left()
        self.assertEqual(
            sorted(path.name for path in (self.dir / "results/sweep").iterdir()),
            ["experiment.yaml", "journal", "live.json"],
        )


class MetricsTest(CliCase):
    def test_reports_by_command_and_best(self):
        spec = {
            "metric": "loss",
            "mode": "min",
            "trial": {"shell": "muster report loss=$(muster get x) step=1"},
            "space": {"x": {"grid": [3, 1, 2]}},
        }
        result = self.run_spec(spec, "--node-resources", "cpu=2")
        self.assertIn("best trial 00001", result.stdout)
        best = self.muster("results", "results/sweep", "--best")
        self.assertIn("loss 1 at step 1", best.stdout)

    def test_patterns_on_stdout(self):
        spec = {
            "metric": "acc",
            "trial": {
                "shell": "for i in 1 2 3; do echo epoch $i acc=0.$i; done",
                "metrics": {"from": "stdout", "pattern": "epoch (?P<step>\\d+) acc=(?P<acc>\\S+)"},
            },
        }
        self.run_spec(spec)
        trial = self.results()[0]
        self.assertEqual(trial["reports"], 3)
        self.assertEqual(trial["best"], {"step": 3, "acc": 0.3})

    def test_patterns_in_a_file(self):
        spec = {
            "metric": "acc",
            "trial": {
                "shell": "for i in 1 2 3; do echo acc=0.$i >> log; done",
                "workdir": "trial",
                "metrics": {"from": "file", "path": "log", "pattern": "acc=(?P<acc>\\S+)"},
            },
        }
        self.run_spec(spec)
        self.assertEqual(self.results()[0]["best"], {"step": 3, "acc": 0.3})

    def test_goal_stops_the_trial_as_completed(self):
        spec = {
            "metric": "acc",
            "stop": {"acc": 0.5},
            "trial": {"shell": "i=0; while :; do i=$((i+1)); muster report acc=0.$i; done", "grace": "200ms"},
        }
        self.run_spec(spec, timeout=30)
        trial = self.results()[0]
        self.assertEqual(trial["state"], "Completed")
        self.assertEqual(trial["best"]["acc"], 0.5)

    def test_non_finite_metrics_are_never_best(self):
        spec = {
            "metric": "loss",
            "mode": "min",
            "trial": {"shell": "muster report loss={x}"},
            "space": {"x": {"grid": ["nan", "-inf", "5"]}},
        }
        result = self.run_spec(spec)
        self.assertIn("best trial 00002", result.stdout)

    def test_missing_objective_is_told_once_a_trial(self):
        spec = {
            "metric": "accuracy",
            "trial": {"shell": "muster report acc=1; muster report acc=2"},
        }
        result = self.run_spec(spec)
        told = [line for line in result.stdout.splitlines() if "warning" in line]
        self.assertEqual(len(told), 1, result.stdout)
        self.assertIn("acc", told[0])


class SignalsTest(CliCase):
    def begin(self, extra="", **trial):
        (self.dir / "pids").mkdir()
        script = self.write("hold.sh", extra + HOLD)
        spec = {
            "num_samples": 4,
            "trial": {"command": ["/bin/sh", str(script)], "grace": "5s", **trial},
        }
        run = self.start("run", self.spec(spec), "--node-resources", "cpu=2", "--plain")
        wait_until(lambda: len(list((self.dir / "pids").iterdir())) == 2, "two trials to be up")
        return run

    def test_interrupt_stops_cleanly_and_the_run_can_go_on(self):
        run = self.begin()
        self.stop(run)
        out, err = run.communicate(timeout=30)
        self.assertEqual(run.returncode, 4, out + err)
        self.assertIn("sweep.yaml --node-resources cpu=2` goes on with it", err)
        self.assert_nothing_left()

        (self.dir / "go").touch()
        again = self.muster("run", self.dir / "sweep.yaml", "--node-resources", "cpu=2")
        self.assertEqual(again.returncode, 0, again.stdout + again.stderr)
        self.assertEqual([trial["state"] for trial in self.results()], ["Completed"] * 4)

    def test_second_interrupt_ends_at_once(self):
        run = self.begin(extra="trap '' TERM\n", **{"grace": "60s"})
        self.stop(run)
        wait_until(lambda: self.live().get("counts", {}).get("stopping") == 2, "both to be stopping")
        self.stop(run)
        out, err = run.communicate(timeout=20)
        self.assertEqual(run.returncode, 4, out + err)
        self.assert_nothing_left()

    def test_termination_leaves_an_experiment_to_go_on_with(self):
        run = self.begin()
        self.stop(run, signal.SIGTERM)
        out, err = run.communicate(timeout=30)
        self.assertEqual(run.returncode, 75, out + err)
        self.assertEqual({trial["state"] for trial in self.results()}, {"Pending"})
        self.assert_nothing_left()

    def test_killed_muster_leaves_nothing_behind_and_the_run_goes_on(self):
        run = self.begin()
        run.kill()
        run.communicate()
        wait_until(
            lambda: not processes_with(f"MUSTER_TEST_MARK={self.dir}"),
            "every process of the run to be gone",
        )

        (self.dir / "go").touch()
        again = self.muster("run", self.dir / "sweep.yaml", "--node-resources", "cpu=2")
        self.assertEqual(again.returncode, 0, again.stdout + again.stderr)
        self.assertEqual([trial["state"] for trial in self.results()], ["Completed"] * 4)
        self.assert_nothing_left()

    def test_run_in_which_nothing_works_ends_and_says_why(self):
        shell = "echo starting; echo 'no such dataset' >&2; exit 3"
        spec = self.spec({"trial": {"shell": shell}, "num_samples": 100})
        ended = self.muster("run", spec, "--node-resources", "cpu=2", "--plain")
        kept_going = self.muster("run", spec, "--node-resources", "cpu=2", "--keep-going")

        self.assertEqual(ended.returncode, 1, ended.stdout + ended.stderr)
        # Those that ran when the eighth failed may fail as well.
        self.assertRegex(ended.stderr, "nothing succeeds: the first (8|9|10) trials all failed")
        self.assertIn("exit code 3: starting\nno such dataset", ended.stderr)
        self.assertRegex(ended.stdout, "9[0-2] waiting, (8|9|10) failed")
        self.assertEqual(kept_going.returncode, 1, kept_going.stdout)
        self.assertIn("100 trials: 100 failed", kept_going.stdout)

    def test_reader_that_stops_reading_stops_nothing(self):
        # A note of each trial: far more than a pipe holds.
        shell = "head -c 3000 /dev/zero | tr '\\0' 'e'; exit 1"
        spec = {"trial": {"shell": shell}, "num_samples": 200}
        reader, writer = os.pipe()
        process = subprocess.Popen(
            [MUSTER, "run", self.spec(spec), "--keep-going"],
            cwd=self.dir,
            env=self.env,
            stdout=writer,
        )
        self.started.append(process)
        os.close(writer)
        wait_until(
            lambda: self.live().get("counts", {}).get("failed", 0) == 200, "every trial to end"
        )
        with open(reader, encoding="utf-8") as text:
            said = text.read()
        self.assertEqual(process.wait(timeout=60), 1)
        self.assertIn("200 trials: 200 failed\neverything is in", said)

    def test_second_run_of_the_same_experiment_is_refused(self):
        run = self.begin()
        second = self.muster("run", self.dir / "sweep.yaml", "--node-resources", "cpu=2")
        self.assertEqual(second.returncode, 2, second.stdout + second.stderr)
        self.assertIn(str(run.pid), second.stderr)
        (self.dir / "go").touch()
        run.communicate(timeout=30)
        self.assertEqual(run.returncode, 0)


if __name__ == "__main__":
    main()
