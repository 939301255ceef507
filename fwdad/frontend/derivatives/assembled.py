"""A sparse matrix in a trace: its entries, and what makes the matrix of them after each run."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fwdad.errors import UntraceableError
from fwdad.frontend.calls.tables import ATTRIBUTES_OF
from fwdad.frontend.syntax.symbols import OfTrace
from fwdad.frontend.syntax.tracer import Tracer


class Assembled(OfTrace):
    """A sparse matrix that a traced function can return: ``make(entries)``."""

    def __init__(self, entries: Any, make: Callable[[Any], Any], shape: tuple[int, int]) -> None:
        self.entries = entries
        self.make = make
        self.shape = shape


def _attribute(tracer: Tracer, o: Assembled, name: str) -> Any:
    """``o.name``."""
    if name == "data":
        return o.entries
    if name == "shape":
        return o.shape
    message = (
        f"`{name}` of a sparse Jacobian cannot be traced: return the Jacobian, or use its `data`; "
        "for a product with a vector take jvp or vjp"
    )
    raise UntraceableError(message, tracer.position.location())


ATTRIBUTES_OF[Assembled] = _attribute
