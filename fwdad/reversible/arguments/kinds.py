"""What a program's variables are: numbers, arrays, functions, records of them.

A program is written out for the kinds of its arguments; their lengths and values do not matter.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any

import numpy as np

from fwdad.errors import UnsupportedTypeError, type_in_words
from fwdad.ir.symbol import Symbol
from fwdad.ir.types import ArrayType
from fwdad.reversible.containers.container import Container
from fwdad.reversible.numbers.grid import ExactNumber, Grid
from fwdad.reversible.numbers.logarithmic import LogarithmicFormat
from fwdad.tangents.namespaces import namespace_of
from fwdad.tangents.plain import plain


@dataclass(frozen=True)
class Numeric:
    """A number or an array of numbers, with NumPy's name of its dtype.

    Arrays (``is_array``, also without axes) are updated in place, numbers get new values.
    """

    dtype: str
    ndim: int = 0
    is_array: bool = False

    @property
    def active(self) -> bool:
        """Whether it has cotangents."""
        return np.dtype(self.dtype).kind in "fc"

    @property
    def is_complex(self) -> bool:
        """Whether its numbers are complex."""
        return np.dtype(self.dtype).kind == "c"

    @property
    def format_of(self) -> Grid | None:
        """The format of exact numbers."""
        return None

    def sample(self) -> Any:
        """Any value of this kind."""
        if self.is_array:
            return np.ones((2,) * self.ndim, self.dtype)
        return np.dtype(self.dtype).type(1).item()


@dataclass(frozen=True)
class Exact(Numeric):
    """A number or an array whose updates are exact: stored as floats of a format.

    ``cls`` is the class of such numbers outside of generated code.
    """

    format: Any = None
    cls: Any = None

    @property
    def format_of(self) -> Grid | None:
        """The format of exact numbers."""
        return self.format

    @property
    def is_log(self) -> bool:
        """Whether what is stored is a logarithm."""
        return isinstance(self.format, LogarithmicFormat)

    @property
    def plain(self) -> Numeric:
        """The kind of its values."""
        return Numeric(self.dtype, self.ndim, self.is_array)


@dataclass(frozen=True)
class Function:
    """A function that is an argument."""

    value: Any
    active = False
    is_array = False
    is_complex = False


@dataclass(frozen=True)
class Other:
    """Something without numbers, such as None or a string."""

    value: Any
    active = False
    is_array = False
    is_complex = False


@dataclass(frozen=True)
class Record:
    """A dataclass or named tuple: its fields are variables of their own."""

    cls: type
    fields: tuple[tuple[str, Any], ...]


Kind = Any


def kind_of(x: Any) -> Kind:  # noqa: PLR0911  (one return for each kind)
    """The kind of an argument, which may be a symbol or a dual; raises if it has none."""
    if isinstance(x, ExactNumber):
        of = kind_of(x.stored)
        return Exact(of.dtype, of.ndim, of.is_array, x.format, type(x))
    if type(x) is Symbol:
        array = isinstance(x.type, ArrayType)
        return Numeric(np.dtype(x.dtype).name, x.ndim if array else 0, array)
    x = plain(x)
    if isinstance(x, np.ndarray):
        if x.dtype.kind not in "biufc":
            message = f"an array of dtype {x.dtype} cannot be an argument of a reversible function"
            raise UnsupportedTypeError(message)
        return Numeric(x.dtype.name, x.ndim, True)
    if isinstance(x, (bool, int, float, complex, np.generic)):
        return Numeric(np.asarray(x).dtype.name)
    if callable(x) and not dataclasses.is_dataclass(x):
        return Function(x)
    if x is None or isinstance(x, str):
        return Other(x)
    names = field_names(x)
    if names:
        return Record(type(x), tuple((n, kind_of(getattr(x, n))) for n in names))
    message = (
        "a reversible function takes numbers, arrays, dataclasses and functions; got "
        f"{type_in_words(x)}"
    )
    raise UnsupportedTypeError(message)


def is_value(kind: Kind) -> bool:
    """Whether generated code takes arguments of a kind."""
    return not isinstance(kind, (Function, Other))


def is_number(x: Any) -> bool:
    """Whether a value is a number or an array of numbers."""
    return isinstance(x, (bool, int, float, complex, np.generic, np.ndarray, ExactNumber))


def field_names(x: Any) -> list[str]:
    """The names of a record's fields; none if it is no record."""
    if isinstance(x, Container):
        return list(x.__fwdad_fields__)
    if dataclasses.is_dataclass(x) and not isinstance(x, type):
        return [f.name for f in dataclasses.fields(x)]
    if isinstance(x, tuple) and hasattr(x, "_fields"):
        return list(x._fields)
    if type(x).__module__ == "builtins" or isinstance(x, (tuple, list, dict)):
        return []
    slots = [getattr(cls, "__slots__", ()) for cls in reversed(type(x).__mro__)]
    names = [n for s in slots for n in ((s,) if isinstance(s, str) else s)]
    slots_held = [n for n in names if n not in ("__dict__", "__weakref__") and hasattr(x, n)]
    return slots_held + list(namespace_of(x) or ())
