# SPDX-License-Identifier: Apache-2.0
"""The end of time: limits, preemption, the batch node's death, a controller that is away, and old
processes that live on while their job has begun anew."""

import time

from slurm_case import MPIRUN_FORM, OVER, SRUN_FORM, SlurmCase, main, wait_until

# Every attempt holds a lock while it runs, and says when it began and ended, and whether another
# one of its trial was running.
ATTEMPT = """
exec 9> lock.$MUSTER_TRIAL_ID
flock -n 9 || echo $MUSTER_TRIAL_ID >> twice
echo $MUSTER_TRIAL_ID $(hostname) >> began
"""
ENDED = "\necho $MUSTER_TRIAL_ID >> ended\n"
HOLD = ATTEMPT + "until [ -e go ]; do sleep 0.05; done" + ENDED
# Half a minute of work, with its place kept whenever it is warned.
SAVING = (
    ATTEMPT
    + """
done=0
[ -z "$MUSTER_CHECKPOINT" ] || read -r done < "$MUSTER_CHECKPOINT/done"
save() { mkdir -p s.$$ && echo $done > s.$$/done && muster checkpoint s.$$ && echo $done >> saved; }
trap save USR1
while [ $done -lt 60 ]; do
    echo $MUSTER_TRIAL_ID $done >> steps
    sleep 0.5
    done=$((done + 1))
done
"""
    + ENDED
)
LEASE = ("--lease", "5s")
# What goes round once more within the test's patience.
REQUEUE_DEADLINE = 150.0


class EndCase(SlurmCase):
    def tearDown(self):
        self.end_jobs()

    def sweep(self, script, count, **more):
        trial = {"command": ["/bin/sh", str(self.write("trial.sh", script))], "grace": "1s"}
        return self.spec({"num_samples": count, "trial": trial, **more})

    def lines(self, name):
        try:
            return (self.dir / name).read_text().splitlines()
        except OSError:
            return []

    def wait_for_begun(self, count, job):
        def enough():
            self.assertNotIn(self.state(job), OVER, self.output())
            return len(self.lines("began")) >= count

        wait_until(enough, f"{count} attempts to begin; {self.output()}", REQUEUE_DEADLINE)

    def wait_for_restart(self, job, restarts=1):
        wait_until(
            lambda: int(self.about(job)["Restarts"]) >= restarts,
            f"the job to be put back into the queue; {self.output()}",
            REQUEUE_DEADLINE,
        )

    def assert_went_well(self, job, count):
        """All trials are done, each once, and never two of one at once."""
        end = self.wait_for_end(job, REQUEUE_DEADLINE)
        self.assertEqual(end, ("COMPLETED", 0), self.output())
        self.assert_all_completed(count)
        self.assertEqual(sorted(self.lines("ended")), [f"{trial:05}" for trial in range(count)])
        self.assertEqual(self.lines("twice"), [], self.output())


class LimitTest(EndCase):
    cluster = {"nodes": 2}

    def test_a_sweep_longer_than_its_limit_goes_on_by_itself(self):
        # Two rounds fit into the minute, the third does not: it is not begun.
        count = 3 * self.cores()
        spec = self.sweep(ATTEMPT + "sleep 20" + ENDED, count, end={"warning": "3s"})
        job = self.submit("-N1", "-t1", SRUN_FORM, spec)

        self.assert_went_well(job, count)

        self.assertEqual(self.about(job)["Restarts"], "1", self.output())
        # Nothing was begun in vain.
        self.assertEqual(len(self.lines("began")), count, self.output())
        self.assertIn("back in the queue", self.output())

    def test_trials_longer_than_the_limit_go_on_from_their_checkpoints(self):
        count = self.cores()
        spec = self.sweep(
            SAVING, count, end={"warning": "15s", "min_slice": "1s", "signal": "USR1"}
        )
        job = self.submit("-N1", "-t10", SRUN_FORM, spec)
        self.wait_for_begun(count, job)
        wait_until(lambda: len(self.lines("steps")) > 4 * count, "some steps")
        # Seen though the end was far away at first.
        soon = time.strftime("%Y-%m-%dT%H:%M:%S", time.localtime(time.time() + 20))
        self.login("scontrol", "update", f"JobId={job}", f"EndTime={soon}")
        self.wait_for_restart(job)
        self.login("scontrol", "update", f"JobId={job}", "TimeLimit=10")

        self.assert_went_well(job, count)

        saved = self.lines("saved")
        self.assertGreaterEqual(len(saved), count, self.output())
        # Each step once, but for those between a checkpoint and the end.
        self.assertLess(len(self.lines("steps")), 90 * count)

    def test_a_job_is_put_back_only_so_often(self):
        spec = self.sweep(HOLD, 2, end={"warning": "1s"})
        self.env["MAX_REQUEUES"] = "1"
        job = self.submit("-N1", SRUN_FORM, spec)
        self.wait_for_begun(1, job)
        self.login("scancel", "--batch", "--signal=USR1", job)
        self.wait_for_restart(job)
        self.wait_for_begun(3, job)

        self.login("scancel", "--batch", "--signal=USR1", job)

        self.assertEqual(self.wait_for_end(job), ("FAILED", 75), self.output())
        self.assertIn("--max-requeues", self.output())

    def test_a_cancelled_job_stays_cancelled(self):
        job = self.submit("-N1", SRUN_FORM, self.sweep(HOLD, 2))
        self.wait_for_begun(2, job)

        self.login("scancel", job)

        self.assertEqual(self.wait_for_end(job)[0], "CANCELLED")
        self.assertEqual(self.live()["ended"], "interrupted", self.output())


