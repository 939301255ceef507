"""Ints from outside whose values the trace of a derivative uses, and its tape then assumes."""

from __future__ import annotations

from typing import Any

import numpy as np

from fwdad.frontend.captures import fetch
from fwdad.frontend.syntax.tracer import Tracer
from fwdad.ir.ops import Value, walk
from fwdad.ir.symbol import UNBOUND
from fwdad.tangents.alike import alike


class AssumedContents:
    """What ints, and arrays of ints, that a trace reads from outside are.

    Nothing is assumed until :meth:`assume`. Arrays that are too large to be compared at each run
    are unknown, and so are all where the program has written ints.
    """

    def __init__(self, tracer: Tracer) -> None:
        self._outside = tracer.outside
        recorder = tracer.recorder
        written = (v for block in recorder.blocks for op in walk(block) for v in op.writes())
        self._none = any(v.type.dtype.kind in "iub" for v in written)
        self._used: dict[Value, tuple[Any, Any]] = {}

    def __call__(self, v: Value) -> Any:
        """What a value is; None if it is not known."""
        found = (c for c in self._outside.captures.found if c.value is v)
        capture = None if self._none else next(found, None)
        if capture is None:
            return None
        if v not in self._used:
            path = ("contents", capture.path)
            self._used[v] = path, fetch(path)
        if self._used[v][1] is UNBOUND:
            return None
        x = capture.fetch()
        return alike(x) if isinstance(x, np.ndarray) else x

    def assume(self) -> None:
        """Let the tape hold only as long as what was asked for stays the same."""
        for path, held in self._used.values():
            if held is not UNBOUND:
                self._outside.guard(path, held)
