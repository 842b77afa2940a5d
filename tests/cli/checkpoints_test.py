# SPDX-License-Identifier: Apache-2.0
"""Checkpoints end to end: saved, kept, resumed from, whatever is killed in between."""

import os
import pathlib
import signal

from cli_case import CliCase, main, processes_with, wait_until

NODE = ["--node-resources", "cpu=2", "--plain"]

# A trial of `steps` steps. After each it reports and saves how far it has come; where it begins is
# noted in the file `begun`.
TRIAL = """
at=0
[ -z "$MUSTER_CHECKPOINT" ] || at=$(cat "$MUSTER_CHECKPOINT/at")
echo $MUSTER_TRIAL_ID $at >> begun
while [ $at -lt {steps} ]; do
    at=$((at + 1))
    muster report step=$at x=$at || exit 9
    mkdir -p "$MUSTER_CHECKPOINT_DIR/new" && echo $at > "$MUSTER_CHECKPOINT_DIR/new/at"
    muster checkpoint "$MUSTER_CHECKPOINT_DIR/new" > /dev/null || exit 9
    {after}
done
"""


def trial(steps, after=":"):
    # A brace of the shell is two in the spec.
    after = after.replace("{", "{{").replace("}", "}}")
    return TRIAL.replace("{steps}", str(steps)).replace("{after}", after)


