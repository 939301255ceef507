"""The layout of a Jacobian: the lane axis moves to the back, x's structure is inside y's."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from fwdad.eager.arguments import Arguments
from fwdad.eager.outcomes import Outcome
from fwdad.tangents.composite import leaf_order, unflatten
from fwdad.tangents.plain import plain
from fwdad.tangents.seeds import leaf_shape
from fwdad.tangents.zero import NoTangent


def _columns(arguments: Arguments) -> list[int]:
    return [math.prod(leaf_shape(x)) for x in arguments.leaves]


def in_structures(outcome: Outcome, arguments: Arguments, single: bool) -> Any:
    """The Jacobian in y's structure, with x's structure inside it."""
    return outcome.tangent_tree(
        [
            _block(lanes, leaf, arguments, single)
            for lanes, leaf in zip(outcome.tangents, outcome.leaves, strict=True)
        ]
    )


def _block(lanes: Any, leaf: Any, arguments: Arguments, single: bool) -> Any:
    """The Jacobian of one leaf of y, in x's structure."""
    y_shape = leaf_shape(leaf)
    parts, start = [], 0
    for x, size in zip(arguments.leaves, _columns(arguments), strict=True):
        rows = lanes[start : start + size]
        parts.append(like_numbers(_lanes_last(rows).reshape(y_shape + leaf_shape(x)), leaf, x))
        start += size
    trees, start = [], 0
    for structure, count in zip(arguments.structures, arguments.counts, strict=True):
        trees.append(unflatten(structure, parts[start : start + count], lambda _: NoTangent))
        start += count
    return trees[0] if single else tuple(trees)


def like_numbers(part: Any, y: Any, x: Any) -> Any:
    """The derivative of one leaf by another: a number where both are, and Python's if both are."""
    if part.shape != ():
        return part
    y, x = plain(y), plain(x)
    if type(y) is float and type(x) is float:
        return part.item() if hasattr(part, "item") else part
    return part if isinstance(x, np.ndarray) or isinstance(y, np.ndarray) else part[()]


def _lanes_last(lanes: Any) -> Any:
    return lanes.transpose((*range(1, lanes.ndim), 0))


def stacked(outcome: Outcome) -> Any:
    """The Jacobian of all of y by all of x, as one matrix."""
    rows = [
        _lanes_last(lanes).reshape(math.prod(lanes.shape[1:]), lanes.shape[0])
        for lanes in outcome.tangents
    ]
    order = leaf_order(outcome.structure)
    return rows[0] if len(order) == 1 else np.concatenate([rows[k] for k in order])
