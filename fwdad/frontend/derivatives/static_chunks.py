"""Columns of a Jacobian in chunks of a known width, however many there are: one loop for all.

Each iteration pushes N directions through the function and stores the columns that they give. The
number of columns is not assumed, so that one program serves all lengths, and its memory, beside the
Jacobian itself, grows with N alone.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from fwdad.errors import NoOutputError, returned_nothing
from fwdad.frontend.derivatives.differentiated import Differentiated, check_columns, dtype_of
from fwdad.frontend.trees import Tree
from fwdad.ir.analysis.alias import written_parameters
from fwdad.ir.ops import Block, Effect, Loop, Program, Value, walk
from fwdad.ir.rewrite import written_outside
from fwdad.ir.symbol import Symbol
from fwdad.ir.types import INT, Size
from fwdad.rules.core.registry import function_name
from fwdad.transforms.forward import push_block
from fwdad.transforms.passes import inline
from fwdad.transforms.reverse.pull import write_block

Place = Callable[[int, Any, list[Any]], Symbol | None]


def jacobian_in_chunks(
    at: Differentiated, width: int, place: Place, *, rows: bool
) -> tuple[list[Any], list[Any], Tree] | None:
    """The leaves of a function's value, their Jacobians, and its structure; None if impossible.

    The argument is one array of real numbers. ``place`` is called with a leaf of the value, its
    number and the lengths of its Jacobian, and returns where that is written, or None for a new
    array. ``rows`` means that reverse mode was asked for; raises if columns may not give its
    result.
    """
    recorder = at.tracer.recorder
    if not _is_for(at, width):
        return None
    block, own, tree = at.traced()
    inline(Program("", block))
    if rows:
        check_columns(block)
    chosen = at.differentiated(tree, len(block.results))  # raises if there is no aux
    if not block.results and tree([]) is None:
        raise NoOutputError(returned_nothing(function_name(at.f)))
    apart = not (written_outside(block) or any(isinstance(op, Effect) for op in walk(block)))
    if not apart or len(own) != 1:
        return None
    x, (writes,) = own[0], written_parameters(Program("", block))

    def given() -> Symbol:
        return recorder.apply(np.ndarray.copy, (x,), {}) if writes else x

    primals = write_block(recorder, block, [given()], {})
    lengths = [recorder.length(x, axis) for axis in range(x.type.ndim)]
    total = lengths[0]
    for n in lengths[1:]:
        total = total * n
    moving = [k for k, p in enumerate(primals) if k in chosen and dtype_of(p).kind in "fc"]
    flat: dict[int, Symbol] = {}
    whole: dict[int, Symbol] = {}
    for k in moving:
        p = recorder.as_symbol(primals[k])
        own_lengths = [recorder.length(p, axis) for axis in range(p.type.ndim if p.is_array else 0)]
        found = place(k, p, [*own_lengths, *lengths])
        if found is None:
            found = recorder.apply(np.empty, ((*own_lengths, *lengths), p.dtype), {})
        whole[k] = found
        single = len(lengths) == 1
        flat[k] = found if single else recorder.apply(np.reshape, (found, (*own_lengths, -1)), {})

    body = Block([Value(INT)])
    at_chunk: Any = Symbol(body.params[0], recorder)
    with recorder.region(body):
        start = at_chunk * width
        stop = at.tracer.call(min, (start + width, total), {})
        lanes = recorder.apply(np.add, (recorder.apply(np.arange, (width,), {}), start), {})
        seeds = _units(recorder, lanes, lengths, total, x)
        _, tangents = push_block(recorder, block, width, [(given(), seeds)])
        for k in moving:
            t = recorder.as_symbol(tangents[k])
            rank = t.type.ndim - 1
            last = t if not rank else t.transpose((*range(1, rank + 1), 0))
            part = recorder.load(last, (Ellipsis, slice(0, stop - start)))
            recorder.store(flat[k], (Ellipsis, slice(start, stop)), part)
    count = at.tracer.call(operator.floordiv, (total + (width - 1), width), {})
    recorder.emit(Loop((0, recorder.operand(count), 1), [], body))
    return primals, [whole.get(k) for k in range(len(primals))], tree


def _is_for(at: Differentiated, width: int) -> bool:
    """Whether a function has one argument of which the columns are more than travel together."""
    recorder = at.tracer.recorder
    if recorder.threads > 1 or len(at.leaves) != 1 or dtype_of(at.leaves[0]).kind != "f":
        return False
    x = recorder.as_symbol(at.leaves[0])
    if not x.is_array or not x.type.ndim or len(at.trees) != 1:
        return False
    total = 1
    for n in recorder.lengths.resolved(x.type).shape:
        if isinstance(n, Size):
            return True
        total *= n
    return total > width


def _units(recorder: Any, lanes: Symbol, lengths: list[Any], total: Any, x: Symbol) -> Symbol:
    """The unit vectors of some lanes in an array's shape; zeros beyond the last."""
    rank = len(lengths)
    places = recorder.apply(np.arange, (total,), {})
    if rank > 1:
        places = recorder.apply(np.reshape, (places, tuple(lengths)), {})
    at = recorder.apply(np.reshape, (lanes, (-1, *[1] * rank)), {})
    is_one = recorder.apply(np.equal, (at, places), {})
    one, zero = x.dtype.type(1), x.dtype.type(0)
    return recorder.apply(np.where, (is_one, one, zero), {})
