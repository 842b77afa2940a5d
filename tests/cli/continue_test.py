# SPDX-License-Identifier: Apache-2.0
"""Going on with an experiment: nothing that ended runs again, nothing that waits is lost."""

import collections
import json

from cli_case import CliCase, main, wait_until


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


if __name__ == "__main__":
    main()
