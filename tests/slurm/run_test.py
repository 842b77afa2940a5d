# SPDX-License-Identifier: Apache-2.0
"""Jobs of the scripts in slurm/ over several nodes: who runs what, how they end, what trials can
start themselves."""

import subprocess

from slurm_case import MPIRUN_FORM, SRUN_FORM, SlurmCase, main

# Says how many ranks there are, and where the first runs.
RANKS = """
#include <mpi.h>
#include <stdio.h>
int main(int argc, char** argv) {
    int rank, size, length, sum = 0, one = 1;
    char name[MPI_MAX_PROCESSOR_NAME];
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Get_processor_name(name, &length);
    MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if (rank == 0) printf("%d of %d ranks from %s\\n", sum, size, name);
    MPI_Finalize();
    return 0;
}
"""


class Forms:
    """What holds for either script."""

    def test_trials_run_on_every_node(self):
        at_once = 3 * self.cores()
        job = self.submit("-N3", self.form, self.holding_spec(at_once + 3))
        up = self.wait_for_trials(at_once, job)
        self.let_go()

        self.assertEqual({node for _, node in up}, {"n1", "n2", "n3"})
        self.assertEqual(self.wait_for_end(job), ("COMPLETED", 0), self.output())
        self.assert_all_completed(at_once + 3)

    def test_a_failed_trial_is_the_jobs_exit_code(self):
        spec = {"num_samples": 2, "trial": {"command": ["/bin/false"]}}
        self.run_job("-N2", self.form, self.spec(spec), "--keep-going", expect=1)

    def test_bad_input_is_the_jobs_exit_code(self):
        self.run_job("-N2", self.form, self.spec({"no_such_key": 1}), expect=2)
        self.run_job("-N1", self.form, expect=2)

    def test_what_never_fits_is_the_jobs_exit_code(self):
        spec = {"trial": {"command": ["/bin/true"]}, "resources": {"cpu": 1000}}
        self.run_job("-N2", self.form, self.spec(spec), expect=3)

    def test_slurms_warning_ends_the_job_with_75_and_all_is_kept(self):
        leave = "trap 'sleep 0.3; touch left.$MUSTER_TRIAL_ID; exit 1' TERM"
        self.env["MAX_REQUEUES"] = "0"
        spec = self.holding_spec(6, before=leave, end={"warning": "1s"})
        job = self.submit("-N2", self.form, spec)
        up = self.wait_for_trials(2 * self.cores(), job)

        self.login("scancel", "--batch", "--signal=USR1", job)

        self.assertEqual(self.wait_for_end(job), ("FAILED", 75), self.output())
        # The warning is muster's, and the trials get their time to leave.
        left = {path.suffix[1:] for path in self.dir.glob("left.*")}
        self.assertEqual(left, {trial for trial, _ in up})
        self.let_go()
        self.run_job("-N2", self.form, self.dir / "sweep.yaml")
        self.assert_all_completed(6)

    def test_mpirun_and_srun_within_a_trial(self):
        program = self.compiled_ranks()
        script = self.write(
            "nested.sh",
            f"""set -ex
            hostname
            mpirun -n 2 {program}
            mpirun -n 2 {program}
            srun --exact -N1 -n1 echo a step
            srun --exact -N1 -n1 -w "$SLURMD_NODENAME" hostname
            """,
        )
        spec = {
            "num_samples": 3,
            "resources": {"cpu": self.cores()},
            "trial": {"command": ["/bin/sh", str(script)], "trial_dir": "always"},
        }
        self.run_job("-N3", "-c4", self.form, self.spec(spec))
        self.assert_all_completed(3)
        nodes = set()
        for trial in range(3):
            lines = (self.dir / f"results/sweep/{trial:05}/output").read_text().split("\n")
            said = [line for line in lines if not line.startswith("+ ")]
            ranks = f"2 of 2 ranks from {said[0]}"
            self.assertEqual(said[1:5], [ranks, ranks, "a step", said[0]], lines)
            nodes.add(said[0])
        self.assertEqual(nodes, {"n1", "n2", "n3"})

    def compiled_ranks(self):
        program = self.dir / "ranks"
        source = self.write("ranks.c", RANKS)
        subprocess.run(["mpicc", "-o", program, source], check=True, timeout=60)
        return program


class SrunTest(Forms, SlurmCase):
    form = SRUN_FORM


class MpirunTest(Forms, SlurmCase):
    form = MPIRUN_FORM


if __name__ == "__main__":
    main()
