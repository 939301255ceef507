"""The lines of generated source, each with the user's location."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from fwdad.ir.ops import Op


class Lines:
    """The lines written so far, and the indentation of the next.

    ``places`` has the user's location of each line: that of the operation that it is written for,
    else of ``op``, the operation that is being written, else ``here``, which holds for one line.
    """

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.places: list[Any] = []
        self.indent = 0
        self.op: Op | None = None
        self.here: Any = None

    def line(self, text: str, op: Op | None = None) -> None:
        """Append one line."""
        op = self.op if op is None else op
        self.lines.append("    " * self.indent + text)
        self.places.append(op.location if op is not None else self.here)
        self.here = None

    @contextmanager
    def indented(self) -> Iterator[None]:
        """Indent the lines of a block."""
        self.indent += 1
        yield
        self.indent -= 1

    def drop(self, start: int) -> None:
        """Remove the lines from ``start`` on."""
        del self.lines[start:], self.places[start:]

    def insert(self, start: int, lines: Sequence[str], place: Any) -> None:
        """Insert lines, which are indented already, before line ``start``."""
        self.lines[start:start] = lines
        self.places[start:start] = [place] * len(lines)

    def replace(self, start: int, lines: Sequence[str]) -> None:
        """Replace the lines from ``start`` on; the new ones have the first location of the old."""
        place = next((p for p in self.places[start:] if p is not None), None)
        self.drop(start)
        self.insert(start, lines, place)
