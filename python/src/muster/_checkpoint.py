# SPDX-License-Identifier: Apache-2.0
"""Saving checkpoints: a directory is moved to where they are kept and made durable, then muster is
asked to keep it. A process that is killed on the way leaves a directory that nobody knows, which is
removed before the trial runs again."""

import errno
import itertools
import os
import shutil
import stat
from pathlib import Path
from typing import Optional, Union

from muster import _report
from muster._where import checkpoint_dir, is_active

_count = itertools.count()


def checkpoint(
    directory: "Union[str, os.PathLike[str]]", *, step: Optional[float] = None
) -> Optional[Path]:
    """Saves a checkpoint: hands `directory`, whole as it is, over to muster and waits until it is
    safe. Returns where it lies then; it is not where it was. None when it is not safe: then it is
    where it was, and stderr says why. Without `step` it is that of the last report.

    It is copied when it lies on another file system than checkpoint_dir(). Not under muster it stays
    as it is, and the answer is None.

    Raises NotADirectoryError or FileNotFoundError when `directory` is none; never because muster is
    gone or the disk is full.
    """
    source = os.path.realpath(directory)
    if not stat.S_ISDIR(os.stat(source).st_mode):
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), os.fspath(directory))
    place = checkpoint_dir()
    if not is_active():
        return None
    if place is None:
        _report.connection().note("this run keeps no checkpoints (MUSTER_CHECKPOINT_DIR is not set)")
        return None
    # On a connection of its own: other threads' reports need not wait for the disk. What was
    # reported before goes first, since the step may be taken from there.
    _report.connection().settle()
    saver = _report.Connection()
    try:
        name = _move_and_keep(saver, source, place, step)
    except OSError as problem:
        _report.connection().note(f"the checkpoint {source} is not saved: {problem}")
        return None
    finally:
        saver.close()
    if name is None:
        return None
    _report.connection().checkpoint_saved()
    return place / name


def _move_and_keep(
    saver: _report.Connection, source: str, place: Path, step: Optional[float]
) -> Optional[str]:
    _make_private_directories(place)
    member = os.environ.get("MUSTER_MEMBER", "")
    attempt = os.environ.get("MUSTER_ATTEMPT", "")
    fresh = place / f".new-{attempt}-{member}-{os.getpid()}-{next(_count)}"
    copied = False
    try:
        os.rename(source, fresh)
    except OSError as problem:
        if problem.errno != errno.EXDEV:
            raise
        copied = True
    name = None
    try:
        if copied:
            shutil.copytree(source, fresh, symlinks=True)
        _sync_tree(fresh)
        name = saver.keep(fresh.name, None if step is None else float(step))
    finally:
        if copied:
            shutil.rmtree(fresh if name is None else source, ignore_errors=True)
        elif name is None and fresh.exists():
            os.rename(fresh, source)
    return name


def _make_private_directories(path: Path) -> None:
    for part in [*reversed(path.parents), path]:
        if not part.is_dir():
            try:
                part.mkdir(mode=0o700)
            except FileExistsError:
                pass


def _sync_tree(root: Path) -> None:
    def fail(problem: OSError) -> None:
        raise problem

    for directory, _, files in os.walk(root, onerror=fail):
        for name in files:
            path = os.path.join(directory, name)
            if stat.S_ISREG(os.lstat(path).st_mode):
                _sync(path)
        _sync(directory)


def _sync(path: str) -> None:
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    try:
        os.fsync(descriptor)
    except OSError as problem:
        # Some file systems do not sync directories; of a file it would be about its content.
        if not (os.path.isdir(path) and problem.errno in (errno.EINVAL, errno.EROFS, errno.ENOTSUP)):
            raise
    finally:
        os.close(descriptor)