class CheckpointsTest(CliCase):
    def begun(self):
        """Where each attempt of each trial began, in order."""
        path = self.dir / "begun"
        starts = {}
        for line in path.read_text().splitlines() if path.exists() else []:
            name, at = line.split()
            starts.setdefault(name, []).append(int(at))
        return starts

    def kept(self, trial_name="00000", name="sweep"):
        """What lies in a trial's checkpoint directory: names, and how far each had come."""
        directory = self.dir / "results" / name / trial_name / "checkpoints"
        return {entry.name: (entry / "at").read_text().strip() for entry in sorted(directory.iterdir())}

    def test_a_trial_that_fails_goes_on_from_its_latest_checkpoint(self):
        fails = "[ $at != 3 ] || [ -e failed-once ] || { touch failed-once; exit 1; }"
        self.run_spec(
            {"trial": {"shell": trial(5, fails)}, "failures": {"max_failures": 1}}, *NODE
        )

        self.assertEqual(self.begun(), {"00000": [0, 3]})
        self.assertEqual(self.results()[0]["state"], "Completed")
        self.assertEqual(self.results()[0]["reports"], 5)
        self.assertEqual(self.kept(), {"checkpoint_000004": "4", "checkpoint_000005": "5"})

    def test_of_ten_the_last_two_are_kept(self):
        self.run_spec({"trial": {"shell": trial(10)}, "checkpoints": {"keep": 2}}, *NODE)

        self.assertEqual(self.kept(), {"checkpoint_000009": "9", "checkpoint_000010": "10"})

    def test_with_a_score_the_best_two_and_the_latest_are_kept(self):
        # The best are those of the steps 4 and 5.
        shell = trial(8).replace("x=$at", "x=$at score=$(( $at < 6 ? $at : -$at ))")
        self.run_spec(
            {
                "trial": {"shell": shell},
                "checkpoints": {"keep": 2, "score": "score", "mode": "max"},
            },
            *NODE,
        )

        self.assertEqual(sorted(self.kept().values()), ["4", "5", "8"])

    def test_zero_keeps_all(self):
        self.run_spec({"trial": {"shell": trial(4)}, "checkpoints": {"keep": 0}}, *NODE)

        self.assertEqual(sorted(self.kept().values()), ["1", "2", "3", "4"])

    def test_the_budget_takes_from_ended_trials_first(self):
        big = 'head -c 300000 /dev/zero > "$MUSTER_CHECKPOINT_DIR/new/weights"; muster checkpoint'
        self.run_spec(
            {
                "num_samples": 4,
                "max_concurrent_trials": 1,
                "trial": {"shell": trial(3).replace("muster checkpoint", big)},
                "checkpoints": {"keep": 1, "budget": "700kB"},
            },
            *NODE,
        )

        trials = self.dir / "results" / "sweep"
        left = sorted(path.parent.parent.name for path in trials.glob("*/checkpoints/checkpoint_*"))
        self.assertEqual(len(left), 2, left)
        self.assertIn("00003", left)

    def test_what_a_killed_trial_left_behind_is_removed_and_never_resumed(self):
        # It is killed while a new checkpoint is half written, under every name that it may have.
        half = (
            '[ $at != 2 ] || [ -e killed ] || { touch killed; mkdir "$MUSTER_CHECKPOINT_DIR/.new-x"; '
            'mkdir "$MUSTER_CHECKPOINT_DIR/half" "$MUSTER_CHECKPOINT_DIR/checkpoint_000009"; kill -9 $$; }'
        )
        self.run_spec(
            {"trial": {"shell": trial(4, half)}, "failures": {"max_failures": 1}}, *NODE
        )

        self.assertEqual(self.begun(), {"00000": [0, 2]})
        self.assertEqual(sorted(self.kept()), ["checkpoint_000003", "checkpoint_000004"])

    def test_everything_killed_at_any_moment_goes_on_from_what_was_safe(self):
        spec = self.spec(
            {"num_samples": 2, "trial": {"shell": trial(40, "echo $MUSTER_TRIAL_ID $at >> safe")}}
        )
        for kills in range(3):
            run = self.start("run", spec, *NODE, start_new_session=True)
            before = len(self.safe())
            wait_until(lambda: len(self.safe()) >= before + 6, "six more checkpoints")
            os.killpg(run.pid, signal.SIGKILL)
            run.communicate()
            mark = f"MUSTER_TEST_MARK={self.dir}"
            for pid in processes_with(mark):
                try:
                    os.kill(pid, signal.SIGKILL)
                except ProcessLookupError:
                    pass
            wait_until(lambda: not processes_with(mark), "every process to be gone")
            latest = {}
            for line in self.safe():
                name, at = line.split()
                latest[name] = int(at)
            again = self.begun()
            self.assertTrue(all(name in again for name in latest), kills)
            self.latest = latest

        result = self.muster("run", spec, *NODE)

        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
        self.assertEqual([each["state"] for each in self.results()], ["Completed"] * 2)
        self.assertEqual([each["reports"] for each in self.results()], [40, 40])
        for name, starts in self.begun().items():
            # What a trial was told is safe is where it goes on from, or after it.
            self.assertGreaterEqual(starts[-1], self.latest.get(name, 0), starts)
        for name in ("00000", "00001"):
            self.assertEqual(sorted(self.kept(name).values(), key=int)[-1], "40")
            self.assertTrue(all(each.startswith("checkpoint_") for each in self.kept(name)))

    def safe(self):
        path = self.dir / "safe"
        return path.read_text().splitlines() if path.exists() else []

    def test_retry_goes_on_from_the_checkpoint_or_from_nothing(self):
        # As in a table: trials 1 and 3 of four fail after one step; each attempt makes two steps.
        shell = (
            'at=0; [ -z "$MUSTER_CHECKPOINT" ] || at=$(cat "$MUSTER_CHECKPOINT/at"); '
            "echo $MUSTER_TRIAL_ID $at >> begun; "
            "for i in 1 2; do at=$((at + 1)); muster report x=$at step=$at; "
            'mkdir -p "$MUSTER_CHECKPOINT_DIR/new"; echo $at > "$MUSTER_CHECKPOINT_DIR/new/at"; '
            'muster checkpoint "$MUSTER_CHECKPOINT_DIR/new"; '
            "case $MUSTER_TRIAL_ID in *[13]) [ -e mended ] || exit 1;; esac; done"
        )
        spec = {"num_samples": 4, "trial": {"shell": shell}}
        for name, more, expected in (
            ("continued", [], [2, 3, 2, 3]),
            ("restarted", ["--restart"], [2, 2, 2, 2]),
        ):
            path = self.spec(spec, name)
            (self.dir / "mended").unlink(missing_ok=True)
            self.assertEqual(self.muster("run", path, *NODE).returncode, 1)
            (self.dir / "mended").touch()

            again = self.muster("run", path, *NODE, "--retry", "failed", *more)

            self.assertEqual(again.returncode, 0, again.stdout + again.stderr)
            self.assertEqual([each["reports"] for each in self.results(name)], expected)

    def test_node_storage_is_resumed_from_on_the_same_node(self):
        fails = "[ $at != 2 ] || [ -e failed-once ] || { touch failed-once; exit 1; }"
        place = self.dir / "scratch"
        self.run_spec(
            {
                "trial": {"shell": trial(3, fails)},
                "failures": {"max_failures": 1},
                "checkpoints": {"storage": "node", "path": str(place)},
            },
            *NODE,
        )

        self.assertEqual(self.begun(), {"00000": [0, 2]})
        found = sorted(path.name for path in place.glob(f"muster-{os.geteuid()}/sweep-*/*/00000/*"))
        self.assertEqual(found, ["checkpoint_000002", "checkpoint_000003"])
        self.assertFalse((self.dir / "results/sweep/00000/checkpoints").exists())

    def test_a_checkpoint_that_somebody_removed_gives_way_to_the_one_before(self):
        removes = (
            "[ $at != 3 ] || [ -e failed-once ] || { touch failed-once; "
            'rm -r "$MUSTER_CHECKPOINT_DIR/checkpoint_000003"; exit 1; }'
        )
        self.run_spec(
            {"trial": {"shell": trial(4, removes)}, "failures": {"max_failures": 1}}, *NODE
        )

        self.assertEqual(self.begun(), {"00000": [0, 2]})
        self.assertEqual(self.results()[0]["reports"], 4)

    def test_what_is_no_checkpoint_is_refused_with_a_reason(self):
        shell = "muster checkpoint nothing; echo $?; touch file; muster checkpoint file; echo $?"
        self.run_spec({"trial": {"shell": shell}}, *NODE)

        output = (self.dir / "results/sweep/00000/output").read_text()
        self.assertIn("cannot save 'nothing': No such file or directory", output)
        self.assertIn("cannot save 'file': a checkpoint is a directory", output)
        self.assertEqual(output.split().count("2"), 2)

    def test_not_under_muster_the_directory_stays(self):
        (self.dir / "model").mkdir()

        result = self.muster("checkpoint", "model", "--step", "3")

        self.assertEqual(result.returncode, 0)
        self.assertEqual(pathlib.Path(result.stdout.strip()), (self.dir / "model").resolve())
        self.assertIn("stays where it is", result.stderr)


if __name__ == "__main__":
    main()
