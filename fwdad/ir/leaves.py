"""Flattening of nested results into numbers and arrays."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from fwdad.core.fallbacks import for_programs
from fwdad.ir.types import number_type


class Leaves:
    """A function whose nested result, or tuple of one item, is flattened into its leaves."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function
        self.__name__ = f"leaves_of_{getattr(function, '__name__', 'call')}"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Leaves) and other.function == self.function

    def __hash__(self) -> int:
        return hash((Leaves, self.function))

    @for_programs
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """The leaves of the result: a tuple, unless there is exactly one."""
        leaves = tuple(leaves_in(self.function(*args, **kwargs)))
        return leaves[0] if len(leaves) == 1 else leaves


def leaves_in(x: Any) -> Iterator[Any]:
    """The numbers and arrays in nested tuples, lists and dicts, including duals."""
    if isinstance(x, (tuple, list)):
        for item in x:
            yield from leaves_in(item)
    elif isinstance(x, dict):
        for item in x.values():
            yield from leaves_in(item)
    elif hasattr(x, "__fwdad_tag__") or isinstance(x, np.ndarray) or number_type(x) is not None:
        yield x
