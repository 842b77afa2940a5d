# SPDX-License-Identifier: Apache-2.0
"""`muster launch` on this machine alone: lines, exit codes, signals, output, ends."""

import os
import pathlib
import signal
import subprocess
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "cli"))
from cli_case import MUSTER, CliCase, processes_with, wait_until  # noqa: E402

SLOW = {"trial": {"command": ["sleep", "0.2"]}, "space": {"x": {"uniform": [0, 1]}}}
NODES = ("--rank-is-node", "--node-resources", "cpu=2", "--plain")


class LaunchTest(CliCase):
    def setUp(self):
        super().setUp()
        self.env.update(OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")

    def launch(self, *args, options=("-n", "2"), **more):
        return self.muster("launch", *options, "--", *args, **more)

    def start_run(self, trials):
        path = self.spec(dict(SLOW, num_samples=trials))
        run = self.start("launch", "-n", "2", "--", "run", path, *NODES)
        wait_until(lambda: dict(self.live().get("counts", [])).get("completed", 0) > 3, "trials")
        return run

    def assert_nothing_is_left(self):
        wait_until(lambda: processes_with(str(self.dir)) == [], "the end of all processes")

    def test_the_line_is_shown_and_nothing_started(self):
        shown = self.launch("nodes", options=["--dry-run", "--hosts", "localhost", "-n", "1"])

        self.assertEqual(shown.returncode, 0, shown.stderr)
        self.assertIn("mpirun --enable-recovery --bind-to none", shown.stdout)
        self.assertIn("--host localhost", shown.stdout)
        self.assertTrue(shown.stdout.rstrip().endswith(f"{MUSTER} nodes"), shown.stdout)

    def test_exit_codes_are_the_runs_own(self):
        fine = self.spec(dict(SLOW, trial={"command": ["true"]}, num_samples=2), name="fine")
        failing = self.spec(dict(SLOW, trial={"command": ["false"]}, num_samples=2), name="failing")
        large = self.spec(dict(SLOW, resources={"cpu": 9}, num_samples=2), name="large")
        for code, args in (
            (0, ("run", fine, *NODES)),
            (1, ("run", failing, *NODES)),
            (2, ("run", "nowhere.yaml", *NODES)),
            (2, ("run", fine, "--nonsense")),
            (3, ("run", large, *NODES)),
        ):
            done = self.launch(*args)
            self.assertEqual(done.returncode, code, done.stdout + done.stderr)
            self.assertNotIn("muster-exit", done.stderr)

    def test_sigint_cancels_and_sigterm_interrupts(self):
        for number, code in ((signal.SIGINT, 4), (signal.SIGTERM, 75), (signal.SIGUSR1, 75)):
            run = self.start_run(1000)
            run.send_signal(number)
            out, err = run.communicate(timeout=30)
            self.assertEqual(run.returncode, code, out + err)
            self.assert_nothing_is_left()
            subprocess.run(["rm", "-r", self.dir / "results"], check=True)

    def test_a_killed_launcher_leaves_nothing(self):
        run = self.start_run(1000)
        run.send_signal(signal.SIGKILL)
        run.communicate(timeout=30)

        self.assert_nothing_is_left()

    def test_output_passes_whole(self):
        program = self.write(
            "talks",
            "#!/bin/sh\n"
            '[ "$OMPI_COMM_WORLD_RANK" = 0 ] || exit 0\n'
            "seq 100000\n"
            "seq 100000 >&2\n",
        )
        program.chmod(0o755)
        done = self.launch("x", options=["-n", "1", "--program", str(program)])

        self.assertEqual(done.stdout.split(), [str(n) for n in range(1, 100001)])
        numbers = [line for line in done.stderr.splitlines() if line.isdigit()]
        self.assertEqual(numbers, [str(n) for n in range(1, 100001)])
        # It never said that it was muster, nor how it ended.
        self.assertEqual(done.returncode, 5, done.stderr[-500:])

    def test_what_is_wrong_is_said_before_anything_starts(self):
        hosts = self.write("hosts", "localhost\nslots=3\n")
        environment = dict(self.env)
        del environment["OMPI_ALLOW_RUN_AS_ROOT"]
        for options, said in (
            (["--hosts", "nohost.invalid"], "host nohost.invalid: "),
            (["--hostfile", str(hosts)], "hosts:2: 'slots=3' is no host"),
            (["--hostfile", "nowhere"], "cannot read nowhere"),
            (["--with", "srun"], "needs a Slurm job"),
            (["--with", "rsh"], "expected one of mpirun, srun"),
        ):
            done = self.launch("nodes", options=options)
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertIn(said, done.stderr)
        if os.geteuid() == 0:
            done = self.launch("nodes", env=environment)
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertIn("OMPI_ALLOW_RUN_AS_ROOT=1", done.stderr)

    def test_trials_do_not_see_the_launch(self):
        path = self.spec(
            dict(SLOW, trial={"shell": "env > $MUSTER_TRIAL_DIR/env"}, num_samples=1)
        )
        done = self.launch("run", path, *NODES)
        self.assertEqual(done.returncode, 0, done.stderr)

        seen = (self.dir / "results/sweep/00000/env").read_text()
        for name in ("MUSTER_LAUNCH_TOKEN", "MUSTER_TERMINAL", "OMPI_COMM_WORLD", "PMIX_", "OMPI_MCA_pml"):
            self.assertNotIn(name, seen)


if __name__ == "__main__":
    unittest.main()
