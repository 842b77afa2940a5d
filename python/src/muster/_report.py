# SPDX-License-Identifier: Apache-2.0
"""The client of the report protocol (docs/report-protocol.md).

One connection a process, made when it is first needed and again when it was lost. A lock orders the
threads; a child after fork starts anew, since its parent goes on with the connection.
"""

import json
import math
import os
import select
import socket
import sys
import threading
import time
from typing import Any, Dict, List, Literal, Mapping, Optional, Union, overload

Decision = Literal["continue", "stop"]

#: What a metric may be. Anything with an `item()`, such as a NumPy scalar, is taken as what that
#: returns.
MetricValue = Any

_SEND_SECONDS = 60.0
_ANSWER_SECONDS = 60.0
# Until a checkpoint is safe: storage can be slow.
_CHECKPOINT_SECONDS = 600.0


@overload
def report(
    metrics: Optional[Mapping[str, MetricValue]] = None,
    *,
    wait: Literal[False] = False,
    **more: MetricValue,
) -> bool: ...


@overload
def report(
    metrics: Optional[Mapping[str, MetricValue]] = None,
    *,
    wait: Literal[True],
    **more: MetricValue,
) -> Decision: ...


def report(
    metrics: Optional[Mapping[str, MetricValue]] = None,
    *,
    wait: bool = False,
    **more: MetricValue,
) -> Union[bool, Decision]:
    """Reports metrics: report(step=4, loss=0.31) or report({"train/loss": 0.31}, step=4).

    `step` is the trial's own count of progress; without it muster counts. Returns whether the report
    was handed over; with `wait`, the decision: "continue" or "stop".

    Raises TypeError for a value that is no metric, ValueError for no metric at all; never because
    muster is gone or absent.
    """
    given: Dict[str, Any] = {}
    for name, value in {**(metrics or {}), **more}.items():
        if not isinstance(name, str):
            raise TypeError(f"the name of a metric must be a str, not {name!r}")
        given[name] = _plain(value, name)
    if not given:
        raise ValueError("a report needs at least one metric")
    return connection().report(given, wait)


def should_stop() -> bool:
    """Whether muster has asked this trial to end. Never waits."""
    return connection().should_stop()


def time_left() -> Optional[float]:
    """The seconds that this run still lasts, once muster has warned that it ends (`end.warning` in
    the spec); None before. Never waits."""
    end = connection().end()
    return None if end is None else max(0.0, end - time.monotonic())


def should_checkpoint() -> bool:
    """Whether to save a checkpoint now: muster has warned that the run ends, and none was saved
    since. Never waits."""
    return connection().should_checkpoint()


def _plain(value: Any, name: str) -> Any:
    """`value` as JSON has it, non-finite numbers as the texts that stand for them."""
    if value is None or isinstance(value, (bool, str)):
        return str(value) if isinstance(value, str) else value
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float):
        if math.isfinite(value):
            return float(value)
        return "nan" if math.isnan(value) else "inf" if value > 0 else "-inf"
    if isinstance(value, Mapping):
        return {str(key): _plain(inner, f"{name}/{key}") for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(inner, name) for inner in value]
    item = getattr(value, "item", None)
    if callable(item):
        try:
            plain = item()
        except (TypeError, ValueError, RuntimeError) as problem:
            raise TypeError(f"the metric {name!r} is not one value: {problem}") from None
        if type(plain) is not type(value):
            return _plain(plain, name)
    for convert in ("__index__", "__float__"):
        if hasattr(value, convert):
            return _plain(int(value) if convert == "__index__" else float(value), name)
    raise TypeError(
        f"the metric {name!r} has the type {type(value).__name__}; metrics are numbers, bools, texts, None,"
        " lists and dicts of these"
    )


