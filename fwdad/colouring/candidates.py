"""Candidates for a colouring, of which the first one with the fewest colours is kept."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from fwdad.colouring.graphs import Indices
from fwdad.colouring.orders import ORDERS
from fwdad.colouring.partial_distance2 import number_of

MOST_STEPS = 200_000_000
"""After so many steps no further order is tried by default. Compiled code does them in a second."""
_COSTS = {"natural": 1, "largest_first": 2, "smallest_last": 4, "incidence_degree": 6, "random": 16}
"""How long an order and a greedy colouring in it take, all those before it included."""


class Found(NamedTuple):
    """Colours, and how they were found."""

    colours: Indices
    order: str


class Best:
    """The best of the colourings so far.

    ``bound`` is a lower bound of the number of colours, and ``most`` an upper bound.
    """

    def __init__(self, bound: int, most: int) -> None:
        self._bound = bound
        self.most = most
        self.found: Found | None = None

    @property
    def improvable(self) -> bool:
        """Whether a further candidate can have fewer colours."""
        return self.found is None or self.most >= self._bound

    def offer(self, colours: Indices | None, order: str) -> None:
        """Keep a candidate that is better; None is one that had too many colours."""
        if colours is not None and (self.found is None or number_of(colours) <= self.most):
            self.found = Found(colours, order)
            self.most = number_of(colours) - 1

    @property
    def result(self) -> Found:
        """The best one."""
        assert self.found is not None  # noqa: S101  (an order without a bound has been tried)
        return self.found


def affordable(steps: int, orders: Iterable[str] = ORDERS) -> Iterator[str]:
    """The orders that are tried by default; largest first always is."""
    for name in orders:
        if name in ORDERS[:2] or steps * _COSTS[name] <= MOST_STEPS:
            yield name
