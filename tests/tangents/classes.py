"""Classes as users write them, which several tests take apart."""

from dataclasses import dataclass
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np


class Point(NamedTuple):
    x: float
    y: np.ndarray


@dataclass(frozen=True)
class Body:
    mass: float
    place: np.ndarray
    name: str = "body"


T = TypeVar("T")


@dataclass
class Box(Generic[T]):
    content: T


class Unknown:
    def __repr__(self):
        return "Unknown()"


@dataclass(slots=True)
class Slots:
    a: float
    other: Any = None
