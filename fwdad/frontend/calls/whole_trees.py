"""``tree_map``, ``ravel`` and ``unravel`` in a traced program."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from fwdad.errors import SeedError, UntraceableError
from fwdad.evaluation.trees import Unravel, nth_tree, ravel, tree_map
from fwdad.frontend.calls.tables import CALLED, builtin
from fwdad.frontend.syntax.tracer import Tracer
from fwdad.frontend.trees import flatten, has_tangents, made_in, matched
from fwdad.ir.symbol import Symbol


@builtin(tree_map)
def _tree_map(tracer: Tracer, f: Any, tree: Any, *rest: Any) -> Any:
    leaves, structure = flatten(tree, records=True, once=True)
    columns = [leaves]
    for k, other in enumerate(rest):
        columns.append(structure.by_leaf(matched(tree, other, nth_tree(k), "first tree")))
    made = [
        tracer.call(f, row, {}) if has_tangents(row[0]) else row[0]
        for row in zip(*columns, strict=True)
    ]
    return made_in(tracer.recorder, structure(made))


@builtin(ravel)
def _ravel(tracer: Tracer, tree: Any) -> Any:
    leaves, structure = flatten(tree, records=True, once=True)
    symbols = [tracer.recorder.as_symbol(x) for x in leaves if has_tangents(x)]
    shapes = [
        tuple(tracer.recorder.lengths.known_length(s, axis) for axis in range(s.type.ndim))
        for s in symbols
    ]
    dtypes = [s.dtype for s in symbols]
    like = iter(np.broadcast_to(np.zeros((), d), n) for n, d in zip(shapes, dtypes, strict=True))
    example = structure([next(like) if has_tangents(x) else x for x in leaves])
    unravel = Unravel(example, shapes, dtypes)
    if not symbols:
        return np.zeros(0), unravel
    parts = []
    for s in symbols:
        flat = tracer.call(np.reshape, (s, (-1,)), {})
        other = flat.dtype != unravel.dtype
        parts.append(tracer.call(np.ndarray.astype, (flat, unravel.dtype), {}) if other else flat)
    return tracer.call(np.concatenate, (parts,), {}), unravel


def _unravel(tracer: Tracer, f: Unravel, args: Any, kwargs: Any) -> Any:
    (vector,) = args if not kwargs else (*args, *kwargs.values())
    recorder = tracer.recorder
    vector = recorder.as_symbol(vector)
    shape: tuple[Any, ...] = vector.type.shape if vector.is_array else ()
    if len(shape) == 1:
        shape = (_length(tracer, vector, f.count),)
    f.check(shape, vector.dtype)
    leaves, structure = flatten(f.example, records=True, once=True)
    if sum(map(has_tangents, leaves)) != len(f.shapes):
        message = "unravel returns a structure with a part that cannot be traced, such as a sparse"
        raise UntraceableError(f"{message} array", tracer.position.location())
    parts = iter(f.parts(lambda g, *given: tracer.call(g, given, {}), vector))
    return made_in(
        tracer.recorder, structure([next(parts) if has_tangents(x) else x for x in leaves])
    )


CALLED[Unravel] = _unravel


def _length(tracer: Tracer, vector: Symbol, count: int) -> int:
    """The length of a vector, or the wanted one with a check where it is known at run time only."""
    recorder = tracer.recorder
    try:
        return recorder.lengths.known_length(vector, 0)
    except UntraceableError:
        holds = tracer.call(operator.eq, (recorder.length(vector, 0), count), {})
        message = f"unravel takes a vector of shape ({count},)"
        recorder.check(holds, SeedError, (message,), tracer.position.location())
        return count
