"""``at``: a copy of an array with another item, where JAX writes ``x.at[i].set(v)``."""

from __future__ import annotations

from typing import Any

import numpy as np


def at(x: Any) -> At:
    """The places of an array, to make copies with other items.

    Parameters
    ----------
    x : array_like
        The array.

    Returns
    -------
    At
        ``at(x)[i]`` has the methods of JAX's ``x.at[i]``.

    Examples
    --------
    >>> import numpy as np
    >>> import fwdad.compat.jax as jax
    >>> jax.at(np.zeros(3))[1].set(5.0)
    array([0., 5., 0.])
    """
    return At(x)


class At:
    """The places of an array."""

    def __init__(self, x: Any) -> None:
        self.x = x

    def __getitem__(self, index: Any) -> Place:
        return Place(self.x, index)


class Place:
    """An item or a part of an array: each method returns a copy of the array."""

    def __init__(self, x: Any, index: Any) -> None:
        self.x, self.index = x, index

    def get(self) -> Any:
        """The part itself."""
        return self.x[self.index]

    def set(self, value: Any) -> Any:
        """The array with another value there."""
        made = np.array(self.x)
        made[self.index] = value
        return made

    def add(self, value: Any) -> Any:
        """The array with the value added there, as often as an index is repeated."""
        made = np.array(self.x)
        np.add.at(made, self.index, value)
        return made

    def multiply(self, value: Any) -> Any:
        """The array with that part multiplied by the value."""
        return self.set(self.x[self.index] * value)

    def divide(self, value: Any) -> Any:
        """The array with that part divided by the value."""
        return self.set(self.x[self.index] / value)

    def power(self, value: Any) -> Any:
        """The array with that part raised to the value."""
        return self.set(self.x[self.index] ** value)

    def min(self, value: Any) -> Any:
        """The array with the smaller of that part and the value there."""
        return self.set(np.minimum(self.x[self.index], value))

    def max(self, value: Any) -> Any:
        """The array with the larger of that part and the value there."""
        return self.set(np.maximum(self.x[self.index], value))

    def apply(self, ufunc: Any) -> Any:
        """The array with a function applied to that part."""
        return self.set(ufunc(self.x[self.index]))
