# SPDX-License-Identifier: Apache-2.0
"""Going on with an experiment: nothing that ended runs again, nothing that waits is lost."""

import collections
import json
import os
import signal

from cli_case import CliCase, main, processes_with, wait_until

NODE = ["--node-resources", "cpu=2", "--plain"]


class ContinueTest(CliCase):
    def lines(self, name):
        path = self.dir / name
        return path.read_text().split() if path.exists() else []

    def test_grid_of_450_stopped_after_50_ends_with_450_different_configs(self):
        spec = {
            "trial": {"shell": "echo $MUSTER_TRIAL_ID >> ran; sleep 0.01", "grace": "1s"},
            "space": {"a": {"grid": list(range(9))}, "b": {"grid": list(range(50))}},
        }
        node = ["--node-resources", "cpu=4", "--plain"]
        run = self.start("run", self.spec(spec), *node)
        wait_until(lambda: len(self.lines("ran")) >= 50, "fifty trials")
        self.stop(run)
        run.communicate(timeout=30)
        self.assertEqual(run.returncode, 4)
        ended = [trial["trial"] for trial in self.results() if trial["state"] == "Completed"]
        self.assertGreaterEqual(len(ended), 46)
        self.assertLess(len(ended), 450)

        again = self.muster("run", self.dir / "sweep.yaml", *node)

        self.assertEqual(again.returncode, 0, again.stdout + again.stderr)
        trials = self.results()
        self.assertEqual({trial["state"] for trial in trials}, {"Completed"})
        configs = {json.dumps(trial["config"]) for trial in trials}
        self.assertEqual((len(trials), len(configs)), (450, 450))
        ran = collections.Counter(self.lines("ran"))
        self.assertEqual([trial for trial in ended if ran[trial] != 1], [])

    def test_failed_trials_stay_failed_unless_they_are_to_be_retried(self):
        spec = {
            "num_samples": 3,
            "trial": {"shell": "muster report x=1; [ $MUSTER_TRIAL_ID != 00001 ] || [ -e mended ]"},
        }
        self.run_spec(spec, "--node-resources", "cpu=1", expect=1)

        again = self.muster("run", self.dir / "sweep.yaml", "--node-resources", "cpu=1")
        self.assertEqual(again.returncode, 1, again.stdout + again.stderr)
        self.assertEqual([trial["attempts"] for trial in self.results()], [1, 1, 1])

        (self.dir / "mended").touch()
        retried = self.muster(
            "run", self.dir / "sweep.yaml", "--node-resources", "cpu=1", "--retry-failed"
        )
        self.assertEqual(retried.returncode, 0, retried.stdout + retried.stderr)
        trials = self.results()
        self.assertEqual([trial["state"] for trial in trials], ["Completed"] * 3)
        self.assertEqual([trial["attempts"] for trial in trials], [1, 2, 1])

    def test_more_samples_may_be_asked_for_later(self):
        spec = {"num_samples": 2, "seed": 5, "trial": {"command": ["/bin/true"]}}
        spec["space"] = {"x": {"uniform": [0, 1]}}
        self.run_spec(spec)
        first = [trial["config"] for trial in self.results()]

        self.run_spec(dict(spec, num_samples=5))

        trials = self.results()
        self.assertEqual(len(trials), 5)
        self.assertEqual([trial["config"] for trial in trials][:2], first)

    def test_states_as_they_were_and_only_what_is_unfinished_runs(self):
        """Completed, Running, Failed, Pending; each attempt tells two results."""
        spec = {
            "space": {"a": {"grid": [0, 1, 2, 3]}},
            "trial": {
                "shell": "echo x=1; [ {a} != 2 ] || [ -e mended ] || exit 1; echo x=2; "
                "[ {a} != 1 ] || [ -e go ] || exec sleep 60",
                "metrics": {"from": "stdout", "pattern": r"x=(?P<x>\d+)"},
            },
        }
        order = ["--set", "max_concurrent_trials=1"]
        run = self.start("run", self.spec(spec), *NODE, *order)
        wait_until(
            lambda: [trial["step"] for trial in self.live().get("running", [])] == [2],
            "the second trial's last report",
        )
        run.kill()
        run.wait()
        self.assert_nothing_left()
        states = [trial["state"] for trial in self.results()]
        self.assertEqual(states[0], "Completed")
        self.assertEqual(set(states[1:]), {"Pending"})
        (self.dir / "go").touch()

        again = self.muster("run", self.dir / "sweep.yaml", *NODE, *order)

        self.assertEqual(again.returncode, 1, again.stdout + again.stderr)
        trials = self.results()
        states = [trial["state"] for trial in trials]
        self.assertEqual(states, ["Completed", "Completed", "Failed", "Completed"])
        self.assertEqual([trial["attempts"] for trial in trials], [1, 2, 1, 1])

        (self.dir / "mended").touch()
        retried = self.muster("run", self.dir / "sweep.yaml", *NODE, "--retry-failed")
        self.assertEqual(retried.returncode, 0, retried.stdout + retried.stderr)
        self.assertEqual([trial["attempts"] for trial in self.results()], [1, 2, 2, 1])

    def undisturbed(self, trials=30):
        return {
            "num_samples": trials,
            "seed": 3,
            "space": {"x": {"uniform": [0, 1]}},
            "trial": {
                "shell": "echo $MUSTER_TRIAL_ID >> began; sleep 0.1; echo y={x}; "
                "echo $MUSTER_TRIAL_ID >> ended",
                "metrics": {"from": "stdout", "pattern": r"y=(?P<y>\S+)"},
                "output": "discard",
            },
        }

    def test_killed_again_and_again_it_comes_to_what_an_undisturbed_run_comes_to(self):
        self.run_spec(dict(self.undisturbed(), name="quiet"), *NODE)
        quiet = [(trial["config"], trial["last"]["y"]) for trial in self.results("quiet")]
        for ended in (4, 9, 15, 22):
            run = self.start("run", self.spec(self.undisturbed()), *NODE)
            wait_until(
                lambda ended=ended: self.live().get("counts", {}).get("completed", 0) >= ended,
                f"{ended} trials to end",
            )
            run.kill()
            run.wait()

        again = self.muster("run", self.dir / "sweep.yaml", *NODE)

        self.assertEqual(again.returncode, 0, again.stdout + again.stderr)
        trials = self.results()
        self.assertEqual([(trial["config"], trial["last"]["y"]) for trial in trials], quiet)
        self.assertEqual({trial["state"] for trial in trials}, {"Completed"})

    def test_everything_killed_at_once_leaves_no_trial_that_runs_twice(self):
        spec = {"trial": {"shell": "echo $$ >> ran; [ -e go ] || exec sleep 300", "grace": "1s"}}
        run = self.start("run", self.spec(spec), *NODE)
        wait_until(lambda: self.lines("ran"), "the trial")
        trial = int(self.lines("ran")[0])
        # Head, spawner and keeper, but not the trial.
        for pid in processes_with(f"MUSTER_TEST_MARK={self.dir}"):
            if pid != trial:
                try:
                    os.kill(pid, signal.SIGSTOP)
                except ProcessLookupError:
                    pass
        for pid in processes_with(f"MUSTER_TEST_MARK={self.dir}"):
            if pid != trial:
                os.kill(pid, signal.SIGKILL)
        run.wait()
        (self.dir / "go").touch()

        again = self.muster("run", self.dir / "sweep.yaml", *NODE)

        self.assertEqual(again.returncode, 0, again.stdout + again.stderr)
        self.assertEqual(self.results()[0]["attempts"], 2)
        self.assert_nothing_left()

    def test_a_second_run_is_told_who_holds_the_directory(self):
        run = self.start("run", self.spec({"trial": {"shell": "exec sleep 60", "grace": "1s"}}))
        self.wait_for_states(1, 0)

        second = self.muster("run", self.dir / "sweep.yaml")

        self.assertEqual(second.returncode, 2)
        self.assertIn(f"is held by another run: process {run.pid} on ", second.stderr)
        self.assertIn(f"`kill -INT {run.pid}` ends it", second.stderr)
        self.stop(run)
        self.assertEqual(run.wait(timeout=30), 4)

    def test_of_two_heads_that_start_at_once_one_wins(self):
        spec = self.spec({"trial": {"shell": "echo x >> ran; sleep 0.3", "grace": "1s"}})
        for _ in range(8):
            runs = [self.start("run", spec) for _ in range(3)]
            codes = []
            for run in runs:
                run.communicate(timeout=60)
                codes.append(run.returncode)
            # Who comes after the winner's end finds a finished experiment.
            self.assertIn(0, codes)
            self.assertLessEqual(set(codes), {0, 2})
            self.assertEqual(len(self.lines("ran")), 1)
            self.remove("results", "ran")

    def remove(self, *names):
        for name in names:
            path = self.dir / name
            path.rename(self.dir / f"old-{name}-{len(list(self.dir.iterdir()))}")

    def owner_elsewhere(self, silent):
        owner = self.dir / "results/sweep/owner"
        self.write(owner, '{"id": "1", "host": "elsewhere", "pid": 1, "started": 5}')
        at = os.stat(owner).st_mtime - silent
        os.utime(owner, (at, at))

    def test_an_owner_on_another_host_that_is_silent_is_waited_for(self):
        spec = self.spec({"trial": {"command": ["true"]}})
        self.owner_elsewhere(silent=53)

        refused = self.muster("run", spec, "--no-wait")
        waited = self.muster("run", spec, "--plain")

        self.assertEqual(refused.returncode, 2)
        self.assertIn("process 1 on elsewhere", refused.stderr)
        self.assertEqual(waited.returncode, 0, waited.stdout + waited.stderr)
        self.assertIn("to see whether it is dead", waited.stdout + waited.stderr)

    def test_old_agents_are_waited_for_until_their_lease_is_over(self):
        spec = self.spec({"trial": {"command": ["true"]}})
        self.owner_elsewhere(silent=66)
        agent = {"rank": 1, "node": "n2", "host": "n2", "boot": "b", "pid": 7}
        team = {"token": str(self.dir / "t"), "lease_s": 60, "agents": [agent]}
        self.write("results/sweep/agents.json", json.dumps(team))

        run = self.muster("run", spec, "--plain")

        self.assertEqual(run.returncode, 0, run.stdout + run.stderr)
        self.assertIn("lease is over: n2; waiting for ", run.stdout + run.stderr)
        self.assertFalse((self.dir / "results/sweep/agents.json").exists())

    def test_a_wait_can_be_ended(self):
        spec = self.spec({"trial": {"command": ["true"]}})
        for number, code in ((signal.SIGINT, 4), (signal.SIGTERM, 75)):
            self.owner_elsewhere(silent=5)
            run = self.start("run", spec, "--plain")
            wait_until(lambda: (self.dir / "results/sweep/owner").exists(), "the run's look")
            self.stop_when_listening(run, number)
            self.assertEqual(run.wait(timeout=30), code)

    def stop_when_listening(self, run, number):
        """A signal is taken in order once it is blocked."""

        def listens():
            with open(f"/proc/{run.pid}/status", encoding="utf-8") as file:
                status = file.read()
            blocked = int(status.split("SigBlk:")[1].split()[0], 16)
            return blocked >> (number - 1) & 1

        wait_until(listens, "the run to listen to signals")
        self.stop(run, number)


