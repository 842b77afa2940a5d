#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes the sample experiment that kept_test.py restores: see README.md beside it.

usage: make_journal.py MUSTER DIRECTORY
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


def wait(condition, what):
    end = time.monotonic() + 60
    while not condition():
        if time.monotonic() > end:
            sys.exit(f"make_journal.py: waited in vain for {what}")
        time.sleep(0.05)


def main(muster, target):
    work = pathlib.Path(tempfile.mkdtemp(prefix="muster-kept-"))
    (work / "tries").mkdir()
    spec = work / "sweep.yaml"
    spec.write_text(json.dumps(SPEC, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    experiment = work / "results/kept"
    line = [muster, "run", "sweep.yaml", "--node-resources", "cpu=2", "--plain"]

    def begin():
        return subprocess.Popen(line, cwd=work, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def running():
        try:
            live = json.loads((experiment / "live.json").read_text())
        except (OSError, ValueError):
            return []
        return sorted(int(trial["trial"]) for trial in live["running"] if trial.get("metrics"))

    run = begin()
    wait(lambda: running() == [92, 93], "the first trials that stay")
    run.send_signal(signal.SIGINT)
    run.wait()

    (work / "go-92").touch()
    run = begin()
    wait(lambda: running() == [93, 94], "the next trials that stay")
    run.send_signal(signal.SIGINT)
    run.wait()

    # The first segment is condensed now that the second has an end.
    (work / "go-93").touch()
    run = begin()
    wait(lambda: running() == [94, 95], "the last trials that stay")
    first = experiment / "journal/state-000001.log"
    wait(lambda: b'"lines":' in first.read_bytes().split(b"\n", 1)[0], "a condensed segment")
    run.send_signal(signal.SIGKILL)
    run.wait()

    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(experiment, target)
    shutil.copy(spec, target)
    for name in ("owner", "live.json"):
        (target / name).unlink(missing_ok=True)
    # Readable by whoever checks the repository out.
    for path in target.rglob("*"):
        os.chmod(path, 0o755 if path.is_dir() else 0o644)
    shutil.rmtree(work)


if __name__ == "__main__":
    main(os.path.abspath(sys.argv[1]), pathlib.Path(sys.argv[2]).absolute())
