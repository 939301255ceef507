"""Checks that results have the lengths that a tape takes for granted, where samples told these."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from fwdad.errors import UntraceableError
from fwdad.ir.abstract_eval.shape_rules import BY_NAME, BY_SHAPE
from fwdad.ir.leaves import Leaves
from fwdad.ir.other_way import OtherWayError
from fwdad.ops.record import full_name, record_of
from fwdad.rules.core.registry import is_declared_pure

_EXACT = {"", "builtins", "cmath", "fwdad", "math", "numpy", "operator"}
"""Packages of functions whose lengths grow evenly, or that check what they return."""


class UnforeseenShapeError(UntraceableError, OtherWayError):
    """A function returns an array of other lengths than its samples have let expect."""


def told_by_samples(function: Callable[..., Any]) -> bool:
    """Whether nothing but samples told the lengths that a function returns.

    It is called by Python, and no compiled loop: to look at its result costs nothing beside it.
    """
    if type(function) is Leaves:
        function = function.function
    home = (getattr(function, "__module__", None) or "").partition(".")[0].lstrip("_")
    if home in _EXACT or not (record_of(function).pure or is_declared_pure(function)):
        return False
    return function not in BY_SHAPE and full_name(function) not in BY_NAME


def of_shape(y: Any, *shapes: tuple[int | None, ...]) -> Any:
    """``y``, a result of arrays and numbers that have these shapes; None is any length."""
    for part, shape in zip((y,) if len(shapes) == 1 else y, shapes, strict=True):
        own = np.shape(part)
        if len(own) != len(shape) or any(
            n not in (None, m) for m, n in zip(own, shape, strict=True)
        ):
            wanted = ", ".join("?" if n is None else str(n) for n in shape)
            raise UnforeseenShapeError(
                f"a function returns an array of shape {own} here, and the program was traced for "
                f"({wanted}): the lengths depend on more than it could be seen of samples"
            )
    return y
