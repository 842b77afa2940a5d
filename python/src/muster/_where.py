# SPDX-License-Identifier: Apache-2.0
"""What muster says to a trial in its environment."""

import os
from pathlib import Path
from typing import Optional


def is_active() -> bool:
    """Whether this process runs under muster."""
    return bool(os.environ.get("MUSTER_SOCKET"))


def trial_id() -> Optional[str]:
    """The trial's name, "00042"; None when not under muster."""
    return os.environ.get("MUSTER_TRIAL_ID") or None


def attempt() -> Optional[str]:
    """This execution of the trial, "1.7"; None when not under muster."""
    return os.environ.get("MUSTER_ATTEMPT") or None


def trial_dir() -> Optional[Path]:
    """The trial's directory in the experiment's storage. It may have to be made."""
    return _path("MUSTER_TRIAL_DIR")


def resume_dir() -> Optional[Path]:
    """The checkpoint to resume from, a directory; None when there is none: begin from nothing. Read
    it at the start, for it is removed once there are enough newer ones."""
    return _path("MUSTER_CHECKPOINT")


def checkpoint_dir() -> Optional[Path]:
    """Where this trial's checkpoints lie; None when not under muster. What is written to a directory
    of its own in here need not be copied for checkpoint(). It may have to be made."""
    return _path("MUSTER_CHECKPOINT_DIR")


def _path(variable: str) -> Optional[Path]:
    value = os.environ.get(variable)
    return Path(value) if value else None
