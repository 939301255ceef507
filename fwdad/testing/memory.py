"""Checks of memory: what a function writes, and whose memory it returns."""

from __future__ import annotations

from typing import Any

import numpy as np

from fwdad.rules.core.containers import walk
from fwdad.testing.structure import copied, describe
from fwdad.testing.trial import Trial


def check_written(trial: Trial, _settings: Any) -> None:
    """The function writes into the arguments that ``mutates=`` names, and into no other."""
    rule = trial.writer or trial.rule
    if rule is None or not rule.of_user:
        return
    given, options = copied((tuple(trial.primals), trial.options))
    args, kwargs = rule.binder.unbind(given, options)
    rule.function(*args, **kwargs)
    now = dict(walk((given, options)))
    for path, before in walk((tuple(trial.primals), trial.options)):
        if not isinstance(before, np.ndarray) or now[path].tobytes() == before.tobytes():
            continue
        if path[0] or path[1] not in rule.mutates:
            name = f"option {path[1]}" if path[0] else trial.primal_name(path[1:])
            trial.fail(
                "writes",
                f"the function writes into {name}, but its rule says mutates={rule.mutates!r}",
                "declare which arguments it writes, mutates=(…), or make it return new arrays",
            )


def check_returned(trial: Trial, _settings: Any) -> None:
    """The result shares memory with an argument only as ``returns`` says: a write shows it.

    Two calls of the function do not return the same memory.
    """
    rule = trial.rule
    if rule is None or not rule.of_user or rule.returns == "either":
        return
    hint = "frule(…, returns='view') declares a view, returns='either' that it depends"
    calls = []
    for _ in range(2):
        copy = copied((tuple(trial.primals), trial.options))
        args, kwargs = rule.binder.unbind(*copy)
        calls.append((rule.function(*args, **kwargs), copy))
    (y, copy), (again, _) = calls
    shared = 0
    for path, part in walk(y):
        if not isinstance(part, np.ndarray) or not part.size:
            continue
        name = f"result{describe(path)}"
        for k, other in _written_through(part, (copy, again)):
            if k:
                what = f"{name} is the same memory in two calls"
                trial.fail("aliasing", what, "return a new array each time")
            shared += 1
            if rule.returns == "new":
                what = f"what is written into {name} changes {trial.primal_name(other[1:])}"
                trial.fail("aliasing", what, hint)
        if rule.returns == "view" and not shared:
            what = f"returns='view', but {name} shares no memory with an argument"
            trial.fail("aliasing", what, hint)


def _written_through(part: np.ndarray, others: tuple[Any, ...]) -> list[tuple[int, Any]]:
    """Where a write into an array is seen: the number of the value, and the path into it."""
    arrays = [
        (k, path, a) for k, x in enumerate(others) for path, a in walk(x)
        if isinstance(a, np.ndarray)
    ]  # fmt: skip
    if not part.flags.writeable:
        return [(k, path) for k, path, a in arrays if np.shares_memory(a, part)]
    kept, before = part.copy(), [a.tobytes() for _, _, a in arrays]
    part[...] = ~part if part.dtype.kind in "biu" else part + 1
    seen = [
        (k, path) for (k, path, a), old in zip(arrays, before, strict=True) if a.tobytes() != old
    ]
    part[...] = kept
    return seen
