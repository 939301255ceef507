"""A program with its arguments at three sizes, and the numbers that arguments are made of."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

Arguments = tuple[Any, ...]


@dataclass(frozen=True)
class Problem:
    """One program with its arguments at three sizes.

    ``tiny`` is where results are checked; under Numba, ``small`` takes a millisecond or so and
    ``medium`` some 50.

    Attributes
    ----------
    f : callable
        The program. Its value is one number.
    make : callable
        From a size to the arguments.
    tiny, small, medium : tuple of int
        The sizes.
    argnums : int or tuple of int
        The arguments that are differentiated: the first, if nothing is told.
    interpreted : bool
        Whether it is array code, which is worth while without a compiler.
    derivative : callable, optional
        From the arguments to value and derivative, where that is not a gradient.
    times : callable, optional
        Such a derivative times a direction: of the derivative, the direction and the arguments.
    """

    f: Callable[..., Any]
    make: Callable[..., Arguments]
    tiny: tuple[int, ...]
    small: tuple[int, ...]
    medium: tuple[int, ...]
    argnums: int | tuple[int, ...] = 0
    interpreted: bool = False
    derivative: Callable[..., Any] | None = None
    times: Callable[..., Any] | None = None

    @property
    def name(self) -> str:
        """The program's name."""
        return self.f.__name__

    @property
    def active(self) -> tuple[int, ...]:
        """The numbers of the arguments that are differentiated."""
        return self.argnums if isinstance(self.argnums, tuple) else (self.argnums,)

    def arguments(self, which: str) -> Arguments:
        """The arguments at one of the sizes."""
        return self.make(*getattr(self, which))


def random(*shape: int) -> np.ndarray:
    """Numbers around one, the same at each call."""
    return np.random.default_rng(7).uniform(0.5, 1.5, shape)


def normal(*shape: int) -> np.ndarray:
    """Numbers around zero, the same at each call."""
    return np.random.default_rng(3).normal(size=shape)
