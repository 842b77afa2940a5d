# SPDX-License-Identifier: Apache-2.0
"""`muster run` and `muster nodes` as several ranks of one mpirun, on this machine."""

import collections
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "cli"))
from cli_case import MUSTER, CliCase, processes_with, wait_until  # noqa: E402

MPIRUN = os.environ.get("MPIRUN", "mpirun")


class TeamCase(CliCase):
    program = MUSTER

    def setUp(self):
        super().setUp()
        self.env.update(
            OMPI_ALLOW_RUN_AS_ROOT="1",
            OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1",
            OMPI_MCA_rmaps_base_oversubscribe="1",
            PMIX_OUTPUT_REDIRECT="syslog",
        )

    def line(self, ranks, *args, mpirun=()):
        binding = [] if "--bind-to" in mpirun else ["--bind-to", "none"]
        flags = [*binding, "--enable-recovery", *mpirun]
        return [MPIRUN, "-n", str(ranks), *flags, self.program, *map(str, args)]

    def ranks(self, ranks, *args, mpirun=(), timeout=60):
        """Runs muster as so many ranks to its end. mpirun's own exit code says nothing."""
        return subprocess.run(
            self.line(ranks, *args, mpirun=mpirun),
            cwd=self.dir,
            env=self.env,
            capture_output=True,
            text=True,
            timeout=timeout,
        )

    def start_ranks(self, ranks, *args, mpirun=()):
        process = subprocess.Popen(
            self.line(ranks, *args, mpirun=mpirun),
            cwd=self.dir,
            env=self.env,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.started.append(process)
        return process

    def rank_pids(self):
        """The ranks by number."""
        found = {}
        for pid in processes_with(str(self.dir)):
            try:
                command = pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
                environment = pathlib.Path(f"/proc/{pid}/environ").read_bytes()
                parent = int(pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
                # It has several names.
                launcher = pathlib.Path(f"/proc/{parent}/comm").read_text().strip()
                of_mpirun = launcher in ("mpirun", "mpiexec", "orterun")
            except OSError:
                continue
            rank = re.search(rb"OMPI_COMM_WORLD_RANK=(\d+)", environment)
            if command[0].decode() == MUSTER and rank and of_mpirun:
                found[int(rank[1])] = pid
        return found


class NodesTest(TeamCase):
    def test_every_host_is_one_node(self):
        shown = self.ranks(3, "nodes", "--format", "json")

        nodes = json.loads(shown.stdout)["nodes"]
        self.assertEqual(len(nodes), 1)
        alone = json.loads(self.muster("nodes", "--format", "json").stdout)["nodes"]
        self.assertEqual(nodes, alone)
        self.assertIn("ranks 0, 1, 2 run on", shown.stderr)

    def test_the_launchers_binding_does_not_narrow_a_node(self):
        alone = json.loads(self.muster("nodes", "--format", "json").stdout)["nodes"]
        bound = subprocess.run(
            [MPIRUN, "-n", "1", "--bind-to", "core", MUSTER, "nodes", "--format", "json"],
            cwd=self.dir,
            env=self.env,
            capture_output=True,
            text=True,
            timeout=60,
        )
        self.assertEqual(json.loads(bound.stdout)["nodes"], alone, bound.stderr)

    def test_ranks_as_nodes_have_what_they_are_given(self):
        shown = self.ranks(
            3, "nodes", "--rank-is-node", "--node-resources", "cpu=4,gpu=2", "--format", "json"
        )

        nodes = json.loads(shown.stdout)["nodes"]
        names = [node["name"] for node in nodes]
        self.assertEqual([name.rpartition("#")[2] for name in names], ["0", "1", "2"])
        self.assertEqual({node["cpu"] for node in nodes}, {4})

    def test_ranks_as_nodes_of_a_file(self):
        self.write("cluster.yaml", "nodes: [{name: big, cpu: 8}, {name: small, cpu: 2}]\n")

        shown = self.ranks(
            2, "nodes", "--rank-is-node", "--cluster", "cluster.yaml", "--format", "json"
        )
        wrong = self.ranks(3, "nodes", "--rank-is-node", "--cluster", "cluster.yaml")

        nodes = json.loads(shown.stdout)["nodes"]
        self.assertEqual([(node["name"], node["cpu"]) for node in nodes], [("big", 8), ("small", 2)])
        self.assertIn("has 2 nodes and 3 ranks came", wrong.stderr)
        self.assertEqual(wrong.stdout, "")

    def test_another_build_is_refused(self):
        other = self.dir / "other-muster"
        program = pathlib.Path(MUSTER).read_bytes()
        note = b"GNU\0"
        place = program.index(note) + len(note)
        while program[place - 16 : place - 4] != (4).to_bytes(4, "little") + (20).to_bytes(
            4, "little"
        ) + (3).to_bytes(4, "little"):
            place = program.index(note, place) + len(note)
        other.write_bytes(program[:place] + b"\x5a" * 20 + program[place + 20 :])
        other.chmod(0o755)

        shown = subprocess.run(
            [*self.line(1, "nodes"), ":", "-n", "1", str(other), "nodes"],
            cwd=self.dir,
            env=self.env,
            capture_output=True,
            text=True,
            timeout=60,
        )

        self.assertIn("rank 1 runs muster", shown.stderr)
        self.assertIn("all nodes must run the same program", shown.stderr)
        self.assertEqual(shown.stdout, "")


class RunTest(TeamCase):
    SPEC = {
        "trial": {"shell": "muster report host=0 value={x}"},
        "metric": "value",
        "mode": "max",
        "space": {"x": {"uniform": [0, 1]}},
        "num_samples": 24,
        "resources": {"cpu": 1},
    }

    def run_ranks(self, ranks, spec, *args, mpirun=()):
        path = self.spec(spec)
        done = self.ranks(ranks, "run", path, "--plain", *args, mpirun=mpirun)
        return done

    def test_trials_are_spread_over_the_ranks_and_all_kept(self):
        done = self.run_ranks(3, self.SPEC, "--rank-is-node", "--node-resources", "cpu=2")

        trials = self.results()
        self.assertEqual({trial["state"] for trial in trials}, {"Completed"}, done.stderr)
        self.assertEqual(len(trials), 24)
        self.assertEqual([trial["reports"] for trial in trials], [1] * 24)
        nodes = collections.Counter(trial["node"] for trial in trials)
        self.assertEqual(len(nodes), 3)
        self.assertIn("24 trials: 24 completed", done.stdout)
        self.assertEqual(processes_with(str(self.dir)), [])

    def test_results_are_those_of_one_process(self):
        self.run_ranks(2, self.SPEC, "--rank-is-node", "--node-resources", "cpu=2")
        by_ranks = [trial["config"] for trial in self.results()]
        shutil.rmtree(self.dir / "results")
        self.run_spec(self.SPEC)

        self.assertEqual([trial["config"] for trial in self.results()], by_ranks)

    def test_requests_go_to_the_node_that_has_them(self):
        self.write(
            "cluster.yaml",
            "nodes: [{name: head, cpu: 1}, {name: cpus, cpu: 4}, {name: gpus, cpu: 1, gpu: 2}]\n",
        )
        spec = dict(
            self.SPEC,
            trial={"shell": "echo $CUDA_VISIBLE_DEVICES > $MUSTER_TRIAL_DIR/devices"},
            space={"kind": {"grid": ["gpu", "wide"]}},
            num_samples=4,
            resources=[
                {"when": {"kind": "gpu"}, "cpu": 1, "gpu": 1},
                {"cpu": 3},
            ],
        )
        del spec["metric"], spec["mode"]
        done = self.run_ranks(3, spec, "--rank-is-node", "--cluster", "cluster.yaml")

        trials = self.results()
        self.assertEqual(len(trials), 8, done.stderr)
        for trial in trials:
            wanted = "gpus" if trial["config"]["kind"] == "gpu" else "cpus"
            self.assertEqual(trial["node"], wanted, trial)

    def test_a_dedicated_head_runs_no_trial(self):
        self.run_ranks(
            3, self.SPEC, "--rank-is-node", "--node-resources", "cpu=2", "--dedicated-head"
        )

        nodes = {trial["node"].rpartition("#")[2] for trial in self.results()}
        self.assertEqual(nodes, {"1", "2"})

    def test_bad_input_is_said_once_and_all_leave(self):
        shown = self.ranks(3, "run", "nowhere.yaml", "--rank-is-node")
        no_option = self.ranks(3, "run", "nowhere.yaml", "--nonsense")
        too_large = self.run_ranks(
            2, dict(self.SPEC, resources={"cpu": 9}), "--rank-is-node", "--node-resources", "cpu=2"
        )

        self.assertEqual(shown.stderr.count("nowhere.yaml"), 1, shown.stderr)
        self.assertEqual(no_option.stderr.count("--nonsense"), 1, no_option.stderr)
        self.assertIn("asks for {cpu: 9}", too_large.stderr)

    def test_interrupted_run_goes_on_with_another_number_of_ranks(self):
        spec = dict(self.SPEC, trial={"command": ["sleep", "0.2"]}, num_samples=30)
        del spec["metric"], spec["mode"]
        path = self.spec(spec)
        run = self.start_ranks(
            2, "run", path, "--plain", "--rank-is-node", "--node-resources", "cpu=2"
        )
        wait_until(lambda: dict(self.live().get("counts", [])).get("completed", 0) > 3, "trials")
        os.kill(self.rank_pids()[0], signal.SIGTERM)
        run.communicate(timeout=60)
        done = len([t for t in self.results() if t["state"] == "Completed"])
        self.ranks(3, "run", path, "--plain", "--rank-is-node", "--node-resources", "cpu=2")

        trials = self.results()
        self.assertGreater(done, 3)
        self.assertEqual(len(trials), 30)
        self.assertEqual({t["state"] for t in trials}, {"Completed"})
        self.assertEqual({t["failures"] for t in trials}, {0})

    def test_a_killed_rank_loses_nothing(self):
        spec = dict(self.SPEC, trial={"command": ["sleep", "0.3"]}, num_samples=24)
        del spec["metric"], spec["mode"]
        path = self.spec(spec)
        run = self.start_ranks(
            3, "run", path, "--plain", "--rank-is-node", "--node-resources", "cpu=2"
        )
        wait_until(lambda: dict(self.live().get("counts", [])).get("completed", 0) > 3, "trials")
        os.kill(self.rank_pids()[2], signal.SIGKILL)
        out, err = run.communicate(timeout=60)

        trials = self.results()
        self.assertEqual(len(trials), 24, err)
        self.assertEqual({t["state"] for t in trials}, {"Completed"})
        self.assertEqual({t["failures"] for t in trials}, {0})
        self.assertIn("was lost", out + err)
        wait_until(lambda: processes_with(str(self.dir)) == [], "the end of all processes")
        self.assertEqual(list(self.tmp.glob("*muster-*")), [])

    def test_a_killed_spawner_loses_its_node(self):
        spec = dict(self.SPEC, trial={"command": ["sleep", "0.3"]}, num_samples=24)
        del spec["metric"], spec["mode"]
        run = self.start_ranks(
            3, "run", self.spec(spec), "--plain", "--rank-is-node", "--node-resources", "cpu=2"
        )
        wait_until(lambda: dict(self.live().get("counts", [])).get("completed", 0) > 3, "trials")
        spawner = self.children(self.rank_pids()[1], "muster-spawner")[0]
        os.kill(spawner, signal.SIGKILL)
        out, err = run.communicate(timeout=60)

        trials = self.results()
        self.assertEqual(len(trials), 24, err)
        self.assertEqual({t["state"] for t in trials}, {"Completed"})
        self.assertEqual({t["failures"] for t in trials}, {0})
        self.assertRegex(
            out + err,
            rf"node \S+#1 was lost: the process that starts its trials \({spawner}\) "
            r"was ended by signal 9 \(SIGKILL\)",
        )
        wait_until(lambda: processes_with(str(self.dir)) == [], "the end of all processes")
        self.assertEqual(list(self.tmp.glob("*muster-*")), [])

    def test_trials_inherit_nothing_of_a_rank(self):
        # Of grep and ls themselves: a shell blocks signals while it starts something.
        seen = "grep -E '^(Sig(Blk|Ign)|Cpus_allowed_list)' /proc/self/status; ls -m /proc/self/fd"
        spec = dict(self.SPEC, trial={"shell": f"exec > seen; {seen}; sleep 1000"}, num_samples=2)
        spec["trial"]["workdir"] = "trial"
        del spec["metric"], spec["mode"]
        self.start_ranks(
            2,
            *("run", self.spec(spec), "--plain", "--rank-is-node", "--node-resources", "cpu=1"),
            mpirun=["--bind-to", "core"],
        )
        wait_until(lambda: dict(self.live().get("counts", [])).get("running", 0) == 2, "trials")
        files = [self.dir / "results" / "sweep" / trial / "seen" for trial in ("00000", "00001")]
        wait_until(lambda: all(f.exists() and f.read_text().count("\n") == 4 for f in files), "words")

        allowed = re.search("Cpus_allowed_list:.*", pathlib.Path("/proc/self/status").read_text())[0]
        nothing = "0" * 16
        for file in files:
            blocked, ignored, cpus, descriptors = file.read_text().splitlines()
            self.assertEqual(blocked, f"SigBlk:\t{nothing}")
            self.assertEqual(ignored, f"SigIgn:\t{nothing}")
            self.assertEqual(cpus, allowed)
            # The last is the directory that ls reads.
            self.assertEqual(descriptors, "0, 1, 2, 3")
        for rank in self.rank_pids().values():
            held = self.descriptors(rank)
            self.assertTrue(any("socket:" in target for target in held))
            spawner = self.children(rank, "muster-spawner")[0]
            for pid in [spawner, *self.children(spawner, "muster-keeper")]:
                self.assertEqual((self.descriptors(pid) & held) - {"/dev/null"}, set())

    def children(self, parent, name):
        found = []
        for pid in processes_with(str(self.dir)):
            stat = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
            comm = pathlib.Path(f"/proc/{pid}/comm").read_text().strip()
            if int(stat[1]) == parent and comm == name:
                found.append(pid)
        return found

    def descriptors(self, pid):
        """What the process has open, less what the kernel names alike everywhere."""
        links = {os.readlink(entry) for entry in pathlib.Path(f"/proc/{pid}/fd").iterdir()}
        return {link for link in links if not link.startswith("anon_inode:")}


if __name__ == "__main__":
    unittest.main()
