"""Reversible functions under derivatives: on tapes, calls with their own reverse pass."""

from __future__ import annotations

import functools
from typing import Any, cast

import numpy as np

from fwdad.eager.calls.dispatch import call, on_call
from fwdad.errors import UnsupportedTypeError
from fwdad.frontend.calls.tables import CALLED
from fwdad.frontend.syntax.interpreter import Interpreter
from fwdad.frontend.syntax.raising import AlwaysRaises
from fwdad.frontend.trees import made_in
from fwdad.ir.ops import Call, Program
from fwdad.ir.symbol import Symbol
from fwdad.reversible.function import Bound, Loss, Reversible, growing
from fwdad.reversible.kinds import Kind, kind_of
from fwdad.reversible.recorded import run_recorded_call
from fwdad.reversible.records import flat_kinds, flat_values, rebuilt
from fwdad.transforms.passes import inline, optimise, split_arrays


def _whole(f: Reversible, args: tuple[Any, ...], adjoint: bool = False) -> Any:
    f.definition.refresh()
    kinds = tuple(kind_of(a) for a in args)
    return kinds, f.definition.whole(kinds, f.inverse, adjoint)


def _arguments(f: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The function, and an argument for each of its parameters."""
    if isinstance(f, Bound):
        f, args = f.function, (f.owner, *args)
    kwargs = dict(kwargs)
    if kwargs.pop("inplace", False):
        message = "inplace=True cannot be differentiated or traced: use what the function returns"
        raise UnsupportedTypeError(message)
    return f, f.arguments(args, kwargs)


@on_call(Reversible, Bound)
def _call_on_duals(f: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Under an evaluator that runs at once: the generated source, on duals, or one operation."""
    f, args = _arguments(f, args, kwargs)
    return growing(f, args, lambda given: _run_on_duals(f, given))


def _run_on_duals(f: Reversible, args: tuple[Any, ...]) -> Any:
    kinds, written = _whole(f, args)
    values = flat_values(args, kinds)
    found = run_recorded_call(f, kinds, values)
    if found is None:
        found = call(written.function, *values)
    return _answer(f, args, kinds, found)


def _answer(f: Reversible, args: tuple[Any, ...], kinds: tuple[Kind, ...], found: Any) -> Any:
    """Return all arguments: the updated values, and copies of the other arrays."""
    new = dict(zip(sorted(f.definition.updated(kinds)), found, strict=True))
    both = zip(flat_values(args, kinds), flat_kinds(kinds), strict=True)
    values = [
        new[k] if k in new else v.copy() if kind.is_array else v for k, (v, kind) in enumerate(both)
    ]
    result = rebuilt(args, kinds, iter(values))
    return result[0] if len(result) == 1 else tuple(result)


def _traced(tracer: Interpreter, f: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """In a trace: a program that is called, whose adjoint is the inverse with cotangents."""
    f, args = _arguments(f, args, kwargs)
    args = tuple(tracer.recorder.as_symbol(a) if isinstance(a, np.ndarray) else a for a in args)
    kinds, written = _whole(f, args)
    values = flat_values(args, kinds)
    updated = sorted(f.definition.updated(kinds))
    tracer.outside.guards += f.definition.assumed(set())
    outputs = _called(tracer, written, values, [values[k] for k in updated])
    op = cast("Call", tracer.recorder.block.ops[-1])
    op.adjoint = functools.partial(_adjoint, tracer, f, kinds)
    return made_in(tracer.recorder, _answer(f, args, kinds, outputs))


def _called(tracer: Interpreter, written: Any, values: list[Any], like: list[Any]) -> Any:
    """Write a call; what comes back has the shapes of ``like``."""
    bound = {f"a{k}": v for k, v in enumerate(values)}
    name = written.name.removesuffix("_of_copies")

    def run(given: dict[str, Any]) -> Any:
        return tracer.call(written.function, tuple(given.values()), {})

    try:
        outputs = tracer.programs.call(name, bound, written, run, _finished)
    except AlwaysRaises:  # a check that fails for these lengths says why when it runs
        outputs = tracer.programs.call(name, bound, written, run)
    for made, v in zip(outputs, like, strict=True):
        if type(made) is Symbol and type(v) is Symbol and made.is_array:
            made.value.type = v.type
    return outputs


def _finished(program: Program) -> None:
    """Small arrays become numbers before derivatives are taken of what is written here."""
    inline(program)
    optimise(program)
    if split_arrays(program):
        optimise(program)


def _adjoint(
    tracer: Interpreter,
    f: Reversible,
    kinds: tuple[Kind, ...],
    values: list[Any],
    outputs: list[Any],
    bars: list[Any],
) -> list[Any]:
    """The cotangents of the arguments."""
    given = flat_kinds(kinds)
    values = values[: len(given)]  # what comes behind them is from outside
    written = f.definition.whole(kinds, f.inverse, True)
    updated = sorted(f.definition.updated(kinds))
    new = dict(zip(updated, outputs, strict=True))
    after = [new.get(k, v) for k, v in enumerate(values)]
    active = [bar for k, bar in zip(updated, bars, strict=True) if given[k].active]
    like = [v for v, kind in zip(values, given, strict=True) if kind.active]
    found = iter(_called(tracer, written, [*after, *active], like))
    return [next(found) if kind.active else None for kind in given]


CALLED[Reversible] = CALLED[Bound] = _traced


@on_call(Loss)
def _loss_on_duals(f: Loss, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    return f.pick(_call_on_duals(f.f, args, kwargs), call)


def _traced_loss(
    tracer: Interpreter, f: Loss, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    return f.pick(_traced(tracer, f.f, args, kwargs), lambda g, x: tracer.call(g, (x,), {}))


CALLED[Loss] = _traced_loss
