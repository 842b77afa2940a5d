# SPDX-License-Identifier: Apache-2.0
"""Nodes and agents that die in the middle of a job, and jobs that are cancelled."""

import time

from slurm_case import MPIRUN_FORM, SRUN_FORM, SlurmCase, main, wait_until

# Reports once, then waits to be let go.
REPORT_AND_HOLD = """
muster report loss=0.5 step=1
echo > up/$MUSTER_TRIAL_ID.$(hostname).new
mv up/$MUSTER_TRIAL_ID.$(hostname).new up/$MUSTER_TRIAL_ID.$(hostname)
until [ -e go ]; do sleep 0.05; done
"""
# Slurm has far longer patience with a node.
LEASE = ("--lease", "5s")
NODE = "n2"


class LossTest(SlurmCase):
    def tearDown(self):
        self.end_jobs()
        self.slurm("start", NODE)

    def start_job(self):
        """A job on three nodes, with trials up on all of them; says how many trials it has."""
        count = 3 * self.cores() + 2
        job = self.submit("-N3", SRUN_FORM, self.holding_spec(count), *LEASE)
        self.wait_for_trials(3 * self.cores(), job)
        return job, count

    def assert_lost_trials_ran_elsewhere(self, job, count):
        self.let_go()
        self.assertEqual(self.wait_for_end(job), ("COMPLETED", 0), self.output())
        self.assert_all_completed(count)
        self.assertIn(f"node {NODE} was lost", self.output())
        self.assertNotIn(NODE, [trial["node"] for trial in self.results()])
        again = [trial for trial in self.results() if trial["attempts"] > 1]
        self.assertEqual(len(again), self.cores())
        self.assertEqual([trial["failures"] for trial in again], [0] * len(again))

    def lost(self):
        wait_until(lambda: "was lost" in self.output(), "the node to be lost")

    def test_a_dead_node_takes_only_its_trials_with_it(self):
        job, count = self.start_job()
        self.slurm("kill", NODE, "power")
        self.lost()
        self.slurm("tell", NODE, "down")
        self.assert_lost_trials_ran_elsewhere(job, count)

    def test_the_job_ends_though_slurm_does_not_know_of_the_dead_node(self):
        job, count = self.start_job()
        self.slurm("kill", NODE, "power")
        self.lost()
        self.let_go()
        wait_until(lambda: f"{count} trials: {count} completed" in self.output(), "the end of the trials")
        began = time.monotonic()
        wait_until(lambda: self.state(job) != "RUNNING", "the end of the job's script")
        # By itself it would find out after half a minute here, and after minutes elsewhere.
        self.assertLess(time.monotonic() - began, 15, self.output())
        self.slurm("tell", NODE, "down")
        self.assert_lost_trials_ran_elsewhere(job, count)

    def test_a_killed_agent_takes_only_its_trials_with_it(self):
        job, count = self.start_job()
        self.slurm("on", NODE, "pkill", "-KILL", "-x", "muster")
        self.lost()
        self.assert_lost_trials_ran_elsewhere(job, count)


    def test_under_mpirun_a_dead_node_ends_the_job_which_goes_on_when_queued_again(self):
        count = 3 * self.cores() + 2
        job = self.submit("-N3", MPIRUN_FORM, self.holding_spec(count), *LEASE)
        self.wait_for_trials(3 * self.cores(), job)
        self.slurm("kill", NODE, "power")
        self.slurm("tell", NODE, "down")
        wait_until(lambda: self.about(job)["Restarts"] == "1", "the job to be queued again")
        self.let_go()
        self.slurm("start", NODE)

        self.assertEqual(self.wait_for_end(job), ("COMPLETED", 0), self.output())
        self.assert_all_completed(count)


class CancelTest(SlurmCase):
    def test_a_cancelled_job_keeps_what_was_reported_and_goes_on_later(self):
        count = 2 * self.cores() + 1
        script = self.write("hold.sh", REPORT_AND_HOLD)
        spec = {
            "num_samples": count,
            "metric": "loss",
            "mode": "min",
            "trial": {"command": ["/bin/sh", str(script)]},
        }
        job = self.submit("-N2", SRUN_FORM, self.spec(spec))
        self.wait_for_trials(2 * self.cores(), job)

        self.login("scancel", job)

        self.assertEqual(self.wait_for_end(job)[0], "CANCELLED")
        self.assertEqual(self.live()["ended"], "interrupted", self.output())
        reported = [trial["trial"] for trial in self.results() if trial["reports"] == 1]
        self.assertEqual(len(reported), 2 * self.cores())
        self.let_go()
        self.run_job("-N2", SRUN_FORM, self.dir / "sweep.yaml")
        self.assert_all_completed(count)


if __name__ == "__main__":
    main()
