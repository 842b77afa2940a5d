# SPDX-License-Identifier: Apache-2.0
"""The end of time: jobs that are put back into the queue, by themselves and by others."""

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
# Three steps, each saved, and three more once it may.
SAVES = (
    ATTEMPT
    + """
step=0
if [ -n "$MUSTER_CHECKPOINT" ]; then step=$(cat "$MUSTER_CHECKPOINT/step"); fi
while [ $step -lt 6 ]; do
    if [ $step -ge 3 ]; then until [ -e go ]; do sleep 0.05; done; fi
    step=$((step + 1))
    mkdir -p "$MUSTER_CHECKPOINT_DIR/new" && echo $step > "$MUSTER_CHECKPOINT_DIR/new/step"
    muster checkpoint "$MUSTER_CHECKPOINT_DIR/new" || exit 9
    echo $MUSTER_TRIAL_ID $step >> steps
done
"""
    + ENDED
)
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


    def test_trials_go_on_from_their_checkpoints(self):
        count = self.cores()
        job = self.submit("-N1", SRUN_FORM, self.sweep(SAVES, count, end={"warning": "1s"}))
        wait_until(
            lambda: len(self.lines("steps")) == 3 * count, "three steps of each", REQUEUE_DEADLINE
        )

        self.login("scancel", "--batch", "--signal=USR1", job)

        self.wait_for_restart(job)
        (self.dir / "go").touch()
        self.assert_went_well(job, count)
        steps = [f"{trial:05} {step}" for trial in range(count) for step in range(1, 7)]
        self.assertEqual(sorted(self.lines("steps")), steps, self.output())

    def test_a_controller_that_is_away_at_the_end_is_waited_for(self):
        job = self.submit("-N1", SRUN_FORM, self.sweep(HOLD, 2, end={"warning": "1s"}))
        self.wait_for_begun(2, job)
        self.slurm("controller", "stop")
        try:
            # Nothing of the run itself needs it.
            self.slurm("on", 1, "pkill", "-USR1", "-f", "muster launch")
            wait_until(lambda: self.live()["ended"] == "interrupted", "the end of the run")
        finally:
            self.slurm("controller", "start")

        self.wait_for_restart(job)
        (self.dir / "go").touch()
        self.assert_went_well(job, 2)


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


class LostNodeTest(EndCase):
    # More than the tests use up: Slurm may drain the second node, too, as its srun was on the first.
    cluster = {"nodes": 6}

    def test_the_death_of_the_first_node_puts_the_job_back(self):
        count = 2 * self.cores()
        job = self.submit("-N2", SRUN_FORM, self.sweep(HOLD, count), "--lease", "3s")
        self.wait_for_begun(count, job)

        self.slurm("kill", 1)
        self.slurm("tell", 1, "down")

        self.wait_for_restart(job)
        self.wait_for_begun(2 * count, job)
        (self.dir / "go").touch()
        self.assert_went_well(job, count)

    def test_a_run_that_lives_on_where_slurm_cannot_see_it_ends_first(self):
        count = self.cores()
        job = self.submit("-N1", "-wn6", SRUN_FORM, self.sweep(HOLD, count), "--lease", "3s")
        self.wait_for_begun(count, job)

        # All of the job is alive, but nobody there hears Slurm.
        self.slurm("kill", 6, "slurmd")
        self.slurm("tell", 6, "down")

        self.wait_for_restart(job)
        self.login("scontrol", "update", f"JobId={job}", "ReqNodeList=")
        self.wait_for_begun(2 * count, job)
        (self.dir / "go").touch()
        self.assert_went_well(job, count)


if __name__ == "__main__":
    main()
