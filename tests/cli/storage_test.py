# SPDX-License-Identifier: Apache-2.0
"""Storage that is full, or gone for a while, or for good: trials go on, it is said once and once
again when it is over, and nothing that was told is lost."""

import os
import shutil
import stat
import subprocess
import unittest

from cli_case import MUSTER, CliCase, main, wait_until

# Each waits for the file `go` outside of the storage, and then tells ten times its number.
TRIAL = "echo $MUSTER_TRIAL_ID >> began; while [ ! -e go ]; do sleep 0.02; done; echo x={a}0"
METRICS = {"from": "stdout", "pattern": r"x=(?P<x>\d+)"}
SPEC = {
    "space": {"a": {"grid": [1, 2, 3, 4, 5, 6]}},
    "trial": {"shell": TRIAL, "metrics": METRICS, "grace": "1s", "output": "discard"},
}
NODE = ["--node-resources", "cpu=2", "--plain"]


def may_mount():
    return subprocess.run(["unshare", "-m", "true"], capture_output=True, check=False).returncode == 0


class StorageTest(CliCase):
    def setUp(self):
        super().setUp()
        self.said = self.dir / "said"

    def begin(self, *prefix, spec=None):
        """Starts a run and waits until two of its trials run."""
        with open(self.said, "w", encoding="utf-8") as said:
            run = subprocess.Popen(
                [*prefix, MUSTER, "run", str(self.spec(spec or SPEC)), *NODE],
                cwd=self.dir,
                env=self.env,
                stdout=said,
                stderr=said,
            )
        self.started.append(run)
        wait_until(lambda: len(self.began()) == 2, f"two trials; {self.said.read_text()}")
        return run

    def began(self):
        path = self.dir / "began"
        return path.read_text().split() if path.exists() else []

    def wait_said(self, text):
        wait_until(lambda: text in self.said.read_text(), f"{text!r} in {self.said.read_text()!r}")

    def test_storage_that_goes_away_and_comes_back(self):
        """The trials' own output is written there as well: none fails for it."""
        spec = dict(SPEC, trial=dict(SPEC["trial"], trial_dir="always", output="file"))
        run = self.begin(spec=spec)
        (self.dir / "results").rename(self.dir / "away")
        self.wait_said("running trials go on, none is started")
        (self.dir / "go").touch()
        # Both say that they could not store their output when they end.
        wait_until(lambda: self.said.read_text().count("output from here on is lost") == 2, "ends")
        self.assertEqual(len(self.began()), 2)
        self.assertFalse((self.dir / "results").exists())
        (self.dir / "away").rename(self.dir / "results")

        self.assertEqual(run.wait(timeout=60), 0, self.said.read_text())

        trials = self.results()
        self.assertEqual([trial["state"] for trial in trials], ["Completed"] * 6)
        self.assertEqual([trial["last"]["x"] for trial in trials], [10, 20, 30, 40, 50, 60])
        self.assertEqual([trial["attempts"] for trial in trials], [1] * 6)
        self.assertEqual(self.said.read_text().count("none is started"), 1)
        self.assertEqual(self.said.read_text().count("storage is written again"), 1)

    def hang(self):
        """Whoever opens a pipe to write waits for a reader, as for a file server that is gone."""
        path = self.dir / "results/sweep/live.json.new"

        def is_made():
            try:
                os.mkfifo(path)
            except FileExistsError:
                pass
            try:
                return stat.S_ISFIFO(os.stat(path).st_mode)
            except FileNotFoundError:
                return False

        wait_until(is_made, "the pipe")
        return path

    def test_a_file_system_that_hangs_for_a_while(self):
        run = self.begin()
        pipe = self.hang()
        self.wait_said("the file system does not answer; running trials go on")
        (self.dir / "go").touch()
        journal = self.dir / "results/sweep/journal/state-000001.log"
        wait_until(lambda: journal.read_text().count('"trial_ended"') == 2, "two ends")
        self.assertEqual(len(self.began()), 2)

        with open(pipe, "rb") as reader:
            reader.read()

        self.assertEqual(run.wait(timeout=60), 0, self.said.read_text())
        self.assertEqual([trial["state"] for trial in self.results()], ["Completed"] * 6)
        self.assertEqual(self.said.read_text().count("storage is written again"), 1)

    def test_a_file_system_that_hangs_for_good_is_an_error_at_the_end(self):
        run = self.begin()
        self.hang()
        self.wait_said("the file system does not answer; running trials go on")

        self.stop(run)

        self.assertEqual(run.wait(timeout=60), 5, self.said.read_text())
        self.assertIn("the file system does not answer", self.said.read_text().splitlines()[-1])
        self.assert_nothing_left()

    def test_storage_that_never_comes_back_is_an_error_at_the_end(self):
        run = self.begin()
        shutil.rmtree(self.dir / "results")
        self.wait_said("running trials go on, none is started")
        self.assertIsNone(run.poll())

        self.stop(run)

        self.assertEqual(run.wait(timeout=60), 5, self.said.read_text())
        self.assertIn("is not on disk", self.said.read_text())
        self.assert_nothing_left()

    @unittest.skipUnless(may_mount(), "may not mount anything here")
    def test_a_full_disk_that_is_cleared(self):
        (self.dir / "results").mkdir()
        mount = f"mount -t tmpfs -o size=2m tmpfs {self.dir}/results && exec \"$@\""
        run = self.begin("unshare", "-m", "sh", "-c", mount, "sh")
        inside = f"/proc/{run.pid}/root{self.dir}/results"
        filler = f"{inside}/filler"
        self.fill(filler)
        (self.dir / "go").touch()
        self.wait_said("No space left on device")
        self.wait_said("running trials go on, none is started")

        # Kept in sight after the run, when nobody else sees its storage any more.
        os.remove(filler)
        self.wait_said("storage is written again")
        saved = self.dir / "saved"
        wait_until(lambda: self.save(inside, saved, run), "the end of the run")

        self.assertEqual(run.wait(timeout=60), 0, self.said.read_text())
        text = self.said.read_text()
        self.assertIn("6 trials: 6 completed", text)
        self.assertEqual(text.count("storage is written again"), 1, text)

    def fill(self, path):
        with open(path, "wb", buffering=0) as filler:
            for size in (65536, 4096, 512, 1):
                try:
                    while filler.write(b"x" * size):
                        pass
                except OSError:
                    pass

    def save(self, inside, saved, run):
        try:
            shutil.copytree(f"{inside}/sweep", saved, dirs_exist_ok=True)
        except (OSError, shutil.Error):
            pass
        return run.poll() is not None

    @unittest.skipUnless(may_mount(), "may not mount anything here")
    def test_a_full_disk_that_stays_full_is_an_error_at_the_end(self):
        (self.dir / "results").mkdir()
        mount = f"mount -t tmpfs -o size=2m tmpfs {self.dir}/results && exec \"$@\""
        run = self.begin("unshare", "-m", "sh", "-c", mount, "sh")
        self.fill(f"/proc/{run.pid}/root{self.dir}/results/filler")
        (self.dir / "go").touch()
        self.wait_said("No space left on device")

        self.stop(run)

        self.assertEqual(run.wait(timeout=60), 5, self.said.read_text())
        self.assertIn("is not on disk", self.said.read_text())
        self.assert_nothing_left()


if __name__ == "__main__":
    main()
