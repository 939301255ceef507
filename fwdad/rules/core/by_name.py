"""Helpers for rules of functions that are registered by name, so that SciPy is not imported.

``linear("scipy.fft.dct")`` registers without importing SciPy; the transposes of such a rule have to
wait for the import, too. Bodies reach SciPy through :class:`Lazy`.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

import numpy as np

from fwdad.errors import UntraceableError
from fwdad.rules.core.adjoints import transpose
from fwdad.rules.core.registry import RULES, when_imported
from fwdad.tangents.chunk import Chunk
from fwdad.tangents.symbolic import recorder_of
from fwdad.tangents.zero import ZERO, Undefined, Zero


class Lazy:
    """A module that is imported when one of its attributes is first read."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, attribute: str) -> Any:
        return getattr(importlib.import_module(self._name), attribute)


def transpose_by_name(
    dotted: str, *, argnum: int = 0
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """As :func:`fwdad.rules.core.adjoints.transpose`, for a function that is registered by name."""

    def decorate(body: Callable[..., Any]) -> Callable[..., Any]:
        when_imported(dotted, lambda function: transpose(function, argnum=argnum)(body))
        return body

    return decorate


def takes_factors(dotted: str) -> None:
    """Declare that a function takes a tuple of factors and pivots, not an array."""

    def attach(function: Any) -> None:
        for form in (function, RULES[function].pure):
            if form is not None:
                RULES[form].takes_arrays = False

    when_imported(dotted, attach)


def apply_linear(
    function: Any,
    primals: tuple[Any, ...],
    k: int,
    solve: Callable[[Any], Any],
    by_lane: bool = False,
    y: Any = None,
    **options: Any,
) -> Any:
    """Apply a function that takes plain arrays only to the tangent at position k.

    ``solve`` is the function with all else fixed: it gets a tangent of one or two axes as columns
    of one matrix, all lanes at once, and others, or with ``by_lane``, lane by lane. It gets what a
    tape has in place of a cotangent as it is. ``y`` is an array of the result's shape and dtype, if
    known: recording a tangent then needs no solution.
    """
    if recorder_of(primals[k]) is not None:
        return solve(primals[k])

    def law_of(chunk: Any) -> Any:
        lanes = chunk.lanes
        if by_lane or chunk.ndim > 2:
            return Chunk(np.stack([solve(lanes[k]) for k in range(chunk.n)]))
        if chunk.ndim == 1:
            return Chunk(np.swapaxes(solve(np.swapaxes(lanes, 0, 1)), 0, 1))
        columns = np.moveaxis(lanes, 0, -1)
        solution = solve(np.reshape(columns, (columns.shape[0], -1)))
        columns = np.reshape(solution, (solution.shape[0], -1, chunk.n))
        return Chunk(np.moveaxis(columns, -1, 0))

    return apply_law(function, primals, k, law_of, y, **options)


def apply_law(
    function: Any,
    primals: tuple[Any, ...],
    k: int,
    law_of: Callable[[Chunk], Chunk],
    y: Any = None,
    **options: Any,
) -> Any:
    """As :func:`apply_linear`, by a function of all lanes."""
    x_dot = primals[k]
    if isinstance(x_dot, Zero):
        return ZERO
    if isinstance(x_dot, Undefined):
        return x_dot.use()
    refuse_symbols(x_dot)
    if type(x_dot) is not Chunk and hasattr(x_dot, "__fwdad_linear__"):
        return x_dot.__fwdad_linear__(function, primals, options, law_of, x_dot, y)
    return law_of(x_dot)


def refuse_symbols(x: Any) -> None:
    """Raise if a value of a tape meets a function that takes plain arrays only."""
    if recorder_of(x) is not None:
        raise UntraceableError(
            "compiled code that accepts only plain arrays gets a value that is not known during "
            "tracing"
        )


def untouched(options: dict[str, Any]) -> dict[str, Any]:
    """Options that leave the arguments unchanged: the tangent needs them after the primal."""
    return {k: False if k.startswith("overwrite_") else v for k, v in options.items()}
