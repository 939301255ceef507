"""Cotangents that a pullback writes into arrays that are given, some rows at a time."""

from __future__ import annotations

from typing import Any

from fwdad.drivers.cotangents import rows_of
from fwdad.eager.arguments import Arguments
from fwdad.errors import OutError, type_in_words
from fwdad.evaluation.out_arrays import arrays_in, check_fits, check_memory, given_for, store
from fwdad.tangents.matching import match
from fwdad.tangents.plain import plain
from fwdad.tangents.seeds import leaf_dtype, leaf_shape

_OF = "the cotangent"


def check_targets(
    out: Any, arguments: Arguments, bars: list[Any], count: int | None, *, single: bool
) -> list[Any]:
    """The arrays of ``out`` for the leaves of the arguments; raises unless they fit."""
    trees = (out,) if single else out
    if not single and not (isinstance(out, tuple) and len(out) == len(arguments.structures)):
        raise OutError(
            f"out is {type_in_words(out)}, and there are cotangents of {len(arguments.structures)} "
            "arguments: pass a tuple of as many"
        )
    targets = [
        target
        for structure, tree in zip(arguments.structures, trees, strict=True)
        for target in given_for(tree, structure, _OF)
    ]
    lead, given = () if count is None else (count,), arrays_in(bars)
    for target, x in zip(targets, arguments.leaves, strict=True):
        check_memory(target, given, of=_OF)
        check_fits(target, lead + leaf_shape(x), leaf_dtype(plain(x)), of=_OF)
    return targets


def pull_into(
    pullback: Any, out: Any, bars: list[Any], of: Any, *, count: int | None, width: int
) -> Any:
    """``out``, into which what :meth:`Pullback.of_leaves` returns is written."""
    arguments, single = of.arguments, of.single
    targets = check_targets(out, arguments, bars, count, single=single)
    if count is None or width >= count:
        _store_all(targets, Ellipsis, pullback.of_leaves(bars), arguments, single=single)
        return out
    for start in range(0, count, width):
        stop = min(start + width, count)
        x_bar = pullback.of_leaves([rows_of(b, start, stop, width) for b in bars])
        _store_all(targets, slice(start, stop), x_bar, arguments, single=single)
    return out


def _store_all(targets: list[Any], at: Any, x_bar: Any, arguments: Any, *, single: bool) -> None:
    trees = zip(arguments.structures, (x_bar,) if single else x_bar, strict=True)
    parts = [leaf for structure, tree in trees for leaf in match(structure, tree)]
    for target, part in zip(targets, parts, strict=True):
        rows = part[: at.stop - at.start] if isinstance(at, slice) else part
        store(target, at, rows)
