"""Choices between arrays, and the indices where a condition holds, for the Numba source."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from fwdad.codegen.loops.arrays.functions import as_array, handles, length_text, reading
from fwdad.codegen.loops.number_terms import Term, cast, numpy_number
from fwdad.ir.abstract_eval.infer import infer
from fwdad.ir.notation import ATOM
from fwdad.ir.ops import Apply, Operand, Value, is_array
from fwdad.ir.types import ArrayType

Writer = Any  # the NumbaWriter: it knows this module, not the other way round
_INT = np.dtype(np.int64)


def _chosen(w: Writer, op: Apply, pairs: Sequence[tuple[Any, Operand]], last: Operand) -> None:
    """Write one loop: the choice of the first condition that holds, else the last value."""
    (out,) = op.outputs
    if not is_array(out) or not all(is_array(c) for c, _ in pairs):
        message = "of numbers"
        raise TypeError(message)
    made = last
    for k, (condition, choice) in reversed(list(enumerate(pairs))):
        args = (condition, choice, made)
        if not k:
            w._write_loop(Apply(np.where, args, outputs=op.outputs, location=op.location))
            return
        made = Value(ArrayType(out.type.dtype, infer(np.where, args, {}).shape))
        w._lazy[made] = Apply(np.where, args, outputs=(made,))


@handles(np.select)
def _select(w, op, condlist, choicelist, default=0):
    if len(condlist) != len(choicelist) or not condlist:
        message = "of such lists"
        raise TypeError(message)
    _chosen(w, op, list(zip(condlist, choicelist, strict=True)), default)


@handles(np.choose)
def _choose(w, op, a, choices, mode="raise"):
    if mode != "raise" or not isinstance(choices, (list, tuple)) or len(choices) < 2:
        message = "of such choices"
        raise TypeError(message)
    if not is_array(a) or a.type.dtype.kind not in "iu":
        message = "by a number"
        raise TypeError(message)
    name = w.array(a)
    loop = w.open_loops([length_text(d, name, k) for k, d in enumerate(a.type.shape)])
    w.line(f"if not 0 <= {name}[{w.at(loop)}] < {len(choices)}:")
    w.line("    raise ValueError('invalid entry in choice array')")
    w.close_loops(loop)
    pairs = []
    for k, choice in enumerate(choices[:-1]):
        condition = Value(ArrayType(np.dtype(bool), a.type.shape))
        w._lazy[condition] = Apply(np.equal, (a, k), outputs=(condition,))
        pairs.append((condition, choice))
    _chosen(w, op, pairs, choices[-1])


@handles(np.flatnonzero)
def _flatnonzero(w, op, a):
    (out,) = op.outputs
    _true_places(w, a, [w.name(out)], flat=True)


@handles(np.nonzero)
def _nonzero(w, op, a):
    _true_places(w, a, [w.name(v) for v in op.outputs], flat=False)


def _true_places(w: Writer, a: Operand, names: list[str], *, flat: bool) -> None:
    """Write the indices of nonzero elements into new arrays: a flat one, or one for each axis."""
    if is_array(a) and a in w._lazy:
        w.materialize(a)  # it is read twice
    count = w.temporary("count")
    at = w.temporary("at") if flat else ""
    with reading(w, a) as (value, lengths, steps):
        for last in (False, True):
            w.line(f"{count} = 0")
            if flat:
                w.line(f"{at} = 0")
            loop = w.open_loops(lengths)
            w.line(f"if {cast(w.element(value, loop, steps), np.dtype(bool)).text}:")
            if last:
                for name, place in zip(names, [at] if flat else loop, strict=True):
                    w.line(f"    {name}[{count}] = {place}")
            w.line(f"    {count} += 1")
            if flat:
                w.line(f"{at} += 1")
            w.close_loops(loop)
            if not last:
                for name in names:
                    w.line(f"{name} = {w.empty([count], _INT)}")


@handles(np.bincount)
def _bincount(w, op, x, weights=None, minlength=0):
    (out,) = op.outputs
    x = as_array(w, x)
    if x.type.dtype.kind not in "iu" or x.type.ndim != 1:
        message = "of such bins"
        raise TypeError(message)
    name, made = w.array(x), w.name(out)
    n = length_text(x.type.shape[0], name, 0)
    count = w.temporary("count")
    w.line(f"{count} = {w.index_text(minlength)}")
    item: Any = 1
    if weights is not None:
        weights = as_array(w, weights)
        source = w.array(weights)
        w.line(f"{w.help('equal_length')}({source}.shape[0], {n})")
        item = Term(f"{source}[{{}}]", ATOM, numpy_number(weights.type.dtype))
    (i,) = loop = w.open_loops([n])
    w.line(f"if {name}[{i}] < 0:")
    w.line("    raise ValueError('list must not have negative elements')")
    w.line(f"{count} = {w.help('larger')}({count}, {name}[{i}] + 1)")
    w.close_loops(loop)
    w.new_array(out, [count], zeros=True)
    w.open_loops([n])
    text = "1"
    if weights is not None:
        text = w.stored(item._replace(text=item.text.format(i)), out.type.dtype)
    w.line(f"{made}[{name}[{i}]] += {text}")
    w.close_loops(loop)
