"""Derivatives inside traced programs that are written into arrays: what ``out=`` means there."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from fwdad.errors import Location, OutError
from fwdad.evaluation.out_arrays import check_target, not_a_place, written_into
from fwdad.frontend.calls.tables import builtin
from fwdad.frontend.syntax.tracer import Tracer
from fwdad.frontend.trees import flatten
from fwdad.ir.primitives.argument_memory import are_disjoint, is_c_contiguous
from fwdad.ir.symbol import Symbol, kind_in_words

_GAPS = "out is not C-contiguous: pass an array as numpy.empty makes it"
_SHARED = (
    "out shares memory with an argument, which is read while out is written: pass an array of its "
    "own"
)


def into(tracer: Tracer, out: Any, found: tuple[Any, ...], inputs: Any, of: str) -> Any:
    """A value and its derivative, and aux if there is one: the derivative written into ``out``."""
    y, derivative, *aux = found
    _check_target(tracer, out, derivative, inputs, of)
    return (y, _written_into(tracer, out, derivative, of), *aux)


@builtin(check_target)
def _check_target(tracer: Tracer, out: Any, like: Any, inputs: Any, of: str) -> None:
    for target, leaf in _pairs(out, like, of, tracer.position.location()):
        x = tracer.recorder.as_symbol(leaf)
        checked_place(tracer, target, x.dtype, _lengths(tracer, x), inputs, of)


def checked_place(
    tracer: Tracer, target: Any, dtype: np.dtype[Any], lengths: list[Any], inputs: Any, of: str
) -> Symbol:
    """An array into which something of these lengths can be written while inputs are read."""
    recorder, place = tracer.recorder, tracer.position.location()
    if not _is_array(target):
        raise OutError(not_a_place(kind_in_words(target), of), place)
    symbol = recorder.as_symbol(target)
    params, own = {*recorder.blocks[0].params}, recorder.definitions.owners(symbol.value)
    given = [recorder.as_symbol(x) for x in flatten(inputs, records=True)[0] if _is_array(x)]
    if any(not own.isdisjoint(recorder.definitions.owners(x.value)) for x in given):
        raise OutError(_SHARED, place)
    if own & params:
        recorder.check(recorder.apply(is_c_contiguous, (symbol,), {}), OutError, (_GAPS,), place)
    for x in given:  # arguments of the program are apart only if it says so
        if x.value in params and own & params:
            apart = recorder.apply(are_disjoint, (symbol, x), {})
            recorder.check(apart, OutError, (_SHARED,), place)
    _check_fits(tracer, symbol, dtype, lengths, of)
    return symbol


def _lengths(tracer: Tracer, x: Symbol) -> list[Any]:
    return [tracer.recorder.length(x, axis) for axis in range(x.type.ndim if x.is_array else 0)]


@builtin(written_into)
def _written_into(tracer: Tracer, out: Any, value: Any, of: str) -> Any:
    pairs = _pairs(out, value, of, tracer.position.location())
    for target, leaf in pairs:
        x = tracer.recorder.as_symbol(leaf)
        _check_fits(tracer, tracer.recorder.as_symbol(target), x.dtype, _lengths(tracer, x), of)
    for target, leaf in pairs:
        tracer.call(operator.setitem, (target, Ellipsis, leaf), {})
    return out


def _pairs(out: Any, value: Any, of: str, place: Location | None) -> list[tuple[Any, Any]]:
    """The arrays of ``out``, each with the leaf of a value that it takes."""
    leaves, tree = flatten(value, records=True)
    targets, given = flatten(out, records=True)
    if len(targets) != len(leaves) or given.places != tree.places:
        message = f"out has {len(targets)} arrays, and {of} {len(leaves)}: pass its structure"
        raise OutError(message, place)
    for target in targets:
        if not _is_array(target):
            raise OutError(not_a_place(kind_in_words(target), of), place)
    return list(zip(targets, leaves, strict=True))


def _check_fits(
    tracer: Tracer, target: Symbol, dtype: np.dtype[Any], lengths: list[Any], of: str
) -> None:
    """Raise where types tell that an array does not fit; compare lengths when the program runs."""
    recorder, place = tracer.recorder, tracer.position.location()
    if target.dtype != dtype or target.type.ndim != len(lengths):
        raise OutError(
            f"out is {target.dtype} with {target.type.ndim} axes, and {of} is {dtype} with "
            f"{len(lengths)}: pass an array of its shape and dtype",
            place,
        )
    message = f"out has another shape than {of}: pass an array of its shape"
    for given, wanted in zip(_lengths(tracer, target), lengths, strict=True):
        holds = tracer.call(operator.eq, (given, wanted), {})
        if type(holds) is Symbol:
            recorder.check(holds, OutError, (message,), place)
        elif not holds:
            raise OutError(message, place)


def _is_array(x: Any) -> bool:
    return isinstance(x, np.ndarray) or (type(x) is Symbol and x.is_array)
