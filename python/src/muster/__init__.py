# SPDX-License-Identifier: Apache-2.0
"""For Python programs that run as trials under muster.

    import muster

    lr = muster.get("lr", 0.1)
    for epoch in range(1, 21):
        muster.report(step=epoch, loss=train(lr))
        if muster.should_stop():
            break

Not under muster everything works and does nothing, so that the same program also runs alone. Nothing
here raises because muster is gone, and nothing waits without end.
"""

from muster._config import config, get
from muster._report import Decision, MetricValue, report, should_stop
from muster._where import attempt, checkpoint_dir, is_active, trial_dir, trial_id

__all__ = [
    "Decision",
    "MetricValue",
    "attempt",
    "checkpoint_dir",
    "config",
    "get",
    "is_active",
    "report",
    "should_stop",
    "trial_dir",
    "trial_id",
]
__version__ = "0.1.0"
