"""Finite differences with an error estimate: the reference that shares no code with the rules."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

LEVELS = 4
STEPS = (1e-3, 1e-5, 2e-2)
"""The first steps that are tried, times the scale of x; the error estimate chooses."""

GOOD_ENOUGH = 1e-9


def directional(
    f: Callable[[float], dict[Any, Any]], scale: float = 1.0
) -> tuple[dict[Any, Any], dict[Any, float]]:
    """Differentiate ``f(t)`` at t = 0 by central differences and Richardson extrapolation.

    Returns arrays and their estimated absolute errors, by key. ``scale`` is the step that changes x
    by about itself. Only the error estimate may ask for another step (a kink or a pole nearby);
    agreement with the rule never chooses it.
    """
    best: dict[Any, Any] = {}
    errors: dict[Any, float] = {}
    for step in STEPS:
        for key, (value, error) in _extrapolate(f, step * scale).items():
            if key not in best or error < errors[key]:
                best[key], errors[key] = value, error
        if all(errors[k] <= GOOD_ENOUGH * max(1.0, _size(best[k])) for k in best):
            break
    return best, errors


def _size(array: Any) -> float:
    return float(np.max(np.abs(array), initial=0.0))


def _extrapolate(f: Callable[[float], dict[Any, Any]], step: float) -> dict[Any, tuple[Any, float]]:
    rows: dict[Any, list[list[Any]]] = {}
    with np.errstate(all="ignore"):
        for level in range(LEVELS):
            h = step / 2**level
            ahead, behind = f(h), f(-h)
            for key, value in ahead.items():
                row = [(value - behind[key]) / (2 * h)]
                above = rows.setdefault(key, [])
                for k, previous in enumerate(above[-1] if above else ()):
                    row.append(row[k] + (row[k] - previous) / (4.0 ** (k + 1) - 1))
                above.append(row)
    results = {}
    for key, table in rows.items():
        # The column of least change is the best one: later columns amplify rounding.
        last, before = table[-1], table[-2]
        candidates = [
            (max(_change(last[k], last[k - 1]), _change(last[k], before[k - 1])), k)
            for k in range(1, LEVELS)
        ]
        error, k = min(candidates)
        results[key] = (table[-1][k], error)
    return results


def _change(a: Any, b: Any) -> float:
    difference = np.max(np.abs(a - b), initial=0.0)
    return float(difference) if np.isfinite(difference) else np.inf
