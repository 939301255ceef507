"""Functions of packages that others wrote, unmodified: what fwdad does with each of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np


@dataclass
class Case:
    """A function of a package at a point.

    Parameters
    ----------
    package : str
        As pip knows it.
    name : str
        What is differentiated, as a user of the package would say it.
    make : callable
        Imports the package, and returns a function of one vector, and the vector.
    refused : dict, optional
        Of each mode in which fwdad raises, the exception's class by name; "*" stands for all modes.
    rtol, atol : float, optional
        How far from differences the derivative may be.
    why : str, optional
        Why it is refused, for the table.
    """

    package: str
    name: str
    make: Callable[[], tuple[Callable[[Any], Any], np.ndarray]]
    refused: dict[str, str] = field(default_factory=dict)
    rtol: float = 1e-6
    atol: float = 1e-8
    why: str = ""

    def __str__(self) -> str:
        return f"{self.package}: {self.name}"


def differences(f: Callable[[Any], Any], x: np.ndarray) -> np.ndarray:
    """The Jacobian by central differences of sixth order, at two steps that must agree."""
    found = []
    for h in (1e-2, 5e-3):
        columns = []
        for k in range(x.size):
            step = np.zeros_like(x)
            step[k] = h * max(1e-3, abs(x[k])) * 0.1
            ends = [
                weight * (np.asarray(f(x + j * step), float) - np.asarray(f(x - j * step), float))
                for j, weight in ((1, 45.0), (2, -9.0), (3, 1.0))
            ]
            columns.append(sum(ends) / (60.0 * step[k]))
        found.append(np.stack(columns, axis=-1))
    scale = np.max(np.abs(found[1])) or 1.0
    if np.max(np.abs(found[0] - found[1])) > 1e-5 * scale:
        raise ArithmeticError(f"differences at two steps do not agree: {found[0]}, {found[1]}")
    return found[1]
