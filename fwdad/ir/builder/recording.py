"""What the parts of the recorder record with."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from fwdad.errors import Location
from fwdad.ir.ops import Operand, Value
from fwdad.ir.symbol import Symbol
from fwdad.ir.types import Type


class Recording(Protocol):
    """What records calls, loads and stores: :class:`fwdad.ir.builder.recorder.Recorder`."""

    place: Callable[[], Location | None]

    def apply(
        self, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        """Record a call of a function without side effects, and return its result."""

    def apply_typed(self, function: Callable[..., Any], args: tuple[Any, ...], t: Type) -> Symbol:
        """Record a call of a function whose result type is known."""

    def infer(self, function: Any, inputs: Any, options: Any) -> Any:
        """The type of a call's result, in its structure."""

    def operand(self, x: Any) -> Operand:
        """A traced value as an operand."""

    def as_symbol(self, x: Any) -> Symbol:
        """A number or array as a symbol."""

    def as_array(self, x: Any) -> Any:
        """A list that holds symbols as an array."""

    def load(self, a: Symbol, index: Any) -> Any:
        """Record ``a[index]``."""

    def store(self, a: Any, index: Any, value: Any) -> None:
        """Record ``a[index] = value``."""

    def store_where(self, a: Symbol, value: Any, where: Any) -> None:
        """Record a write into an array where a condition holds."""

    def check(
        self,
        condition: Any,
        exception: Any,
        arguments: tuple[Any, ...] = (),
        location: Location | None = None,
    ) -> None:
        """Record that an exception is raised unless a condition holds."""

    def may_share(self, a: Value, b: Value) -> bool:
        """Whether two arrays may share memory."""
