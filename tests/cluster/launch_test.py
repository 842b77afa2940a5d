# SPDX-License-Identifier: Apache-2.0
"""`muster launch` on this machine alone: lines, exit codes, signals, output, ends."""

import os
import pathlib
import re
import select
import signal
import subprocess
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "cli"))
from cli_case import MUSTER, CliCase, processes_with, wait_until  # noqa: E402

SLOW = {"trial": {"command": ["sleep", "0.2"]}, "space": {"x": {"uniform": [0, 1]}}}
NODES = ("--rank-is-node", "--node-resources", "cpu=2", "--plain")


def pending(pid, number):
    """Whether a signal was sent to a process that has not taken it yet."""
    try:
        status = pathlib.Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return False
    masks = re.findall(r"^(?:Sig|Shd)Pnd:\s+([0-9a-f]+)$", status, re.MULTILINE)
    return any(int(mask, 16) >> (number - 1) & 1 for mask in masks)


def full(pipe):
    """Whether a pipe takes no more."""
    writing = os.open(f"/proc/self/fd/{pipe}", os.O_WRONLY)
    try:
        return not select.select([], [writing], [], 0)[1]
    finally:
        os.close(writing)


class LaunchTest(CliCase):
    def setUp(self):
        super().setUp()
        self.env.update(OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")

    def launch(self, *args, options=("-n", "2"), **more):
        return self.muster("launch", *options, "--", *args, **more)

    def start_run(self, trials):
        # SIGUSR1 announces the end, by as much as trials are warned before it.
        path = self.spec(dict(SLOW, num_samples=trials, end={"warning": "1s"}))
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

    def test_a_slurm_job_has_the_nodes_that_are_left(self):
        self.write("squeue", "#!/bin/sh\necho 2\n").chmod(0o755)
        job = dict(self.env, SLURM_JOB_ID="7", SLURM_JOB_NUM_NODES="3")
        told = dict(job, PATH=f"{self.dir}:{job['PATH']}")
        for env, line in ((told, "srun -N 2 -n 2 "), (job, "srun -N 3 -n 3 ")):
            shown = self.launch("nodes", options=["--dry-run"], env=env)
            self.assertTrue(shown.stdout.startswith(line), shown.stdout + shown.stderr)

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

    def test_trials_get_their_grace_and_not_more_than_is_wished(self):
        polite = {
            "shell": "trap 'sleep 0.5; touch $MUSTER_TRIAL_DIR/bye; exit' TERM; "
            "touch $MUSTER_TRIAL_DIR/here; while :; do sleep 0.05; done"
        }
        path = self.spec(dict(SLOW, trial=polite, num_samples=4))
        for interrupts, code in ((1, 4), (3, 75)):
            run = self.start("launch", "-n", "2", "--", "run", path, *NODES, "--fresh")
            directory = self.dir / "results" / ("sweep" if code == 4 else "sweep-2")
            wait_until(lambda: len(list(directory.glob("*/here"))) == 4, "trials")
            if interrupts == 3:
                # It could be quicker than the third.
                os.kill(self.live(directory.name)["pid"], signal.SIGSTOP)
            for _ in range(interrupts):
                run.send_signal(signal.SIGINT)
                # Signals of one kind that wait to be taken are one.
                wait_until(lambda: not pending(run.pid, signal.SIGINT), "launch to take it")
            out, err = run.communicate(timeout=30)

            self.assertEqual(run.returncode, code, out + err)
            self.assertEqual(len(list(directory.glob("*/bye"))), 4 if code == 4 else 0)
            self.assert_nothing_is_left()
        self.assertIn("muster launch: ending the launcher", err)
        self.assertIn("rank 0 is gone without a word", err)

    def test_rank_0_killed_is_a_run_to_go_on_with(self):
        run = self.start_run(1000)
        os.kill(self.live()["pid"], signal.SIGKILL)
        out, err = run.communicate(timeout=30)

        self.assertEqual(run.returncode, 75, out + err)
        self.assertIn("rank 0 is gone without a word", err)
        self.assert_nothing_is_left()

    def test_a_killed_launcher_leaves_nothing(self):
        run = self.start_run(1000)
        run.send_signal(signal.SIGKILL)
        run.communicate(timeout=30)

        self.assert_nothing_is_left()

    def program(self, text):
        path = self.write("program", "#!/bin/bash\n" + text)
        path.chmod(0o755)
        return path

    def test_before_the_begin_a_signal_ends_all(self):
        program = self.program("touch here; exec sleep 1000\n")
        for number, code in ((signal.SIGINT, 4), (signal.SIGTERM, 75)):
            run = self.start("launch", "-n", "1", "--program", program, "--", "x")
            wait_until((self.dir / "here").exists, "the program")
            (self.dir / "here").unlink()
            run.send_signal(number)
            out, err = run.communicate(timeout=10)

            self.assertEqual(run.returncode, code, out + err)
            self.assertIn("before muster had begun", err)
            self.assert_nothing_is_left()

    def test_output_passes_whole(self):
        program = self.program(
            "seq 100000 & seq 100000 >&2\nwait\nprintf 'no end' >&2\n"
            "printf '\\036muster-exit %s 7\\n' $MUSTER_LAUNCH_TOKEN >&2\n"
        )
        done = self.launch("x", options=["-n", "1", "--program", str(program)])

        numbers = "".join(f"{number}\n" for number in range(1, 100001))
        self.assertEqual(done.stdout.replace("\r", ""), numbers)
        self.assertEqual(done.stderr, numbers + "no end")
        self.assertEqual(done.returncode, 7)

    def test_a_reader_that_does_not_read_keeps_nobody(self):
        program = self.program("seq 1000000 >&2; exec sleep 1000\n")
        run = self.start("launch", "-n", "1", "--program", program, "--", "x")
        wait_until(lambda: full(run.stderr.fileno()), "a full pipe")
        run.send_signal(signal.SIGTERM)

        self.assertEqual(run.wait(timeout=15), 75)
        self.assert_nothing_is_left()

    def test_a_reader_that_went_away_ends_nothing(self):
        program = self.program(
            "seq 200000\ntouch done\n"
            "printf '\\036muster-exit %s 7\\n' $MUSTER_LAUNCH_TOKEN >&2\n"
        )
        run = self.start("launch", "-n", "1", "--program", program, "--", "x")
        run.stdout.readline()
        run.stdout.close()

        self.assertEqual(run.wait(timeout=30), 7)
        self.assertTrue((self.dir / "done").exists())
        run.stdout = None

    def test_a_program_that_says_nothing_is_not_taken_for_muster(self):
        program = self.program("exit 0\n")
        done = self.launch("x", options=["-n", "1", "--program", str(program)])

        self.assertEqual(done.returncode, 5, done.stderr)
        self.assertIn("mpirun ended with code 0 before muster began", done.stderr)

    def test_what_is_wrong_is_said_before_anything_starts(self):
        hosts = self.write("hosts", "localhost\nslots=3\n")
        environment = dict(self.env)
        del environment["OMPI_ALLOW_RUN_AS_ROOT"]
        for options, said in (
            (["--hosts", "nohost.invalid"], "host nohost.invalid: "),
            (["--hostfile", str(hosts)], "hosts:2: 'slots=3' is no host"),
            (["--hostfile", "nowhere"], "cannot read nowhere"),
            (["--agent", "rsh"], "name them"),
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
