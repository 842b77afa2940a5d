# SPDX-License-Identifier: Apache-2.0
"""The values that muster chose for this trial."""

import copy
import json
import os
from typing import Any, Dict, Optional, Tuple

_MISSING = object()
# The file's path and what it held: it does not change while a trial runs.
_known: Optional[Tuple[str, Dict[str, Any]]] = None


def config() -> Dict[str, Any]:
    """The whole config, nested; empty when not under muster. Changing it changes nothing else."""
    return copy.deepcopy(_config())


def get(key: str, default: Any = _MISSING) -> Any:
    """The value of `key` ("augment/flip" inside groups), else `default`.

    Raises KeyError, naming the keys that there are, when there is neither.
    """
    found = _find(_config(), key)
    if found is not _MISSING:
        return copy.deepcopy(found)
    if default is not _MISSING:
        return default
    if not os.environ.get("MUSTER_CONFIG"):
        raise KeyError(f"{key!r}: not under muster, so there is no config; give a default")
    known = ", ".join(sorted(_config())) or "none"
    raise KeyError(f"{key!r} is not in the config; it has {known}")


def _config() -> Dict[str, Any]:
    global _known
    path = os.environ.get("MUSTER_CONFIG")
    if not path:
        return {}
    if _known is None or _known[0] != path:
        with open(path, encoding="utf-8") as file:
            _known = (path, json.load(file))
    return _known[1]


def _find(group: Any, key: str) -> Any:
    if not isinstance(group, dict):
        return _MISSING
    if key in group:
        return group[key]
    for name, value in group.items():
        if key.startswith(name + "/"):
            found = _find(value, key[len(name) + 1 :])
            if found is not _MISSING:
                return found
    return _MISSING
