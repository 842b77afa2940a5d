# SPDX-License-Identifier: Apache-2.0
"""For Python programs that run as trials under muster.

    import muster

    lr = muster.get("lr", 0.1)
    for epoch in range(1, 21):
        muster.report(step=epoch, loss=train(lr))
        if muster.should_stop():
            break

muster.checkpoint(directory) saves what the trial has come to; muster.resume_dir() is where to go on
from when it runs again.

Not under muster everything works and does nothing, so that the same program also runs alone. Nothing
here raises because muster is gone, and nothing waits without end.
"""

from muster._checkpoint import checkpoint
from muster._config import config, get
from muster._report import Decision, MetricValue, report, should_checkpoint, should_stop, time_left
from muster._where import attempt, checkpoint_dir, is_active, resume_dir, trial_dir, trial_id

__all__ = [
    "Decision",
    "MetricValue",
    "attempt",
    "checkpoint",
    "checkpoint_dir",
    "config",
    "get",
    "is_active",
    "report",
    "resume_dir",
    "should_checkpoint",
    "should_stop",
    "time_left",
    "trial_dir",
    "trial_id",
]
__version__ = "0.1.0"
