"""Reverse mode of a whole program: from its results' cotangents to its inputs'."""

from __future__ import annotations

from typing import Any

import numpy as np

from fwdad.ir.builder.recorder import Recorder
from fwdad.ir.clone import copied
from fwdad.ir.ops import Program, Value
from fwdad.ir.symbol import Symbol
from fwdad.transforms.passes import inline, optimise
from fwdad.transforms.reverse.pull import pull_block


def pull_backward(program: Program, active: list[bool]) -> tuple[Program, list[bool]]:
    """A program that pulls cotangents back through another one, and which of them there are.

    Parameters: those of ``program``, then a cotangent of each result. Results: a cotangent for each
    ``active`` parameter; the list says which of these are returned, as nothing depends on the
    others. ``NotReversibleError`` if the program cannot be reversed, ``MissingRuleError`` if an
    active value meets a function without a rule.
    """
    source = copied(program)
    inline(source, adjoints=False)
    optimise(source)  # what is computed twice would be kept twice
    recorder = Recorder()
    given = []
    for p, before in zip(source.block.params, program.block.params, strict=True):
        made = Symbol(Value(p.type, p.name), recorder)
        recorder.lengths.measure(made.value, absent=before in program.absent)
        given.append(made)
    bars: list[Value] = []

    def seeds(results: list[Any]) -> list[Any]:
        found = []
        for r in results:
            symbol = recorder.as_symbol(r)
            bars.append(Value(symbol.type, "y_bar"))
            recorder.lengths.measure(bars[-1])
            differentiated = type(r) is Symbol and symbol.dtype.kind in "fc"
            found.append(Symbol(bars[-1], recorder) if differentiated else None)
        return found

    _, x_bars = pull_block(recorder, source.block, given, active, seeds)
    wanted = [b for b, on in zip(x_bars, active, strict=True) if on]
    block = recorder.block
    params = [s.value for s in given]
    block.params = [*params, *bars]
    block.results = [recorder.operand(_in_shape(recorder, b, x)) for b, x in _with(given, x_bars)]
    made_program = Program(f"{program.name}_pullback", block, program.filename)
    made_program.quiet = True
    optimise(made_program)
    return made_program, [b is not None for b in wanted]


def _with(given: list[Symbol], x_bars: list[Any]) -> list[tuple[Any, Symbol]]:
    return [(b, x) for b, x in zip(x_bars, given, strict=True) if b is not None]


def _in_shape(recorder: Recorder, bar: Any, x: Symbol) -> Any:
    """A cotangent of an array that came as one number, written out."""
    if not x.is_array or (type(bar) is Symbol and bar.is_array):
        return bar
    return recorder.apply(np.full_like, (x, bar), {})
