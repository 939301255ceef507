"""Loops over elements as lines: their indices, and functions that run long ones on threads."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from fwdad.codegen.loops import parallel_elements
from fwdad.codegen.loops.draft import Draft


class LoopLines:
    """Writes the heads of loops, and moves finished loops into functions of their own.

    ``inner`` are indices that are inside every array that they index, ``inside`` those that have
    been checked, and their steps; ``stepped`` has the length that a step belongs to. ``in_thread``
    tells whether the code being written runs on one of several threads.
    """

    def __init__(self, draft: Draft) -> None:
        self.code, self.names = draft.code, draft.names
        self.parallel = draft.program.parallel
        self.outlined, self.typed = draft.module.outlined, draft.module.typed
        self.inner: list[str] = []
        self.inside: list[str] = []
        self.stepped: dict[str, str] = {}
        self.in_thread = False
        self._indices: list[str] = []

    def open(self, lengths: Sequence[str], *, inner: bool = False) -> list[str]:
        """Begin one loop over each axis; returns the indices.

        Those of an ``inner`` loop are not checked where they are used: the lengths of all that is
        read and written there have been compared before.
        """
        names = self.index_names(len(lengths), inner=inner)
        for name, length in zip(names, lengths, strict=True):
            self.code.line(f"for {name} in range({length}):")
            self.code.indent += 1
        return names

    def close(self, names: Sequence[str]) -> None:
        """End the loops of :meth:`open`."""
        self.code.indent -= len(names)

    @contextmanager
    def nest(self, lengths: Sequence[str], *, inner: bool = False) -> Iterator[list[str]]:
        """One loop over each axis, as :meth:`open` begins them, around a block."""
        names = self.open(lengths, inner=inner)
        yield names
        self.close(names)

    @contextmanager
    def over(
        self, index: Sequence[str], lengths: Sequence[str], axes: Sequence[int]
    ) -> Iterator[None]:
        """Loops over some axes of an array around a block."""
        for k in axes:
            self.code.line(f"for {index[k]} in range({lengths[k]}):")
            self.code.indent += 1
        yield
        self.code.indent -= len(axes)

    def index_names(self, n: int, *, inner: bool = False) -> list[str]:
        """Names for the indices of nested loops."""
        names = self.inner if inner else self._indices
        while len(names) < n:
            names.append(self.names.temporary("ijklmnpq"[len(names) % 8]))
        return names[:n]

    @property
    def spreads(self) -> bool:
        """Whether what is written now may run on several threads."""
        return self.parallel and not self.in_thread and parallel_elements.can_nest()

    def spread(self, start: int, lengths: Sequence[str]) -> None:
        """Let the loop nest written from line ``start`` on use several cores if it is long.

        Each iteration must write one element of its own, and read nothing that another one writes.
        """
        if not (self.spreads and lengths):
            return
        name = self.names.temporary("loop")
        lines = self.code.lines[start:]
        on_threads = parallel_elements.spread(lines, name, lengths, self.names.temporary)
        if on_threads is None:
            return
        function, call = on_threads
        self.outlined += function
        self.code.replace(start, call)

    def spread_region(self, start: int, length: str, work: str) -> None:
        """Make the lines from ``start`` on, which go from ``first`` to ``last``, a function.

        It is called for all elements, or on several cores for parts of the length if there is much
        work.
        """
        name = self.names.temporary("region")
        function, call = parallel_elements.region(self.code.lines[start:], name, length, work)
        self.outlined += function
        self.code.replace(start, call)

    def step(self, text: str, length: str) -> str:
        """A name for 0 or 1, by which an index is multiplied to stay inside a length."""
        name = self.names.temporary("step")
        self.code.line(f"{name} = {text}")
        self.inside.append(name)
        self.stepped[name] = length
        return name
