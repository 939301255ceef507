"""Derivatives element by element: the diagonal of a Jacobian, and whether there is nothing else."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np

# A vector of ones finds the diagonal of a diagonal Jacobian. That it is diagonal is seen from
# directions that move some elements and not the others: what they leave must not move. The sets
# that move form an antichain (Sperner): of any two elements, each is in a set without the other.


def directions(shape: tuple[int, ...], dtype: np.dtype[Any]) -> np.ndarray:
    """Ones, and behind them the directions that tell whether a Jacobian is diagonal."""
    count = math.prod(shape)
    width = 0 if count < 2 else 1
    while math.comb(width, width // 2) < count:
        width += 1
    members = itertools.islice(itertools.combinations(range(width), width // 2), count)
    array = np.zeros((1 + width, count), dtype)
    array[0] = 1.0
    # random, so that what several elements contribute does not cancel
    weights = np.random.default_rng(0).uniform(0.5, 2.0, size=(width, count))
    for k, sets in enumerate(members):
        for at in sets:
            array[1 + at, k] = weights[at, k]
    return array.reshape(1 + width, *shape)


def is_diagonal(given: Any, lanes: Any) -> Any:
    """Whether no element of the value moves where that of x does not; also traced."""
    moves = (given == 0.0) & (lanes != 0.0)
    return not np.any(moves & ~(np.isnan(lanes) & np.isnan(lanes[0])))


NOT_ELEMENTWISE = (
    "derivative of an array is for a function that works element by element, and here an element "
    "of the value depends on other elements of x: use jacobian(f, x), or grad(f)(x) if the value "
    "is one number"
)


def other_shape(shape: tuple[int, ...], of_value: tuple[int, ...]) -> str:
    """The message for a value that does not have the shape of x."""
    return (
        "derivative of an array is for a function that works element by element; x has the shape "
        f"{shape}, and its value {of_value}: use jacobian(f, x), or grad(f)(x) if the value is one "
        "number"
    )
