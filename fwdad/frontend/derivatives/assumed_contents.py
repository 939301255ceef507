"""Ints from outside whose values the trace of a derivative uses, and its tape then assumes."""

from __future__ import annotations

from typing import Any

import numpy as np

from fwdad.frontend.captures import fetch
from fwdad.frontend.syntax.tracer import Tracer
from fwdad.frontend.ways import always_comes_by
from fwdad.ir.ops import Value, walk
from fwdad.ir.symbol import UNBOUND
from fwdad.tangents.alike import alike

_MOST = 8  # tapes, one for each content


class AssumedContents:
    """What ints, and arrays of ints, that a trace reads from outside are.

    Nothing is assumed if it is not ``enabled``, nor until :meth:`assume`. Arrays that are too large
    to be compared at each run are unknown, and so are all where the program has written ints, or
    may have: in a loop, which can write some further below. ``times`` tells how often something has
    been assumed for what is computed here: what changes again and again would be traced each time.
    ``of_lengths`` is whether lengths have been assumed, too.
    """

    def __init__(self, tracer: Tracer, times: int) -> None:
        self._outside = tracer.outside
        recorder = tracer.recorder
        written = (v for block in recorder.blocks for op in walk(block) for v in op.writes())
        writes = any(v.type.dtype.kind in "iub" for v in written)
        self.enabled = not writes and times < _MOST and always_comes_by(recorder)
        self.of_lengths = False
        self._used: dict[Value, tuple[Any, Any]] = {}

    def __call__(self, v: Value) -> Any:
        """What a value is; None if it is not known."""
        found = (c for c in self._outside.captures.found if c.value is v)
        capture = next(found, None) if self.enabled else None
        if capture is None:
            return None
        if v not in self._used:
            path = ("contents", capture.path)
            self._used[v] = path, fetch(path)
        if self._used[v][1] is UNBOUND:
            return None
        x = capture.fetch()
        return alike(x) if isinstance(x, np.ndarray) else x

    def assume(self) -> bool:
        """Let the tape hold only as long as what was asked for stays; whether it assumes more."""
        used = [(path, held) for path, held in self._used.values() if held is not UNBOUND]
        for path, held in used:
            self._outside.guard(path, held)
        return bool(used) or self.of_lengths
