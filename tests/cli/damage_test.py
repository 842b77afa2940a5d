# SPDX-License-Identifier: Apache-2.0
"""The head is killed and its journal damaged: the next run starts, says what it skipped, and runs
to the end with the results of an undisturbed one."""

import random
import shutil

from cli_case import CliCase, main, wait_until

TRIALS = 12
SPEC = {
    "space": {"a": {"grid": list(range(1, TRIALS + 1))}},
    "trial": {
        "shell": "echo x={a}0; [ {a} -lt 9 ] || [ -e go ] || exec sleep 60; echo x={a}1",
        "metrics": {"from": "stdout", "pattern": r"x=(?P<x>\d+)"},
        "output": "discard",
        "grace": "1s",
    },
}
NODE = ["--node-resources", "cpu=2", "--plain"]
BLOCK = 4096
FLIPS = 12
CUTS = 40


class DamageTest(CliCase):
    def setUp(self):
        """An experiment whose head was killed when eight trials had ended and two ran."""
        super().setUp()
        run = self.start("run", self.spec(SPEC), *NODE)
        wait_until(lambda: self.live().get("counts", {}).get("completed") == 8, "eight trials")
        wait_until(lambda: "[1, 10]" in self.live_metrics(), "reports of the ninth and tenth")
        run.kill()
        run.wait()
        self.assert_nothing_left()
        (self.dir / "go").touch()
        (self.dir / "results/sweep").rename(self.dir / "killed")

    def live_metrics(self):
        seen = [trial.get("metrics") for trial in self.live().get("running", [])]
        return "[1, 10]" if len(seen) == 2 and all(seen) else ""

    def go_on(self, damage):
        """Damages a copy, continues it, and returns what the run said."""
        copy = self.dir / "results/sweep"
        shutil.rmtree(copy, ignore_errors=True)
        shutil.copytree(self.dir / "killed", copy)
        damage(copy / "journal")
        run = self.muster("run", self.dir / "sweep.yaml", *NODE)
        self.assertEqual(run.returncode, 0, run.stdout + run.stderr)
        trials = self.results()
        self.assertEqual([trial["config"]["a"] for trial in trials], list(range(1, TRIALS + 1)))
        self.assertEqual([trial["state"] for trial in trials], ["Completed"] * TRIALS)
        for trial in trials:
            last = {"step": trial["last"]["step"], "x": trial["last"]["x"]}
            self.assertEqual(last["x"], trial["config"]["a"] * 10 + 1, trial)
        return run.stdout + run.stderr

    def test_head_killed(self):
        said = self.go_on(lambda journal: None)

        self.assertNotIn("journal:", said)
        attempts = [trial["attempts"] for trial in self.results()]
        self.assertEqual(attempts, [1] * 8 + [2, 2, 1, 1])
        self.assertEqual([trial["last"]["step"] for trial in self.results()][:8], [2.0] * 8)

    def test_any_byte_of_the_tail_missing(self):
        for stem in ("state", "results"):
            content = (self.dir / f"killed/journal/{stem}-000001.log").read_bytes()
            begin = content.rindex(b"\n", 0, -1) + 1
            last = len(content) - begin
            step = max(last * 2 // CUTS, 1)
            for missing in sorted({*range(1, last + 1, step), 1, last - 1, last}):
                with self.subTest(stem=stem, missing=missing):

                    def cut(journal, stem=stem, kept=len(content) - missing, whole=content):
                        (journal / f"{stem}-000001.log").write_bytes(whole[:kept])

                    said = self.go_on(cut)
                    # Without its newline the record is whole; a record less leaves no trace.
                    if 1 < missing < last:
                        self.assertIn(f"journal: {stem}-000001.log", said)

    def test_blocks_of_zeros(self):
        for stem in ("state", "results"):
            size = (self.dir / f"killed/journal/{stem}-000001.log").stat().st_size
            for at in range(0, size, BLOCK):
                with self.subTest(stem=stem, at=at):

                    def zero(journal, stem=stem, at=at, size=size):
                        with open(journal / f"{stem}-000001.log", "r+b") as file:
                            file.seek(at)
                            file.write(b"\0" * min(BLOCK, size - at))

                    self.assertIn("journal: ", self.go_on(zero))

    def test_flipped_bits(self):
        chance = random.Random(7)
        for turn in range(FLIPS):
            stem = chance.choice(["state", "state", "results"])
            content = bytearray((self.dir / f"killed/journal/{stem}-000001.log").read_bytes())
            bit = chance.randrange(len(content) * 8)
            content[bit // 8] ^= 1 << bit % 8
            with self.subTest(turn=turn, stem=stem, bit=bit):

                def flip(journal, stem=stem, content=bytes(content)):
                    (journal / f"{stem}-000001.log").write_bytes(content)

                self.assertIn(f"journal: {stem}-000001.log", self.go_on(flip))


if __name__ == "__main__":
    main()