class PreemptionTest(EndCase):
    cluster = {"nodes": 3}

    def preempt(self, form):
        count = 2 * self.cores() + 1
        job = self.submit("-N2", form, self.sweep(HOLD, count))
        self.wait_for_begun(2 * self.cores(), job)

        self.login("scontrol", "requeue", job)

        self.wait_for_restart(job)
        self.wait_for_begun(4 * self.cores(), job)
        (self.dir / "go").touch()
        self.assert_went_well(job, count)

    def test_a_preempted_job_goes_on(self):
        self.preempt(SRUN_FORM)

    def test_a_preempted_job_goes_on_under_mpirun(self):
        self.preempt(MPIRUN_FORM)

    def test_a_controller_that_is_away_does_no_harm(self):
        count = self.cores() + 1
        job = self.submit("-N1", "-wn1", "-t5", SRUN_FORM, self.sweep(HOLD, count, end={"warning": "1s"}))
        self.wait_for_begun(self.cores(), job)
        self.slurm("controller", "stop")
        try:
            gone = time.monotonic()
            # The end of the run falls into that time, and so does its wish to be put back.
            self.slurm("on", "n1", "pkill", "-USR1", "-f", "muster launch")
            wait_until(lambda: "interrupted" in self.output(), "the end of the run")
            wait_until(lambda: time.monotonic() - gone > 10, "ten seconds to pass")
        finally:
            self.slurm("controller", "start")

        self.wait_for_restart(job)
        self.wait_for_begun(2 * self.cores(), job)
        (self.dir / "go").touch()
        self.assert_went_well(job, count)


class OldProcessesTest(EndCase):
    cluster = {"nodes": 3}

    def tearDown(self):
        super().tearDown()
        self.slurm("start", "n1")

    def start_job(self):
        count = 2 * self.cores() + 1
        spec = self.sweep(HOLD, count)
        job = self.submit("-N2", "-wn1", SRUN_FORM, spec, *LEASE)
        self.wait_for_begun(2 * self.cores(), job)
        # The others may run it without this one.
        self.login("scontrol", "update", f"JobId={job}", "ReqNodeList=")
        return job, count

    def test_the_batch_nodes_death_puts_the_job_back(self):
        job, count = self.start_job()
        self.slurm("kill", "n1", "power")
        self.slurm("tell", "n1", "down")

        # Slurm itself does nothing, for the job runs with --no-kill.
        self.wait_for_restart(job)
        (self.dir / "go").touch()
        self.assert_went_well(job, count)

    def test_a_head_that_slurm_can_not_reach_ends_when_its_job_begins_anew(self):
        job, count = self.start_job()
        self.slurm("kill", "n1", "slurmd")
        self.slurm("tell", "n1", "down")

        # Everything on n1 lives on.
        self.login("scontrol", "requeue", job)

        self.wait_for_restart(job)
        self.wait_for_begun(4 * self.cores(), job)
        (self.dir / "go").touch()
        self.assert_went_well(job, count)


if __name__ == "__main__":
    main()
