# SPDX-License-Identifier: Apache-2.0
"""What muster takes for its own on each node: as Slurm means it, and not as its variables say."""

import json

from slurm_case import SRUN_FORM, SlurmCase, main, wait_until

SRUN = (
    "srun -N$SLURM_JOB_NUM_NODES -n$SLURM_JOB_NUM_NODES --ntasks-per-node=1 --mpi=pmix "
    "--cpu-bind=none $MUSTER nodes --format json"
)
MPIRUN = "mpirun --map-by ppr:1:node $MUSTER nodes --format json"


class ShareTest(SlurmCase):
    # n3 has no GPU.
    cluster = {"nodes": 3, "gpus": "4,2,0"}

    def nodes(self, launch, *options):
        """What `muster nodes` says under `launch` in a job: by node, (CPUs, MiB, GPU labels)."""
        text = f"#!/bin/sh\n{launch} > nodes.json 2> nodes.err\n"
        self.run_job(*options, self.write("nodes.sh", text))
        nodes = json.loads((self.dir / "nodes.json").read_text())["nodes"]
        return {
            node["name"]: (
                node["cpu"],
                node["memory_bytes"] >> 20,
                [device["label"] for device in node["devices"]],
            )
            for node in nodes
        }

    def gpus(self, launch, *options):
        return {name: gpus for name, (_, _, gpus) in self.nodes(launch, *options).items()}

    def test_gpus_of_each_node(self):
        even = {"n1": ["0", "1"], "n2": ["0", "1"]}
        for launch in (SRUN, MPIRUN):
            with self.subTest(launch):
                self.assertEqual(self.gpus(launch, "-wn[1-2]", "--gres=gpu:2"), even)

    def test_gpus_of_uneven_nodes(self):
        uneven = {"n1": ["0", "1", "2", "3"], "n2": ["0", "1"]}
        self.assertEqual(self.gpus(SRUN, "-wn[1-2]", "--gpus=6"), uneven)
        # mpirun's daemons would else ask for six GPUs on the second node alone.
        self.assertEqual(self.gpus("SLURM_GPUS=2 " + MPIRUN, "-wn[1-2]", "--gpus=6"), uneven)

    def test_two_jobs_on_a_node_have_gpus_of_their_own(self):
        holder = self.submit("-wn1", "--gres=gpu:2", self.write("hold.sh", "#!/bin/sh\nsleep 600\n"))
        wait_until(lambda: self.state(holder) == "RUNNING", "the other job to run")
        self.assertEqual(self.gpus(SRUN, "-wn1", "--gres=gpu:2"), {"n1": ["2", "3"]})

    def test_without_gres_a_step_has_none_though_variables_leak(self):
        # The batch shell on n1 sees all four, and its variables come along to n3.
        none = {"n1": [], "n3": []}
        self.assertEqual(self.gpus(SRUN, "-wn[1,3]", "--exclusive"), none)
        self.assertEqual(self.gpus(MPIRUN, "-wn[1,3]", "--exclusive")["n3"], [])

    def test_memory_and_cpus_of_a_shared_node(self):
        for launch in (SRUN, MPIRUN):
            with self.subTest(launch):
                by_node = self.nodes(launch, "-wn[1-2]", "-c1", "--mem=1000")
                self.assertEqual(by_node["n2"][:2], (1, 1000))
                by_cpu = self.nodes(launch, "-wn[1-2]", "-c4", "--mem-per-cpu=200")
                self.assertEqual(by_cpu["n2"][1], 800)

    def test_an_exclusive_node_is_the_jobs_whole(self):
        whole = self.nodes(SRUN, "-wn[1-2]", "--exclusive", "--mem=0")["n2"]
        self.assertEqual(whole[0], self.cores())
        # What the node has; Slurm was told another figure.
        self.assertNotEqual(whole[1], 4000)

    def test_trials_get_gpus_of_their_nodes(self):
        spec = self.holding_spec(6, resources={"cpu": 0, "gpu": 1})
        job = self.submit("-N2", "-wn[1-2]", "--gpus=6", SRUN_FORM, spec)
        up = self.wait_for_trials(6, job)
        self.let_go()

        by_node = sorted((node, mask) for (_, node), mask in up.items())
        expected = [("n1", str(index)) for index in range(4)] + [("n2", "0"), ("n2", "1")]
        self.assertEqual(by_node, expected)
        self.assertEqual(self.wait_for_end(job), ("COMPLETED", 0), self.output())


if __name__ == "__main__":
    main()
