"""Ints that are given, or read from outside, whose values a derivative's tape assumes."""

from __future__ import annotations

from typing import Any

import numpy as np

from fwdad.frontend.captures import fetch
from fwdad.frontend.syntax.tracer import Tracer
from fwdad.frontend.ways import always_comes_by
from fwdad.ir.builder.array_contents import holds_ints
from fwdad.ir.ops import Value, walk
from fwdad.ir.symbol import UNBOUND
from fwdad.tangents.alike import alike

_MOST = 8  # contents of what is read from outside, for each of which there is a tape
_MOST_GIVEN = 3  # of arguments, which may be others at each call


class AssumedContents:
    """What ints from outside, and arrays of ints that are arguments or from outside, are.

    Nothing is assumed if it is not ``enabled``, nor until :meth:`assume`. Arrays that are too large
    to be compared at each run are unknown, and so are all where the program has written ints, or
    may have: in a loop, which can write some further below. ``known`` has what has been assumed for
    what is computed here: what changes again and again would be traced each time. ``lengths`` are
    those that are assumed, too.
    """

    def __init__(self, tracer: Tracer, known: set[int]) -> None:
        self._outside = tracer.outside
        recorder = tracer.recorder
        written = (v for block in recorder.blocks for op in walk(block) for v in op.writes())
        writes = any(v.type.dtype.kind in "iub" for v in written)
        self.enabled = not writes and always_comes_by(recorder)
        self.lengths: tuple[Any, ...] = ()
        self._known = known
        self._examples = recorder.examples
        self._used: dict[Value, tuple[Any, Any]] = {}
        self._given: dict[Value, Any] = {}

    def __call__(self, v: Value) -> Any:
        """What a value is; None if it is not known."""
        if not self.enabled:
            return None
        found = (c for c in self._outside.captures.found if c.value is v)
        capture = next(found, None)
        if capture is None:
            return self._argument(v)
        if v not in self._used:
            path = ("contents", capture.path)
            self._used[v] = path, fetch(path)
        if self._used[v][1] is UNBOUND:
            return None
        x = capture.fetch()
        return alike(x) if isinstance(x, np.ndarray) else x

    def _argument(self, v: Value) -> Any:
        """What an argument is in the example."""
        number, example = self._examples.of.get(v, (None, None))
        if number is None or not holds_ints(example):
            return None
        if v not in self._given:
            self._given[v] = alike(example)
        return self._given[v]

    def assume(self) -> bool:
        """Let the tape hold only as long as what was asked for stays; False if it must not.

        That is so where other contents have been assumed several times.
        """
        used = [(path, held) for path, held in self._used.values() if held is not UNBOUND]
        given = [(x.dtype.str, x.shape, x.tobytes()) for x in self._given.values()]
        if used or given or self.lengths:
            digest = hash((*(held for _, held in used), *given) or self.lengths)
            most = _MOST_GIVEN if given else _MOST
            if digest not in self._known and len(self._known) >= most:
                return False
            self._known.add(digest)
        for path, held in used:
            self._outside.guard(path, held)
        for v in self._given:
            self._examples.assume(v)
        return True
