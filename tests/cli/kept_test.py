# SPDX-License-Identifier: Apache-2.0
"""An experiment that an earlier version left goes on: tests/data/README.md says what is in it."""

import collections
import pathlib
import shutil

from cli_case import CliCase, main

DATA = pathlib.Path(__file__).resolve().parent.parent / "data"


class KeptTest(CliCase):
    def test_journal_of_format_1(self):
        shutil.copytree(DATA / "journal-v1", self.dir / "results/kept")
        shutil.copy(DATA / "journal-v1/sweep.yaml", self.dir)
        condensed = (self.dir / "results/kept/journal/state-000001.log").read_text().split("\n", 1)
        self.assertIn('"lines":', condensed[0])

        before = self.results("kept")
        states = collections.Counter(trial["state"] for trial in before)
        self.assertEqual(states, {"Completed": 83, "Pending": 13})
        self.assertEqual([trial["attempts"] for trial in before[:80]], [5] * 80)
        self.assertEqual([trial["failures"] for trial in before[:80]], [4] * 80)
        self.assertEqual(
            before[0]["config"], {"a": 0, "lr": 0.08774976414858834, "text": "'nan"}
        )
        self.assertEqual(before[0]["last"], {"step": 2.0, "y": 0.5})
        self.assertEqual((before[89]["attempts"], before[89]["failures"]), (3, 3))
        self.assertEqual(before[89]["config"]["text"], "nan")
        self.assertEqual((before[90]["attempts"], before[90]["failures"]), (3, 3))
        self.assertEqual((before[91]["last"], before[91]["best"]), ({"step": 2.0, "y": "-inf"}, None))
        self.assertEqual((before[93]["attempts"], before[93]["last"]["step"]), (3, 4.0))
        self.assertEqual((before[94]["attempts"], before[94]["last"]["step"]), (2, 2.0))
        self.assertEqual((before[95]["attempts"], before[95]["last"]["step"]), (1, 1.0))

        (self.dir / "go").touch()
        (self.dir / "tries").mkdir()
        for trial in range(80, 90):
            (self.dir / f"tries/{trial:05}").write_text("4")
        run = self.muster("run", "sweep.yaml", "--node-resources", "cpu=2", "--plain")

        # Trial 90 fails whatever happens.
        self.assertEqual(run.returncode, 1, run.stdout + run.stderr)
        self.assertNotIn("journal:", run.stdout + run.stderr)
        after = self.results("kept")
        self.assertEqual(after[:80], before[:80])
        self.assertEqual(after[91:94], before[91:94])
        states = collections.Counter(trial["state"] for trial in after)
        self.assertEqual(states, {"Completed": 99, "Failed": 1})
        self.assertEqual((after[90]["attempts"], after[90]["failures"]), (6, 6))
        self.assertIn("exit code 3", after[90]["reason"])
        self.assertEqual((after[94]["attempts"], after[94]["last"]), (3, {"step": 4.0, "y": 94.5}))
        self.assertEqual((after[95]["attempts"], after[95]["last"]), (2, {"step": 3.0, "y": 95.5}))
        self.assertEqual([trial["last"]["y"] for trial in after[96:]], [96.5, 97.5, 98.5, 99.5])

    def test_checkpoints_in_a_journal_of_format_1(self):
        kept = self.dir / "results/kept_checkpoints"
        shutil.copytree(DATA / "journal-v1-checkpoints", kept)
        shutil.copy(DATA / "journal-v1-checkpoints/sweep.yaml", self.dir)

        before = self.results("kept_checkpoints")
        done = ["Completed"] * 2 + ["Failed", "Completed", "Pending"] + ["Completed"] * 2
        self.assertEqual([trial["state"] for trial in before], done)
        self.assertEqual([trial["attempts"] for trial in before], [1, 2, 2, 2, 2, 1, 1])
        self.assertEqual([trial["last"]["step"] for trial in before], [6, 6, 5, 6, 6, 6, 6])
        self.assertEqual(before[2]["reason"], "exit code 4: broken for ever")

        # Trial 4 finds its checkpoint of step 6, and has nothing left to do.
        (self.dir / "go").touch()
        run = self.muster("run", "sweep.yaml", "--node-resources", "cpu=2", "--plain")
        self.assertEqual(run.returncode, 1, run.stdout + run.stderr)
        self.assertNotIn("journal:", run.stdout + run.stderr)
        after = self.results("kept_checkpoints")
        self.assertEqual(after[:4] + after[5:], before[:4] + before[5:])
        self.assertEqual((after[4]["state"], after[4]["attempts"]), ("Completed", 3))
        self.assertEqual(after[4]["last"], before[4]["last"])

        # Trial 2 goes on from step 5, and fails in step 6.
        run = self.muster(
            "run", "sweep.yaml", "--retry", "failed", "--node-resources", "cpu=2", "--plain"
        )
        self.assertEqual(run.returncode, 1, run.stdout + run.stderr)
        failed = self.results("kept_checkpoints")[2]
        self.assertEqual((failed["attempts"], failed["last"]), (3, {"step": 6.0, "y": 2.6}))
        checkpoints = sorted(path.name for path in (kept / "00002/checkpoints").iterdir())
        self.assertEqual(checkpoints, ["checkpoint_000005", "checkpoint_000006"])


if __name__ == "__main__":
    main()
