"""Functions of packages that others wrote, unmodified: what fwdad does with each of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np


@dataclass
class PackageFunction:
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
