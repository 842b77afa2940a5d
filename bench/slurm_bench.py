#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How fast many short tasks run under Slurm: as steps, as a job array, as trials of muster.

Brings up a Slurm of its own on this machine (tests/cluster/slurm.sh, as root), so that all three
share the same nodes, the same cores and the same controller in one run.

    bench/slurm_bench.py [tasks]      200; MUSTER names the program, else build/release/bin/muster
"""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
CLUSTER = ROOT / "tests" / "cluster" / "slurm.sh"
NODES = 4
CPUS = 8
AT_ONCE = (4, 8, 16, 32)
ROUNDS = 3

STEPS = """#!/bin/sh
#SBATCH --exclusive --ntasks-per-node=1 --output=steps.out
unset SLURM_NTASKS SLURM_NTASKS_PER_NODE SLURM_NPROCS SLURM_TASKS_PER_NODE
for at_once in {at_once}; do
    begin=$(date +%s%N)
    seq {tasks} | xargs -P $at_once -I '{{}}' srun --quiet --exact -N1 -n1 -c1 true
    echo $at_once $(($(date +%s%N) - begin))
done > steps
"""
ARRAY = """#!/bin/sh
#SBATCH --ntasks=1 --output=/dev/null
exec true
"""
MUSTER = """#!/bin/sh
#SBATCH --exclusive --mem=0 --ntasks-per-node=1 --output=muster.out
for round in {rounds}; do
    begin=$(date +%s%N)
    "$MUSTER" launch --with srun -- run sweep.yaml --plain --fresh
    echo $(($(date +%s%N) - begin))
done > muster
"""


def main():
    tasks = int(sys.argv[1]) if len(sys.argv) > 1 else 200
    program = os.environ.get("MUSTER", str(ROOT / "build" / "release" / "bin" / "muster"))
    with tempfile.TemporaryDirectory(prefix="muster-slurm-bench-") as base:
        cluster = pathlib.Path(base) / "cluster"
        work = pathlib.Path(base) / "work"
        work.mkdir()

        def slurm(verb, *args):
            return subprocess.run(
                [CLUSTER, verb, cluster, *map(str, args)],
                cwd=work,
                env={**os.environ, "MUSTER": program},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                text=True,
                check=True,
            ).stdout

        def submit_and_wait(*args):
            slurm("run", "sbatch", "--parsable", *args)
            while slurm("run", "squeue", "-h"):
                time.sleep(0.05)

        ready = subprocess.run([CLUSTER, "check"], check=False)
        if ready.returncode != 0:
            return ready.returncode
        slurm("up", f"nodes={NODES}", f"cpus={CPUS}", f"owner={os.getpid()}")
        try:
            steps = steps_rate(work, tasks, submit_and_wait)
            array = array_rate(work, tasks, submit_and_wait)
            whole, inner = muster_rates(work, tasks, submit_and_wait)
        finally:
            slurm("down")
    print(f"{tasks} tasks of `true` on {NODES} nodes of {CPUS} CPUs, each a second:")
    print(f"  srun --exact steps, at best    {steps:8.0f}")
    print(f"  job array                      {array:8.0f}")
    print(f"  muster, with start and end     {whole:8.0f}   {whole / steps:5.1f} x steps")
    print(f"  muster, first trial to last    {inner:8.0f}   {inner / steps:5.1f} x steps")
    return 0


def steps_rate(work, tasks, submit_and_wait):
    script = work / "steps.sh"
    script.write_text(STEPS.format(tasks=tasks, at_once=" ".join(map(str, AT_ONCE))))
    submit_and_wait(f"--nodes={NODES}", script)
    rates = [tasks / (int(line.split()[1]) / 1e9) for line in (work / "steps").open()]
    return max(rates)


def array_rate(work, tasks, submit_and_wait):
    script = work / "array.sh"
    script.write_text(ARRAY)
    begin = time.monotonic()
    submit_and_wait(f"--array=1-{tasks}", script)
    return tasks / (time.monotonic() - begin)


def muster_rates(work, tasks, submit_and_wait):
    spec = {"name": "sweep", "num_samples": tasks, "trial": {"command": ["true"]}}
    (work / "sweep.yaml").write_text(json.dumps(spec))
    script = work / "muster.sh"
    script.write_text(MUSTER.format(rounds=" ".join(map(str, range(ROUNDS)))))
    submit_and_wait(f"--nodes={NODES}", script)
    seconds = sorted(int(line) / 1e9 for line in (work / "muster").open() if line.strip().isdigit())
    inner = []
    for live in (work / "results").glob("sweep*/live.json"):
        told = json.loads(live.read_text())
        assert told["counts"] == {"completed": tasks}, told
        inner.append(told["experiment_seconds"])
    return tasks / seconds[len(seconds) // 2], tasks / sorted(inner)[len(inner) // 2]


if __name__ == "__main__":
    sys.exit(main())
