"""Reversible functions under derivatives: on tapes they are calls with a way back of their own."""

from __future__ import annotations

from typing import Any

import numpy as np

from fwdad.builder.dispatch import call, on_call
from fwdad.errors import UnsupportedTypeError
from fwdad.reversible.function import Loss, Reversible
from fwdad.reversible.kinds import Kind, kind_of
from fwdad.reversible.records import flat_kinds, flat_values, rebuilt
from fwdad.tape.symbol import Symbol
from fwdad.tracing.calls import CALLED
from fwdad.tracing.recursion import call_program
from fwdad.tracing.trees import made_in


def _whole(f: Reversible, args: tuple[Any, ...], adjoint: bool = False) -> Any:
    f.definition.refresh()
    kinds = tuple(kind_of(a) for a in args)
    return kinds, f.definition.whole(kinds, f.inverse, adjoint)


@on_call(Reversible)
def _call_on_duals(f: Reversible, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Under an evaluator that runs at once: the generated source, on duals."""
    if kwargs:
        message = "inplace=True cannot be differentiated: use what the function answers"
        raise UnsupportedTypeError(message)
    kinds, written = _whole(f, args)
    values = flat_values(args, kinds)
    return _answer(args, kinds, call(written.function, *values))


def _answer(args: tuple[Any, ...], kinds: tuple[Kind, ...], values: Any) -> Any:
    result = rebuilt(args, kinds, iter(values))
    return result[0] if len(result) == 1 else tuple(result)


def _traced(tracer: Any, f: Reversible, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """In a trace: a program that is called, whose adjoint is the inverse with cotangents."""
    if kwargs:
        message = "inplace=True cannot be traced: use what the function answers"
        raise UnsupportedTypeError(message)
    args = tuple(tracer.recorder.as_symbol(a) if isinstance(a, np.ndarray) else a for a in args)
    kinds, written = _whole(f, args)
    values = flat_values(args, kinds)
    outputs = _called(tracer, written, values)
    op = tracer.recorder.block.ops[-1]
    op.adjoint = lambda found, bars: _adjoint(tracer, f, kinds, found, bars)
    return made_in(tracer.recorder, _answer(args, kinds, outputs))


def _called(tracer: Any, written: Any, values: list[Any]) -> Any:
    bound = {f"a{k}": v for k, v in enumerate(values)}
    outputs = call_program(
        tracer,
        written.name.removesuffix("_of_copies"),
        bound,
        written,
        lambda b: tracer.call(written.function, tuple(b.values()), {}),
    )
    # What comes back has the shape of what was given.
    given = values[len(values) - len(outputs) :]
    for made, v in zip(outputs, given, strict=True):
        if type(made) is Symbol and type(v) is Symbol and made.is_array:
            made.value.type = v.type
    return outputs


def _adjoint(
    tracer: Any, f: Reversible, kinds: tuple[Kind, ...], outputs: list[Any], bars: list[Any]
) -> list[Any]:
    """The cotangents of the arguments that are values."""
    given = flat_kinds(kinds)
    written = f.definition.whole(kinds, f.inverse, True)
    active = [bar for bar, k in zip(bars, given, strict=True) if k.active]
    found = iter(_called(tracer, written, [*outputs, *active]))
    return [next(found) if k.active else None for k in given]


CALLED[Reversible] = _traced


@on_call(Loss)
def _loss_on_duals(f: Loss, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    return f.pick(_call_on_duals(f.f, args, kwargs), call)


def _traced_loss(tracer: Any, f: Loss, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    return f.pick(_traced(tracer, f.f, args, kwargs), lambda g, x: tracer.call(g, (x,), {}))


CALLED[Loss] = _traced_loss
