#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes the sample experiments that kept_test.py restores: see README.md beside it.

usage: make_journal.py MUSTER DIRECTORY, whose name says which: journal-v1, journal-v1-checkpoints
"""

import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time

FLAKY = 90  # Fail four times with long words, which makes a segment that is worth condensing.
SHELL = """
n=$(cat tries/$MUSTER_TRIAL_ID 2>/dev/null || echo 0); echo $((n + 1)) > tries/$MUSTER_TRIAL_ID
if [ {a} = 90 ] || { [ {a} -lt 90 ] && [ $n -lt 4 ]; }; then
    for i in 1 2 3 4 5 6 7 8 9; do printf '%400d\\n' $i >&2; done; exit 3
fi
if [ {a} = 91 ]; then echo y=nan; echo y=-inf; exit 0; fi
echo y={a}
if [ {a} -ge 92 ] && [ ! -e go-{a} ] && [ ! -e go ]; then exec sleep 600; fi
echo y={a}.5
"""
SPEC = {
    "name": "kept",
    "metric": "y",
    "mode": "max",
    "seed": 11,
    "max_concurrent_trials": 2,
    "space": {
        "a": {"grid": list(range(FLAKY + 10))},
        "lr": {"loguniform": [1e-5, 1e-1]},
        "text": {"choice": ["nan", "'nan", "é", True, 1, 1.0]},
    },
    "trial": {
        "shell": SHELL.replace("{ [", "{{ [").replace("; }; then", "; }}; then"),
        "metrics": {"from": "stdout", "pattern": r"y=(?P<y>\S+)"},
        "output": "discard",
        "grace": "1s",
    },
    "failures": {"max_failures": 5},
}

# Trial a counts to 6 and saves each step, and stops for a while where a file is missing.
SAVING = """
step=0
if [ -n "$MUSTER_CHECKPOINT" ]; then step=$(cat "$MUSTER_CHECKPOINT/step"); fi
while [ $step -lt 6 ]; do
    step=$((step + 1))
    muster report y={a}.$step step=$step
    mkdir -p "$MUSTER_CHECKPOINT_DIR/new" && echo $step > "$MUSTER_CHECKPOINT_DIR/new/step"
    muster checkpoint "$MUSTER_CHECKPOINT_DIR/new" || exit 9
    if [ {a} = 1 ] && [ $step -ge 3 ] && [ ! -e repaired ]; then echo broken >&2; exit 3; fi
    if [ {a} = 2 ] && [ $step -ge 4 ]; then echo broken for ever >&2; exit 4; fi
    if [ {a} -ge 3 ] && [ $step -ge 5 ] && [ ! -e go-{a} ] && [ ! -e go ]; then exec sleep 600; fi
done
"""
SAVING_SPEC = {
    "name": "kept_checkpoints",
    "metric": "y",
    "mode": "max",
    "seed": 12,
    "max_concurrent_trials": 2,
    "space": {"a": {"grid": list(range(7))}},
    "trial": {
        "shell": SAVING.replace("{M", "{{M"),
        "output": "discard",
        "grace": "1s",
    },
    "checkpoints": {"keep": 2},
    "end": {"warning": "1s"},
}


def wait(condition, what):
    end = time.monotonic() + 60
    while not condition():
        if time.monotonic() > end:
            sys.exit(f"make_journal.py: waited in vain for {what}")
        time.sleep(0.05)


class Experiment:
    """Runs of one spec in a directory of their own."""

    def __init__(self, muster, spec):
        self.muster = muster
        self.dir = pathlib.Path(tempfile.mkdtemp(prefix="muster-kept-"))
        self.kept = self.dir / "results" / spec["name"]
        text = json.dumps(spec, indent=1, ensure_ascii=False)
        (self.dir / "sweep.yaml").write_text(text + "\n", encoding="utf-8")

    def begin(self, *options):
        line = [self.muster, "run", "sweep.yaml", "--node-resources", "cpu=2", "--plain", *options]
        nowhere = subprocess.DEVNULL
        return subprocess.Popen(line, cwd=self.dir, stdout=nowhere, stderr=nowhere)

    def running(self, step=1):
        """Trials that run now and came to this step."""
        try:
            live = json.loads((self.kept / "live.json").read_text())
        except (OSError, ValueError):
            return []
        return sorted(
            int(trial["trial"])
            for trial in live["running"]
            if trial.get("metrics") and trial["step"] >= step
        )

    def counts(self):
        return json.loads((self.kept / "live.json").read_text())["counts"]

    def keep(self, target):
        shutil.rmtree(target, ignore_errors=True)
        shutil.copytree(self.kept, target)
        shutil.copy(self.dir / "sweep.yaml", target)
        for name in ("owner", "live.json"):
            (target / name).unlink(missing_ok=True)
        # Readable by whoever checks the repository out.
        for path in target.rglob("*"):
            os.chmod(path, 0o755 if path.is_dir() else 0o644)
        shutil.rmtree(self.dir)


def make_failures(muster, target):
    experiment = Experiment(muster, SPEC)
    (experiment.dir / "tries").mkdir()
    run = experiment.begin()
    wait(lambda: experiment.running() == [92, 93], "the first trials that stay")
    run.send_signal(signal.SIGINT)
    run.wait()

    (experiment.dir / "go-92").touch()
    run = experiment.begin()
    wait(lambda: experiment.running() == [93, 94], "the next trials that stay")
    run.send_signal(signal.SIGINT)
    run.wait()

    # The first segment is condensed now that the second has an end.
    (experiment.dir / "go-93").touch()
    run = experiment.begin()
    wait(lambda: experiment.running() == [94, 95], "the last trials that stay")
    first = experiment.kept / "journal/state-000001.log"
    wait(lambda: b'"lines":' in first.read_bytes().split(b"\n", 1)[0], "a condensed segment")
    run.send_signal(signal.SIGKILL)
    run.wait()
    experiment.keep(target)


def make_checkpoints(muster, target):
    experiment = Experiment(muster, SAVING_SPEC)
    # Trials 1 and 2 fail; 3 and 4 are told that the time is up, and pause.
    run = experiment.begin()
    wait(lambda: experiment.running(step=5) == [3, 4], "the first trials that stay")
    run.send_signal(signal.SIGTERM)
    if run.wait() != 75:
        sys.exit(f"make_journal.py: the run ended with {run.returncode}")

    # Trial 1 is repaired, 2 fails again, 4 runs when all is killed.
    for name in ("repaired", "go-3", "go-5", "go-6"):
        (experiment.dir / name).touch()
    run = experiment.begin("--retry", "failed")
    wait(
        lambda: experiment.counts() == {"running": 1, "completed": 5, "failed": 1},
        "all trials but one",
    )
    run.send_signal(signal.SIGKILL)
    run.wait()
    experiment.keep(target)


MAKERS = {"journal-v1": make_failures, "journal-v1-checkpoints": make_checkpoints}


def main(muster, target):
    MAKERS[target.name](muster, target)


if __name__ == "__main__":
    main(os.path.abspath(sys.argv[1]), pathlib.Path(sys.argv[2]).absolute())
