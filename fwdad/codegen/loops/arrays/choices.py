"""Choices between arrays, and the indices where a condition holds, for the Numba source."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from fwdad.codegen.loops.arrays.functions import as_array, handles, reading, write_where
from fwdad.codegen.loops.notation import length_text, lengths_of, subscript
from fwdad.codegen.loops.parts import Parts
from fwdad.codegen.loops.terms.number_terms import INT64, Term, cast, numpy_number
from fwdad.ir.abstract_eval.infer import infer
from fwdad.ir.notation import ATOM
from fwdad.ir.ops import Apply, Operand, Value, is_array
from fwdad.ir.types import ArrayType


def _chosen(w: Parts, op: Apply, pairs: Sequence[tuple[Any, Operand]], last: Operand) -> None:
    """Write one loop: the choice of the first condition that holds, else the last value."""
    (out,) = op.outputs
    if not is_array(out) or not all(is_array(c) for c, _ in pairs):
        raise TypeError("whose conditions are numbers")
    chosen = last
    for k, (condition, choice) in reversed(list(enumerate(pairs))):
        args = (condition, choice, chosen)
        if not k:
            w.elements.write_loop(Apply(np.where, args, outputs=op.outputs, location=op.location))
            return
        chosen = Value(ArrayType(out.type.dtype, infer(np.where, args, {}).shape))
        w.elements.lazy[chosen] = Apply(np.where, args, outputs=(chosen,))


@handles(np.select)
def _select(w: Parts, op, condlist, choicelist, default=0):
    if len(condlist) != len(choicelist) or not condlist:
        raise TypeError("with lists of unequal lengths, or empty ones")
    _chosen(w, op, list(zip(condlist, choicelist, strict=True)), default)


@handles(np.choose)
def _choose(w: Parts, op, a, choices, mode="raise"):
    if mode != "raise" or not isinstance(choices, (list, tuple)) or len(choices) < 2:
        raise TypeError("with a mode, or choices that are no list of two or more")
    if not is_array(a) or a.type.dtype.kind not in "iu":
        raise TypeError("by an index that is no array of ints")
    name = w.operands.array(a)
    with w.loops.nest(lengths_of(a, name)) as loop:
        w.code.line(f"if not 0 <= {name}[{subscript(loop)}] < {len(choices)}:")
        w.code.line("    raise ValueError('invalid entry in choice array')")
    pairs = []
    for k, choice in enumerate(choices[:-1]):
        condition = Value(ArrayType(np.dtype(bool), a.type.shape))
        w.elements.lazy[condition] = Apply(np.equal, (a, k), outputs=(condition,))
        pairs.append((condition, choice))
    _chosen(w, op, pairs, choices[-1])


@handles(np.flatnonzero)
def _flatnonzero(w: Parts, op, a):
    at = w.names.temporary("at")
    _true_places(w, op, a, lambda _: [at], at)


@handles(np.nonzero)
def _nonzero(w: Parts, op, a):
    _true_places(w, op, a, lambda loop: loop)


def _true_places(w: Parts, op: Apply, a: Operand, items: Any, counter: str = "") -> None:
    """Write the indices of nonzero elements into new arrays."""
    if is_array(a) and a in w.elements.lazy:
        w.elements.materialize(a)  # it is read twice
    names = [w.names.name(v) for v in op.outputs]
    with reading(w, a) as (value, lengths, steps):
        write_where(
            w,
            lengths,
            lambda loop: cast(w.elements.element(value, loop, steps), np.dtype(bool)).text,
            items,
            names,
            INT64,
            counter,
        )


@handles(np.bincount)
def _bincount(w: Parts, op, x, weights=None, minlength=0):
    (out,) = op.outputs
    x = as_array(w, x)
    if x.type.dtype.kind not in "iu" or x.type.ndim != 1:
        raise TypeError("of bins that are no vector of ints")
    name, made = w.operands.array(x), w.names.name(out)
    n = length_text(x.type.shape[0], name, 0)
    count = w.names.temporary("count")
    w.code.line(f"{count} = {w.operands.index_text(minlength)}")
    item: Any = 1
    if weights is not None:
        weights = as_array(w, weights)
        source = w.operands.array(weights)
        w.code.line(f"{w.helpers.use('equal_length')}({source}.shape[0], {n})")
        item = Term(f"{source}[{{}}]", ATOM, numpy_number(weights.type.dtype))
    with w.loops.nest([n]) as loop:
        (i,) = loop
        w.code.line(f"if {name}[{i}] < 0:")
        w.code.line("    raise ValueError('list must not have negative elements')")
        w.code.line(f"{count} = {w.helpers.use('larger')}({count}, {name}[{i}] + 1)")
    w.arrays.new(out, [count], zeros=True)
    with w.loops.nest([n]):
        text = "1"
        if weights is not None:
            text = w.operands.stored(item._replace(text=item.text.format(i)), out.type.dtype)
        w.code.line(f"{made}[{name}[{i}]] += {text}")
