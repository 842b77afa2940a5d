# SPDX-License-Identifier: Apache-2.0
"""Submits jobs to a real Slurm of several nodes on this machine (tests/cluster/slurm.sh).

A test module has one cluster, made by its first test and ended with its last one. Nothing here
sleeps for luck: what a test waits for is a condition with a deadline.
"""

import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "cli"))
from cli_case import MUSTER, CliCase, wait_until  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
CLUSTER = ROOT / "tests" / "cluster" / "slurm.sh"
SRUN_FORM = ROOT / "slurm" / "muster.sbatch"
MPIRUN_FORM = ROOT / "slurm" / "muster-mpirun.sbatch"
JOB_DEADLINE = 60.0
OVER = ("COMPLETED", "FAILED", "CANCELLED", "TIMEOUT", "NODE_FAIL", "OUT_OF_MEMORY", "PREEMPTED")

# Says where it runs and with which devices, then waits to be let go.
HOLD = """
printf '%s\\n' "$(hostname)" "$CUDA_VISIBLE_DEVICES" > up/$MUSTER_TRIAL_ID.$(hostname).new
mv up/$MUSTER_TRIAL_ID.$(hostname).new up/$MUSTER_TRIAL_ID.$(hostname)
until [ -e go ]; do sleep 0.05; done
"""


class SlurmCase(CliCase):
    """Tests of one class share a cluster of nodes n1, n2, …"""

    # As `slurm.sh up` takes them.
    cluster = {"nodes": 3}

    @classmethod
    def setUpClass(cls):
        cls.base = pathlib.Path(tempfile.mkdtemp(prefix="muster-slurm-"))
        cls.addClassCleanup(shutil.rmtree, cls.base, ignore_errors=True)
        cls.cluster_dir = cls.base / "cluster"
        settings = [f"{key}={value}" for key, value in cls.cluster.items()]
        cls.slurm("up", f"owner={os.getpid()}", *settings)
        cls.addClassCleanup(cls.slurm, "down")

    @classmethod
    def slurm(cls, verb, *args, check=True, **options):
        """A verb of tests/cluster/slurm.sh; returns what it printed."""
        done = subprocess.run(
            [CLUSTER, verb, cls.cluster_dir, *map(str, args)],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=120,
            **options,
        )
        if check and done.returncode != 0:
            raise AssertionError(f"slurm.sh {verb} {args}: {done.stdout}{done.stderr}")
        return done.stdout

    def setUp(self):
        super().setUp()
        (self.dir / "up").mkdir()
        self.env.update(MUSTER=MUSTER, PATH=f"{pathlib.Path(MUSTER).parent}:{os.environ['PATH']}")
        self.jobs = []
        # Before the clean-up of CliCase, which removes the directory.
        self.addCleanup(self.end_jobs)

    def end_jobs(self):
        for job in self.jobs:
            if self.state(job) not in OVER:
                self.login("scancel", job)
                self.wait_for_end(job)

    def login(self, *command):
        """Runs a command on the login node, in the test's directory."""
        return self.slurm("run", *command, cwd=self.dir, env=self.env)

    def submit(self, *args):
        """Submits a script with options and arguments; returns the job's id."""
        job = self.login("sbatch", "--parsable", "--output=job.out", *args).strip()
        self.jobs.append(job)
        return job

    def about(self, job):
        """What Slurm says of a job, by its own names."""
        text = self.login("scontrol", "-o", "show", "job", job)
        return dict(word.partition("=")[::2] for word in text.split() if "=" in word)

    def state(self, job):
        return self.about(job)["JobState"]

    def output(self):
        try:
            return (self.dir / "job.out").read_text()
        except OSError:
            return ""

    def wait_for_end(self, job, deadline=JOB_DEADLINE):
        """Waits until the job is over; returns its state and exit code."""
        wait_until(lambda: self.state(job) in OVER, f"the end of job {job}", deadline)
        about = self.about(job)
        code = int(about["ExitCode"].partition(":")[0])
        return about["JobState"], code

    def run_job(self, *args, expect=0):
        state, code = self.wait_for_end(self.submit(*args))
        self.assertEqual(code, expect, f"{state}: {self.output()}")

    def holding_spec(self, samples, name="sweep", before="", **more):
        """A spec whose trials wait for let_go(); `before` is the first line of their script."""
        trial = {"command": ["/bin/sh", str(self.write("hold.sh", before + HOLD))]}
        return self.spec({"num_samples": samples, "trial": trial, **more}, name)

    def trials_up(self):
        """What each trial that has come up said: (id, node) to its device mask."""
        seen = {}
        for path in (self.dir / "up").iterdir():
            trial, _, node = path.name.partition(".")
            if not node.endswith(".new"):
                seen[trial, node] = path.read_text().split("\n")[1]
        return seen

    def wait_for_trials(self, count, job):
        def enough():
            self.assertNotIn(self.state(job), OVER, self.output())
            return len(self.trials_up()) >= count

        try:
            wait_until(enough, f"{count} trials to be up", JOB_DEADLINE)
        except AssertionError as error:
            self.fail(f"{error}: {self.state(job)}: {self.output()}")
        return self.trials_up()

    def cores(self):
        """Of a node, which shows those of this machine, but has 8 CPUs for Slurm."""
        return min(len(os.sched_getaffinity(0)), 8)

    def let_go(self):
        (self.dir / "go").touch()

    def assert_all_completed(self, count, name="sweep"):
        states = [trial["state"] for trial in self.results(name)]
        self.assertEqual(states, ["Completed"] * count, self.output())


def main():
    skip = subprocess.run([CLUSTER, "check"], capture_output=True, text=True, timeout=60)
    if skip.returncode == 77:
        print(skip.stdout, end="")
        sys.exit(77)
    unittest.main(verbosity=1)
