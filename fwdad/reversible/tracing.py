"""Reversible functions under derivatives: on tapes, calls with their own reverse pass."""

from __future__ import annotations

from typing import Any, NamedTuple, cast

import numpy as np

from fwdad.eager.calls.dispatch import call, on_call
from fwdad.errors import UnsupportedTypeError
from fwdad.frontend.calls.tables import CALLED
from fwdad.frontend.syntax.interpreter import Interpreter
from fwdad.frontend.syntax.raising import AlwaysRaises
from fwdad.frontend.trees import made_in
from fwdad.ir.ops import Call, Program
from fwdad.ir.symbol import Symbol
from fwdad.reversible.arguments.kinds import Kind, kind_of
from fwdad.reversible.arguments.records import flat_kinds, flat_values, rebuilt
from fwdad.reversible.function import Bound, Loss, Reversible, growing
from fwdad.reversible.recorded_calls import run_recorded_call
from fwdad.transforms.passes import inline, optimise, split_arrays


def _pure_function(f: Reversible, args: tuple[Any, ...], adjoint: bool = False) -> Any:
    f.definition.refresh()
    kinds = tuple(kind_of(a) for a in args)
    return kinds, f.definition.pure(kinds, f.inverse, adjoint)


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
    return growing(f, args, lambda arguments: _run_on_duals(f, arguments))


def _run_on_duals(f: Reversible, args: tuple[Any, ...]) -> Any:
    kinds, lowered = _pure_function(f, args)
    values = flat_values(args, kinds)
    results = run_recorded_call(f, kinds, values)
    if results is None:
        results = call(lowered.function, *values)
    return _results(f, args, kinds, results)


def _results(f: Reversible, args: tuple[Any, ...], kinds: tuple[Kind, ...], updated: Any) -> Any:
    """Return all arguments: the updated values, and copies of the other arrays."""
    new = dict(zip(sorted(f.definition.updated(kinds)), updated, strict=True))
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
    kinds, lowered = _pure_function(f, args)
    values = flat_values(args, kinds)
    updated = sorted(f.definition.updated(kinds))
    tracer.outside.guards += f.definition.assumed(set())
    outputs = _called(tracer, lowered, values, [values[k] for k in updated])
    op = cast("Call", tracer.recorder.block.ops[-1])
    op.adjoint = _Adjoint(tracer, f, kinds)
    return made_in(tracer.recorder, _results(f, args, kinds, outputs))


def _called(tracer: Interpreter, lowered: Any, values: list[Any], like: list[Any]) -> Any:
    """Write a call; what comes back has the shapes of ``like``."""
    bound = {f"a{k}": v for k, v in enumerate(values)}
    name = lowered.name.removesuffix("_of_copies")

    def run(arguments: dict[str, Any]) -> Any:
        return tracer.call(lowered.function, tuple(arguments.values()), {})

    try:
        outputs = tracer.programs.call(name, bound, lowered, run, _finished)
    except AlwaysRaises:  # a check that fails for these lengths raises when it runs
        outputs = tracer.programs.call(name, bound, lowered, run)
    for output, v in zip(outputs, like, strict=True):
        if type(output) is Symbol and type(v) is Symbol and output.is_array:
            output.value.type = v.type
    return outputs


def _finished(program: Program) -> None:
    """Small arrays become numbers before derivatives are taken of what is written here."""
    inline(program)
    optimise(program)
    if split_arrays(program):
        optimise(program)


class _Adjoint(NamedTuple):
    """The reverse pass of a call of f, which is written by the tracer of the call."""

    tracer: Interpreter
    f: Reversible
    kinds: tuple[Kind, ...]

    def __call__(self, values: list[Any], outputs: list[Any], bars: list[Any]) -> list[Any]:
        """The cotangents of the arguments."""
        return _cotangents(*self, values, outputs, bars)

    def inside(self, tracer: Interpreter) -> _Adjoint:
        """The same for a call that is copied into another trace."""
        return self._replace(tracer=tracer)

    def __reduce__(self) -> Any:
        return (_Adjoint, (None, self.f, self.kinds))  # a copy of the call has its own tracer


def _cotangents(
    tracer: Interpreter,
    f: Reversible,
    kinds: tuple[Kind, ...],
    values: list[Any],
    outputs: list[Any],
    bars: list[Any],
) -> list[Any]:
    """The cotangents of the arguments."""
    flat = flat_kinds(kinds)
    values = values[: len(flat)]  # what comes behind them is from outside
    lowered = f.definition.pure(kinds, f.inverse, True)
    updated = sorted(f.definition.updated(kinds))
    new = dict(zip(updated, outputs, strict=True))
    after = [new.get(k, v) for k, v in enumerate(values)]
    active = [bar for k, bar in zip(updated, bars, strict=True) if flat[k].active]
    like = [v for v, kind in zip(values, flat, strict=True) if kind.active]
    cotangents = iter(_called(tracer, lowered, [*after, *active], like))
    return [next(cotangents) if kind.active else None for kind in flat]


CALLED[Reversible] = CALLED[Bound] = _traced


@on_call(Loss)
def _loss_on_duals(f: Loss, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    return f.pick(_call_on_duals(f.f, args, kwargs), call)


def _traced_loss(
    tracer: Interpreter, f: Loss, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    return f.pick(_traced(tracer, f.f, args, kwargs), lambda g, x: tracer.call(g, (x,), {}))


CALLED[Loss] = _traced_loss
