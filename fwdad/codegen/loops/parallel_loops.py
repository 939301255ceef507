"""A loop with independent iterations on several cores, in the Numba source.

The loop becomes a function of a part of its range, which allocates what its iterations share. An
exception cannot leave a thread: it is recorded, and raised when all have ended.
"""

from __future__ import annotations

import ast
import functools
from collections import Counter

import numpy as np

from fwdad.codegen.loops import parallel_elements
from fwdad.codegen.loops.buffer_hoisting import OpenLoop
from fwdad.codegen.loops.parallel_elements import (
    SHORTEST,
    dedented,
    names_from_outside,
    part_function,
    run_on_threads,
)
from fwdad.codegen.loops.parts import Parts
from fwdad.codegen.runtime import libmvec
from fwdad.ir.analysis.dependence import axis_of, is_independent, written_outside
from fwdad.ir.ops import (
    Block,
    Branch,
    Load,
    Loop,
    Op,
    Operand,
    Store,
    Update,
    Value,
    values_in,
    walk,
)
from fwdad.ir.types import Dimension

_UNKNOWN_TRIPS = "1000"
_UNKNOWN_LENGTH = "100"
_SLOW, _QUICK = 20, 3
"""What a function of the C library's, and another operation, costs in tenths of a nanosecond."""


def may_run_at_once(w: Parts, loop: Loop) -> bool:
    """Whether a loop may run on several threads.

    Not in a program that writes into its arguments: if it raised, later iterations might have run
    already, and it could not be run again.
    """
    program = w.program
    if not program.parallel or any(program.written) or w.loops.in_thread:
        return False
    if w.usage.count[loop.exec_count] or not parallel_elements.can_nest():
        return False
    return is_independent(loop, w.memory.of, w.memory.params)


class SpreadLoop:
    """Runs a loop on several threads if it is long; created before the loop is written."""

    def __init__(self, w: Parts, loop: Loop, place: OpenLoop) -> None:
        self.w = w
        self.loop = loop
        self.start = place.start
        self.cost = _Cost(w, loop, place.lengths).text()
        w.loops.in_thread = True

    def finish(self) -> None:
        """Make the lines written since then a function, and call it."""
        w, loop = self.w, self.loop
        w.loops.in_thread = False
        lines = w.code.lines[self.start :]
        outside, body = dedented(lines)
        head = next(k for k, line in enumerate(body) if line.startswith("for "))
        first, last, step = _range_of(body[head])
        spans = functools.partial(_span, step)
        body[head] = f"{body[head].partition(' in ')[0]} in {spans('first', 'last')}:"
        if step == "1":
            body[:0] = self._check()
        globals_ = {*w.draft.module.globals.objects, *w.helpers.lane_functions}
        globals_ |= {*w.helpers.used, *w.helpers.vector_functions, "first", "last"}
        names = names_from_outside([ast.parse("\n".join(body))], globals_)
        name = w.names.temporary("loop")
        w.loops.outlined += part_function(name, names, body)
        shared = written_outside(self.loop, w.memory.of)
        w.loops.typed[name] = frozenset(w.names.plain.of.get(v, "") for v in shared)
        n = w.names.temporary("n")
        call = [
            f"{n} = len({spans(first, last)})",
            f"if {n} > 1 and {n} * {self.cost} >= {SHORTEST}:",
            *(f"    {line}" for line in run_on_threads(name, names, first, n, step)),
            "else:",
            f"    {name}({', '.join([*names, first, last])})",
        ]
        w.code.drop(self.start)
        w.code.insert(self.start, [outside + line for line in call], loop.location)

    def _check(self) -> list[str]:
        """Lines that compare a part's ends with the lengths of all that its iterations index.

        LLVM does not know that a counter from ``first`` on is inside, and would check it each time.
        """
        counter, known = self.loop.body.params[0], self.w.names.plain.of
        always = {*self.loop.body.ops}
        lengths = []
        for op in walk(self.loop.body):
            if isinstance(op, (Load, Store, Update)) and counter in values_in(op.index):
                axis = axis_of(op.index, counter)
                if axis is None or op.array not in known or op not in always:
                    return []
                if sum(i is counter for i in op.index) > 1:
                    return []
                lengths.append(f"{known[op.array]}.shape[{axis}]")
        if not lengths:
            return []
        self.w.loops.inside.append(known[counter])
        least = f"min({', '.join(dict.fromkeys(lengths))}, last)"
        return [
            f"if first < last and (first < 0 or last > {least}):",
            "    raise IndexError('index is out of bounds')",
        ]


def _range_of(line: str) -> tuple[str, str, str]:
    statement = ast.parse(f"{line}\n    pass").body[0]
    assert isinstance(statement, ast.For)
    assert isinstance(statement.iter, ast.Call)
    parts = [ast.unparse(a) for a in statement.iter.args]
    if len(parts) == 1:
        return "0", parts[0], "1"
    return parts[0], parts[1], parts[2] if len(parts) == 3 else "1"


def _span(step: str | None, first: str | None, last: str | None) -> str:
    return f"range({first}, {last})" if step == "1" else f"range({first}, {last}, {step})"


class _Cost:
    """Estimated cost of an iteration, as source; what is known only inside it is guessed."""

    def __init__(self, w: Parts, loop: Loop, lengths: dict[Dimension, str]) -> None:
        self.w = w
        self.loop = loop
        self.lengths = lengths
        blocks = [loop.body, *(b for op in walk(loop.body) for b in op.blocks())]
        self.inside = {v for b in blocks for v in b.params}
        self.inside.update(v for op in walk(loop.body) for v in op.outputs)

    def text(self) -> str:
        """The cost in tenths of a nanosecond."""
        return self._block(self.loop.body)

    def _block(self, block: Block) -> str:
        light, rest = 1, Counter[str]()
        for op in block.ops:
            if isinstance(op, Branch):
                rest[f"max({self._block(op.then)}, {self._block(op.other)})"] += 1
            elif isinstance(op, Loop):
                rest[f"{self._trips(op)} * {self._block(op.body)}"] += 1
            elif (size := self._size(op)) == "1":
                light += self._cost(op)
            else:
                rest[size] += self._cost(op)
        parts = [text if n == 1 else f"{n} * {text}" for text, n in rest.items()]
        return f"({' + '.join([str(light), *parts])})"

    def _trips(self, loop: Loop) -> str:
        if loop.span is None:
            return _UNKNOWN_TRIPS
        first, last, step = (self._number(x) for x in loop.span)
        known = first is not None and last is not None and step is not None
        return f"len({_span(step, first, last)})" if known else _UNKNOWN_TRIPS

    def _number(self, x: Operand) -> str | None:
        """A number that is known before the loop, as source."""
        if isinstance(x, Value):
            known = x not in self.inside and x not in self.w.inlined.held
            return self.w.names.plain.of.get(x) if known else None
        return str(int(x)) if isinstance(x, (int, np.integer)) else None

    def _cost(self, op: Op) -> int:
        function = getattr(op, "function", None)
        return _SLOW if getattr(function, "__name__", "") in libmvec.ARGUMENTS else _QUICK

    def _size(self, op: Op) -> str:
        """How many elements an operation makes."""
        shape = op.outputs[0].type.shape if op.outputs and not isinstance(op, Load) else ()
        texts = [str(d) if isinstance(d, int) else self.lengths.get(d, _UNKNOWN_LENGTH)
                 for d in shape]  # fmt: skip
        return " * ".join(t for t in texts if t != "1") or "1"
