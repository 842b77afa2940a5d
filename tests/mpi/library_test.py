# SPDX-License-Identifier: Apache-2.0
"""A C++ program with functions as trials, started as several ranks that play nodes."""

import os
import subprocess
import unittest

from team_test import MUSTER, TeamCase, processes_with, wait_until

PROGRAM = os.environ.get("LIBRARY_PROGRAM", "library_program")
NODES = ("--rank-is-node", "--node-resources", "cpu=1", "--plain")


class LibraryTest(TeamCase):
    program = PROGRAM

    def assert_nothing_is_left(self):
        wait_until(lambda: processes_with(str(self.dir)) == [], "the end of all processes")

    def test_one_program_runs_one_experiment_after_the_other_on_all_nodes(self):
        done = self.ranks(3, "quadratic", *NODES)

        # What follows the session runs in rank 0 alone.
        said = done.stdout + done.stderr
        self.assertEqual(said.count("10 trials, 0 failed, exit 0"), 2, said)
        for name in ("first", "second"):
            trials = self.results(name)
            self.assertEqual([trial["state"] for trial in trials], ["Completed"] * 10, said)
            self.assertEqual(len({trial["node"] for trial in trials}), 3, said)
        self.assert_nothing_is_left()

    def test_functions_end_as_on_one_machine(self):
        line = [MUSTER, "launch", "-n", "3", "--program", PROGRAM, "--", "ends", *NODES]
        done = subprocess.run(
            line, cwd=self.dir, env=self.env, capture_output=True, text=True, timeout=60
        )

        self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
        self.assertIn("the matrix is singular", done.stdout)
        self.assertEqual([trial["state"] for trial in self.results("ends")].count("Failed"), 4)
        self.assert_nothing_is_left()

    def test_a_wrong_option_is_told_once_and_all_ranks_leave(self):
        done = self.ranks(3, "quadratic", *NODES, "--lease", "never")

        said = done.stdout + done.stderr
        self.assertEqual(said.count("muster: --lease"), 1, said)
        self.assertFalse((self.dir / "results").exists())
        self.assert_nothing_is_left()


if __name__ == "__main__":
    unittest.main()
