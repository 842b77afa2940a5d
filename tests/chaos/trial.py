# SPDX-License-Identifier: Apache-2.0
"""The trial of the chaos test: trial.py MARKS STEPS SECONDS

Each step is marked in a file that all hosts see, with the host and the time, so that a trial that
was in two places at once shows. It reports at each step and saves a checkpoint at every second one,
where there are checkpoints.
"""

import json
import os
import pathlib
import sys
import time

import muster


def main():
    marks, steps, seconds = sys.argv[1], int(sys.argv[2]), float(sys.argv[3])
    # Small pieces at the end of a file are written whole.
    out = os.open(marks, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)

    def mark(what, step):
        line = {
            "trial": muster.trial_id(),
            "attempt": os.environ["MUSTER_ATTEMPT"],
            "host": os.uname().nodename,
            "what": what,
            "step": step,
            "at": time.time(),
        }
        os.write(out, (json.dumps(line) + "\n").encode())

    x = muster.config()["x"]
    # Some outlive a lease.
    seconds *= 10 if x < 0.15 else 1
    resume = muster.resume_dir()
    step = int((pathlib.Path(resume) / "step").read_text()) if resume else 0
    mark("begin", step)
    while step < steps:
        time.sleep(seconds)
        step += 1
        mark("step", step)
        muster.report(step=step, value=x * step)
        if muster.checkpoint_dir() and step % 2 == 0:
            directory = pathlib.Path(muster.checkpoint_dir()) / f"mine-{os.getpid()}"
            directory.mkdir(parents=True)
            (directory / "step").write_text(str(step))
            if muster.checkpoint(directory, step=step):
                mark("saved", step)
    mark("end", step)


main()