class Connection:
    """To muster. Most of it is used through the one that connection() returns."""

    def __init__(self) -> None:
        self._reset()

    def _reset(self) -> None:
        self._process = os.getpid()
        self._lock = threading.Lock()
        self._socket: Optional[socket.socket] = None
        self._incoming = b""
        # Lines sent on this connection: answers name the line that they answer.
        self._lines = 0
        self._answer: Optional[Dict[str, Any]] = None
        self._stop = False
        # When the time ends, by the monotonic clock.
        self._end: Optional[float] = None
        self._wants_checkpoint = False
        self._turned_away = False
        self._problem = ""

    def after_fork(self) -> None:
        """The parent goes on with its connection, and its lock may be held for ever."""
        old = self._socket
        self._reset()
        if old is not None:
            old.close()

    def report(self, metrics: Dict[str, Any], wait: bool) -> Union[bool, Decision]:
        message: Dict[str, Any] = {"type": "report", "metrics": metrics}
        if wait:
            message["wait"] = True
        line = json.dumps(message, ensure_ascii=False, allow_nan=False).encode(
            "utf-8", "surrogatepass"
        )
        with self._lock:
            handed_over = self._deliver(line + b"\n")
            if not wait:
                self._read_now()
                return handed_over
            answer = self._await_answer(_ANSWER_SECONDS) if handed_over else None
            decided = answer is not None and answer.get("decision") == "stop"
            return "stop" if decided or self._stop else "continue"

    def should_stop(self) -> bool:
        with self._lock:
            self._look()
            return self._stop

    def end(self) -> Optional[float]:
        with self._lock:
            self._look()
            return self._end

    def should_checkpoint(self) -> bool:
        with self._lock:
            self._look()
            return self._wants_checkpoint

    def checkpoint_saved(self) -> None:
        with self._lock:
            self._wants_checkpoint = False

    def settle(self) -> None:
        """Waits until what was reported so far has been taken in on this node."""
        with self._lock:
            if self._socket is not None and self._send(b'{"type": "config"}\n'):
                self._await_answer(_ANSWER_SECONDS)

    def keep(self, fresh: str, step: Optional[float]) -> Optional[str]:
        """Asks muster to keep the directory `fresh` of checkpoint_dir() and waits until it is safe.
        The name that it has then; None when it is not kept."""
        message: Dict[str, Any] = {"type": "checkpoint", "path": fresh}
        if step is not None:
            message["step"] = step
        with self._lock:
            if not self._deliver(json.dumps(message).encode() + b"\n"):
                return None
            answer = self._await_answer(_CHECKPOINT_SECONDS)
            name = answer.get("name") if answer else None
            return name if isinstance(name, str) else None

    def close(self) -> None:
        with self._lock:
            self._close()

    def note(self, problem: str) -> None:
        """Each problem is printed once while it lasts."""
        with self._lock:
            self._note(problem)

    def _note(self, problem: str) -> None:
        if problem != self._problem:
            print(f"muster: {problem}", file=sys.stderr)
        self._problem = problem

    def _close(self) -> None:
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    def _connect(self) -> bool:
        if self._socket is not None or self._turned_away:
            return self._socket is not None
        path = os.environ.get("MUSTER_SOCKET")
        if not path:
            return False
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            connection.settimeout(_SEND_SECONDS)
            connection.connect(path)
            connection.setblocking(False)
        except OSError as problem:
            connection.close()
            self._note(f"cannot reach muster at {path}: {problem}")
            return False
        self._socket = connection
        self._incoming = b""
        self._lines = 0
        hello: Dict[str, Any] = {
            "type": "hello",
            "protocol": 1,
            "trial": os.environ.get("MUSTER_TRIAL_ID", ""),
            "attempt": os.environ.get("MUSTER_ATTEMPT", ""),
        }
        member = os.environ.get("MUSTER_MEMBER", "")
        if member.isdigit():
            hello["member"] = int(member)
        return self._send(json.dumps(hello).encode() + b"\n")

    def _look(self) -> None:
        if self._connect():
            self._read_now()

    def _deliver(self, line: bytes) -> bool:
        """Sends the line; on a new connection when the one there turns out to be closed."""
        for _ in range(2):
            if not self._connect():
                return False
            if self._send(line):
                return True
            if self._turned_away:
                return False
        return False

    def _send(self, line: bytes) -> bool:
        assert self._socket is not None
        deadline = time.monotonic() + _SEND_SECONDS
        self._lines += 1
        rest = memoryview(line)
        while rest:
            try:
                # Python ignores SIGPIPE, but a program may have set it back.
                rest = rest[self._socket.send(rest, socket.MSG_NOSIGNAL) :]
            except BlockingIOError:
                if not _ready(self._socket, select.POLLOUT, deadline):
                    # Half a line is of no use, so the connection ends here.
                    self._close()
                    self._note("muster takes no reports")
                    return False
            except OSError:
                # Why it was closed may stand in what it said last.
                self._read_now()
                self._close()
                if not self._turned_away:
                    self._note("muster has closed the connection")
                return False
        return True

    def _await_answer(self, patience: float) -> Optional[Dict[str, Any]]:
        self._answer = None
        deadline = time.monotonic() + patience
        while self._socket is not None and self._answer is None:
            if not _ready(self._socket, select.POLLIN, deadline):
                self._close()
                self._note("muster did not answer in time")
                return None
            self._read_now()
        if self._answer is None and not self._turned_away:
            self._note("muster has closed the connection")
        return self._answer

    def _read_now(self) -> None:
        """Takes in what muster has said, without waiting."""
        while self._socket is not None:
            try:
                some = self._socket.recv(65536)
            except BlockingIOError:
                return
            except OSError:
                some = b""
            if not some:
                self._close()
                return
            *lines, self._incoming = (self._incoming + some).split(b"\n")
            self._handle(lines)

    def _handle(self, lines: List[bytes]) -> None:
        for line in lines:
            try:
                message = json.loads(line)
            except ValueError:
                continue
            kind = message.get("type")
            if kind == "stop":
                self._stop = True
            elif kind == "warning":
                self._end = time.monotonic() + float(message.get("seconds") or 0)
                self._wants_checkpoint = True
            elif kind == "error":
                self._note(f"refused: {message.get('text')}")
                self._turned_away = self._turned_away or bool(message.get("closed"))
            if message.get("line") == self._lines:
                self._answer = message


def _ready(connection: socket.socket, what: int, deadline: float) -> bool:
    poll = select.poll()
    poll.register(connection, what)
    return bool(poll.poll(max(0.0, deadline - time.monotonic()) * 1000))


def connection() -> Connection:
    """The process's own."""
    return _connection


_connection = Connection()
os.register_at_fork(after_in_child=_connection.after_fork)