class RunAgainTest(CliCase):
    """Every rule of running the same experiment again."""

    SPEC = {
        "num_samples": 2,
        "seed": 5,
        "metric": "x",
        "mode": "max",
        "space": {"a": {"uniform": [0, 1]}},
        "trial": {
            "shell": "echo x={a}; [ -e go ] || exec sleep 60",
            "metrics": {"from": "stdout", "pattern": r"x=(?P<x>\S+)"},
            "grace": "1s",
        },
    }

    def begin_and_cancel(self):
        run = self.start("run", self.spec(self.SPEC), *NODE)
        wait_until(lambda: self.live().get("counts", {}).get("running") == 2, "two trials")
        self.stop(run)
        self.assertEqual(run.wait(timeout=30), 4)
        (self.dir / "go").touch()

    def test_a_finished_one_prints_its_results(self):
        (self.dir / "go").touch()
        self.run_spec(self.SPEC, *NODE)
        before = self.results()

        again = self.run_spec(self.SPEC, *NODE)

        self.assertIn("finished before; nothing was run", again.stderr)
        self.assertIn("2 trials: 2 completed", again.stdout)
        self.assertEqual(self.results(), before)

    def test_what_would_change_the_results_is_refused_by_key(self):
        self.begin_and_cancel()
        changes = {
            "space": {"a": {"uniform": [0, 2]}},
            "seed": 6,
            "metric": "y",
            "mode": "min",
            "search": {"points": [{"a": 0.5}]},
        }
        for key, value in changes.items():
            with self.subTest(key=key):
                refused = self.muster("run", self.spec(dict(self.SPEC, **{key: value})), *NODE)
                self.assertEqual(refused.returncode, 2, refused.stdout + refused.stderr)
                self.assertIn(key, refused.stderr)
                self.assertIn("--fresh", refused.stderr)
        self.assertEqual({trial["state"] for trial in self.results()}, {"Cancelled"})

    def test_limits_failures_and_budgets_may_change(self):
        self.begin_and_cancel()
        changed = dict(
            self.SPEC,
            num_samples=3,
            max_concurrent_trials=1,
            time_budget="1h",
            failures={"max_failures": 3},
            stop={"step": 100},
            trial=dict(self.SPEC["trial"], time_limit="5m", report_timeout="4m", grace="2s"),
        )

        self.run_spec(changed, *NODE)

        trials = self.results()
        self.assertEqual([trial["state"] for trial in trials], ["Completed"] * 3)
        self.assertEqual([trial["attempts"] for trial in trials], [2, 2, 1])

    def test_fresh_begins_beside_what_is_there(self):
        (self.dir / "go").touch()
        self.run_spec(self.SPEC, *NODE)

        self.run_spec(dict(self.SPEC, seed=6), *NODE, "--fresh")

        self.assertEqual(len(self.results("sweep")), 2)
        self.assertEqual(len(self.results("sweep-2")), 2)
        self.assertNotEqual(self.results("sweep")[0]["config"], self.results("sweep-2")[0]["config"])


if __name__ == "__main__":
    main()
