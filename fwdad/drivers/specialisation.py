"""A function under ``jit`` for one kind of arguments: its tape, and what is made of it."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from fwdad.display.html import Html, folded, joined, mono, noted
from fwdad.display.words import counted
from fwdad.drivers.executable import Runner
from fwdad.frontend.arguments import Lengths
from fwdad.frontend.specialise import Shapes, known_lengths
from fwdad.frontend.tape import Tape
from fwdad.ir.drawing.listing import listed

_OWN_TAPES = 8  # of those for small arrays of other shapes, for each kind of arguments


_OF_ONE_OPERATION = 2800  # bytes of a tape under NumPy, and of its source (measured: 2700)


def _arrays(x: Any) -> Iterator[np.ndarray]:
    if isinstance(x, np.ndarray):
        yield x
    elif isinstance(x, (list, tuple)):
        for item in x:
            yield from _arrays(item)


@dataclass(eq=False)
class Specialisation:
    """A function for one kind of arguments: its tape, and what is compiled from it."""

    tape: Tape
    backend: str
    pushed: dict[Any, tuple[Runner, list[np.ndarray]]] = field(default_factory=dict)
    pulled: dict[Any, tuple[Runner, list[bool]]] = field(default_factory=dict)
    shortcuts: dict[Any, Any] = field(default_factory=dict)
    rewritten: int = 0  # shortcuts that were for captured arrays of other shapes
    gaining: Lengths | None = None  # from which its loops might gain
    tried: set[Shapes] = field(default_factory=set)

    @functools.cached_property
    def run(self) -> Runner:
        """The tape's program as a function."""
        return Runner(self.tape.program, self.backend)

    @functools.cached_property
    def held_bytes(self) -> int:
        """About how much memory the program takes, with the arrays that it holds."""
        program = self.tape.program
        held = [program.block.results, *(op.operands() for op in program.walk())]
        arrays = {id(x): x.nbytes for x in _arrays(held)}
        return program.count() * _OF_ONE_OPERATION + sum(arrays.values())

    @property
    def is_compiled(self) -> bool:
        """Whether Numba runs it."""
        return "run" in vars(self) and self.run.compiled is not None

    def shown(self) -> Html:
        """Its tape, below what runs it, as HTML."""
        head, lines = listed(self.tape.program)
        by = self.run.explain() if "run" in vars(self) else "nothing yet"
        runs = f"{counted(self.tape.count(), 'operation')}, run by {by}"
        return folded(joined([mono(head), noted(f" — {runs}")]), lines)

    def left_to_others(self, leaves: list[Any]) -> Shapes:
        """The lengths of these inputs if no tape of their own was tried yet; else ``()``."""
        if self.gaining is None or len(self.tried) >= _OWN_TAPES:
            return ()
        shapes = known_lengths(leaves, self.gaining)
        return () if shapes in self.tried else shapes
