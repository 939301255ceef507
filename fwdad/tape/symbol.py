"""Symbols: what stands for a value while a program is written down."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from fwdad.errors import UntraceableError
from fwdad.tape.ops import Value
from fwdad.tape.types import ArrayType, Number

if TYPE_CHECKING:
    from fwdad.tape.recorder import Recorder


class Symbol:
    """A value of the tape that is being written, with the operators of the number that it will be.

    Parameters
    ----------
    value : Value
        The tape's value.
    recorder : Recorder
        Writes the tape.
    """

    __slots__ = ("recorder", "value")
    __array_priority__ = 1e5

    def __init__(self, value: Value, recorder: Recorder) -> None:
        self.value = value
        self.recorder = recorder

    @property
    def type(self) -> Number | ArrayType:
        """What is known of the value."""
        return self.value.type

    @property
    def is_array(self) -> bool:
        """Whether it is an array (0-d ones too), not a number."""
        return type(self.value.type) is ArrayType

    def __repr__(self) -> str:
        return f"Symbol({self.value.name or '…'}: {self.value.type})"

    def _refuse(self, what: str) -> NoReturn:
        message = (
            f"a value that is not known when the program is traced is needed {what}; code without "
            "a Python source asked for it"
        )
        raise UntraceableError(message)

    def __bool__(self) -> bool:
        self._refuse("to decide a branch")

    def __float__(self) -> float:
        self._refuse("as a float")

    def __complex__(self) -> complex:
        self._refuse("as a complex")

    def __int__(self) -> int:
        self._refuse("as an int")

    def __index__(self) -> int:
        self._refuse("as an index")

    def __len__(self) -> int:
        self._refuse("for its length")

    def __iter__(self) -> Any:
        self._refuse("to iterate over it")

    def __array__(self, *_args: Any, **_kwargs: Any) -> NoReturn:
        self._refuse("as a plain array")

    def __hash__(self) -> int:
        self._refuse("as a key of a dict or set")

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        function = ufunc if method == "__call__" else getattr(ufunc, method)
        return self.recorder.apply(function, inputs, options)

    def __array_function__(self, function: Any, _types: Any, args: Any, kwargs: Any) -> Any:
        return self.recorder.apply(function, args, kwargs)

    def __getitem__(self, index: Any) -> Any:
        return self.recorder.load(self, index)

    def __setitem__(self, index: Any, value: Any) -> None:
        self.recorder.store(self, index, value)

    @property
    def ndim(self) -> int:
        """The rank."""
        return self.type.ndim

    @property
    def dtype(self) -> np.dtype[Any]:
        """The dtype."""
        return self.type.dtype

    @property
    def shape(self) -> tuple[Any, ...]:
        """The lengths: ints, and symbols of ints."""
        return self.recorder.shape(self)


def _forward(function: Callable[..., Any]) -> Any:
    return lambda a, b: a.recorder.apply(function, (a, b), {})


def _reflected(function: Callable[..., Any]) -> Any:
    return lambda a, b: a.recorder.apply(function, (b, a), {})


def _unary(function: Callable[..., Any]) -> Any:
    return lambda a: a.recorder.apply(function, (a,), {})


for _name in ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "matmul", "and_", "or_",
              "xor", "lshift", "rshift"):  # fmt: skip
    _stem = _name.rstrip("_")
    setattr(Symbol, f"__{_stem}__", _forward(getattr(operator, _name)))
    setattr(Symbol, f"__r{_stem}__", _reflected(getattr(operator, _name)))
for _name in ("lt", "le", "gt", "ge", "eq", "ne"):
    setattr(Symbol, f"__{_name}__", _forward(getattr(operator, _name)))
for _name in ("neg", "pos", "invert"):
    setattr(Symbol, f"__{_name}__", _unary(getattr(operator, _name)))
Symbol.__abs__ = _unary(abs)  # type: ignore[attr-defined]


class _Unbound:
    """The content of a name that nothing has been assigned to."""

    def __repr__(self) -> str:
        return "UNBOUND"


UNBOUND: Any = _Unbound()
