"""Symbols: stand-ins for values while a program is recorded."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any, NoReturn, Protocol, Self

import numpy as np

from fwdad.errors import Location, UntraceableError, type_in_words, with_article
from fwdad.ir.ops import Operand, Value
from fwdad.ir.types import ArrayType, Number, Type, joined, product
from fwdad.ops import record_of
from fwdad.rules.core.partials import SINGLE
from fwdad.tangents.chunk import Chunk
from fwdad.tangents.zero import Undefined, Zero

_TANGENTS = (Chunk, Zero, Undefined)


class Recording(Protocol):
    """What records calls, loads and stores: :class:`fwdad.ir.builder.recorder.Recorder`."""

    place: Callable[[], Location | None]
    ways: Any

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

    def length(self, a: Symbol, axis: int) -> Any:
        """One length of an array, as an int or a symbol."""

    def static_length(self, d: Any) -> Any:
        """A length as an int or a symbol."""

    def length_symbol(self, d: Any) -> Any:
        """A length that is known only at run time as a symbol."""

    def is_written(self, v: Value) -> bool:
        """Whether the memory of an array is written."""

    def may_share(self, a: Value, b: Value) -> bool:
        """Whether two arrays may share memory."""


class Symbol:
    """A value of the tape that is being recorded, with operators that record operations."""

    __slots__ = ("recorder", "value")
    __array_priority__ = 1e5
    __fwdad_symbolic__ = True
    recorder: Recording

    def __init__(self, value: Value, recorder: Any) -> None:
        self.value = value
        self.recorder = recorder

    @property
    def type(self) -> Number | ArrayType:
        """The type of the value."""
        return self.value.type

    @property
    def is_array(self) -> bool:
        """Whether it is an array, perhaps 0-d, and not a number."""
        return type(self.value.type) is ArrayType

    def __repr__(self) -> NoReturn:
        self._refuse("as a text")  # the same for all values, which would be equal by it

    __str__ = __repr__

    def __format__(self, _spec: str) -> NoReturn:
        self._refuse("as a text")

    def _refuse(self, what: str) -> NoReturn:
        message = (
            f"a value that is unknown until run time is needed {what}, by code that has no Python "
            "source"
        )
        raise UntraceableError(message, self.recorder.place())

    def __bool__(self) -> bool:
        ways = self.recorder.ways
        taken = UNBOUND if ways is None else ways.assumed(self)
        if taken is UNBOUND:
            self._refuse("to decide a branch")
        return bool(taken)

    def __float__(self) -> float:
        self._refuse("as a float")

    def __complex__(self) -> complex:
        self._refuse("as a complex")

    def __int__(self) -> int:
        self._refuse("as an int")

    def __index__(self) -> int:
        self._refuse("as an index")

    def __len__(self) -> int:
        if not self.type.shape or not isinstance(self.shape[0], int):
            self._refuse("for its length")
        return self.shape[0]

    def __iter__(self) -> Any:
        if not self.type.shape or not isinstance(self.shape[0], int):
            self._refuse("to iterate over it")
        return iter([self[k] for k in range(self.shape[0])])

    def __array__(self, *_args: Any, **_kwargs: Any) -> NoReturn:
        self._refuse("as a plain array")

    @property
    def flags(self) -> NoReturn:
        """Refuse: SciPy 1.13 reads the memory layout of an array before it copies it."""
        self._refuse("for its flags")

    def __hash__(self) -> int:
        self._refuse("as a key of a dict or set")

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        if any(isinstance(x, _TANGENTS) for x in inputs):
            return NotImplemented  # what is done to a tangent is its own affair
        if method == "at":
            self._refuse("to be written into by ufunc.at")
        function = ufunc if method == "__call__" else getattr(ufunc, method)
        return self.recorder.apply(function, inputs, options)

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        if any(issubclass(t, _TANGENTS) for t in types):
            return NotImplemented
        if record_of(function).writes:
            self._refuse(f"to be written into by {function.__name__}")
        return self.recorder.apply(function, args, kwargs)

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, tuple) and not index and not self.is_array:
            return self
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
        """The lengths: ints, and :class:`Length` where they are unknown."""
        return tuple(self.recorder.static_length(d) for d in self.type.shape)

    # what laws of linear operations need of an array

    def reshape(self, *shape: Any, order: str = "C") -> Any:
        """As ``ndarray.reshape``."""
        new = shape[0] if len(shape) == 1 else shape
        return self.recorder.apply(
            np.reshape, (self, new), {} if order == "C" else {"order": order}
        )

    def transpose(self, *axes: Any) -> Any:
        """As ``ndarray.transpose``."""
        order = axes[0] if len(axes) == 1 else axes or None
        return self.recorder.apply(np.transpose, (self, order), {})

    def swapaxes(self, first: int, second: int) -> Any:
        """As ``ndarray.swapaxes``."""
        return self.recorder.apply(np.swapaxes, (self, first, second), {})

    def astype(self, dtype: Any) -> Any:
        """As ``ndarray.astype``."""
        if not self.is_array:
            return self.recorder.apply(np.dtype(dtype).type, (self,), {})
        return self.recorder.apply(np.ndarray.astype, (self, np.dtype(dtype)), {})

    def copy(self) -> Any:
        """A copy if the memory may be written later, else itself."""
        if not self.is_array or not self.recorder.is_written(self.value):
            return self
        return self.recorder.apply(np.ndarray.copy, (self,), {})

    def conj(self) -> Any:
        """The complex conjugate; a real array itself, as in NumPy."""
        if self.is_array and self.dtype.kind != "c":
            return self
        return self.recorder.apply(np.conjugate, (self,), {})

    def sum(self, axis: Any = None, **options: Any) -> Any:
        """As ``ndarray.sum``."""
        return self.recorder.apply(np.sum, (self,), {"axis": axis, **options})

    @property
    def size(self) -> Any:
        """The number of elements."""
        return math.prod(self.shape)

    T = property(lambda self: self.transpose())
    mT = property(lambda self: self.swapaxes(-1, -2))
    real = property(lambda self: self.recorder.apply(np.real, (self,), {}))
    imag = property(lambda self: self.recorder.apply(np.imag, (self,), {}))


def as_numpy_number(x: Any, dtype: Any = None) -> Any:
    """A Python number as NumPy's, for partials, so that 1/0.0 is inf as for arrays.

    A list of numbers becomes an array; anything else but a number or symbol is returned as it is.
    ``dtype`` is that of the result to differentiate: single precision narrows the number.
    """
    single = dtype is not None and dtype in SINGLE
    if type(x) is Symbol and isinstance(x.type, Number) and x.type.python:
        if x.type.dtype.kind in "fc":
            kind = _NARROW[x.type.dtype.kind] if single else x.type.dtype.type
            return x.recorder.apply(kind, (x,), {})
    elif type(x) in (list, tuple, range):
        return np.asarray(x)
    elif type(x) is float:
        return np.float32(x) if single else np.float64(x)
    return x


_NARROW = {"f": np.float32, "c": np.complex64}


def as_divisor(x: Any, dtype: Any) -> Any:
    """A Python int as a float of the precision of ``dtype``, so that division by zero is defined.

    Anything but a number or symbol is returned as it is.
    """
    kind = np.zeros((), dtype).real.dtype.type
    if type(x) is Symbol and isinstance(x.type, Number) and x.type.python:
        return x.recorder.apply(kind, (x,), {}) if x.type.dtype.kind in "bi" else x
    return kind(x) if type(x) in (bool, int) and x == 0 else x


def kind_in_words(x: Any) -> str:
    """What a traced value is, for messages."""
    if type(x) is Symbol:
        return "an array" if x.is_array else with_article(str(x.type))
    # of the class: an object of the user's may ask itself for attributes that it lacks yet
    return vars(type(x)).get("in_words") or type_in_words(x)


class UnknownText(str):
    """The text of a number that is not known yet: the message of an exception.

    ``recipe`` is a function and the arguments from which it makes the text once the numbers are
    known; None if there is none.
    """

    __slots__ = ("place", "recipe")

    place: Location | None
    recipe: tuple[Any, ...] | None

    def __new__(
        cls, place: Location | None, text: str = "…", recipe: tuple[Any, ...] | None = None
    ) -> Self:
        """A text to come, with ``…`` in place of what is unknown."""
        text_to_come = super().__new__(cls, text)
        text_to_come.place, text_to_come.recipe = place, recipe
        return text_to_come

    def __bool__(self) -> bool:
        """True, since the text of a number is not empty."""
        return True

    def known(self) -> str:
        """The known part, as a plain string."""
        return str.__str__(self)

    def refuse(self, *_: object) -> Any:
        """Raise an ``UntraceableError``: the characters themselves are needed."""
        message = (
            "the string of a number that is unknown until run time can only be the message of an "
            "error: as a key or a name use something known at trace time, such as the counter of "
            "a loop over range(3)"
        )
        raise UntraceableError(message, self.place)

    # what C code would do with the characters: `len`, `max`, `in`, a key of a dict
    __len__ = __iter__ = __getitem__ = __contains__ = __hash__ = __eq__ = __ne__ = refuse


class Length:
    """An unknown length: equal only to itself, a symbolic number in arithmetic.

    Products of lengths are lengths, and equal whatever the order of their factors.
    """

    __slots__ = ("recorder", "size")
    __fwdad_symbolic__ = True
    recorder: Recording

    def __init__(self, size: Any, recorder: Any) -> None:
        self.size = size
        self.recorder = recorder

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Length) and other.size is self.size

    def __hash__(self) -> int:
        return hash(self.size)

    def __repr__(self) -> str:
        return "?"

    def __bool__(self) -> NoReturn:
        self.symbol._refuse("to decide a branch")

    def __index__(self) -> NoReturn:
        message = "a length that is unknown until run time is needed as a number"
        raise UntraceableError(message, self.recorder.place())

    @property
    def may_be_one(self) -> bool:
        """Whether it may be 1, and so broadcast."""
        return self.size.may_be_one

    def joined(self, other: Length) -> Length:
        """The length of what is broadcast from this length and another one."""
        return Length(joined(self.size, other.size), self.recorder)

    @property
    def symbol(self) -> Symbol:
        """The length as a number."""
        return self.recorder.length_symbol(self.size)

    def __mul__(self, other: Any) -> Any:
        if type(other) is int:
            factors: tuple[int, tuple[Any, ...]] = (other, ())
        elif type(other) is Length:
            factors = other.size.factors
        else:
            return self.symbol * other
        return self._made(self.size.factors[0] * factors[0], self.size.factors[1] + factors[1])

    __rmul__ = __mul__

    def __floordiv__(self, other: Any) -> Any:
        """Cancel a factor; other quotients are symbolic numbers."""
        coefficient, factors = self.size.factors
        if type(other) is int and other and coefficient % other == 0:
            return self._made(coefficient // other, factors)
        if type(other) is Length:
            by, others = other.size.factors
            rest = list(factors)
            if all(o in rest and not rest.remove(o) for o in others) and coefficient % by == 0:  # type: ignore[func-returns-value]
                return self._made(coefficient // by, tuple(rest))
            other = other.symbol
        return self.symbol // other

    def _made(self, coefficient: int, factors: tuple[Any, ...]) -> Any:
        length = product(coefficient, factors)
        return length if type(length) is int else self.recorder.static_length(length)


def _forward(function: Callable[..., Any]) -> Any:
    def operator_of(a: Symbol, b: Any) -> Any:
        return (
            NotImplemented if isinstance(b, _TANGENTS) else a.recorder.apply(function, (a, b), {})
        )

    return operator_of


def _reflected(function: Callable[..., Any]) -> Any:
    def operator_of(a: Symbol, b: Any) -> Any:
        return (
            NotImplemented if isinstance(b, _TANGENTS) else a.recorder.apply(function, (b, a), {})
        )

    return operator_of


def _unary(function: Callable[..., Any]) -> Any:
    return lambda a: a.recorder.apply(function, (a,), {})


for _name in ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "matmul", "and_", "or_",
              "xor", "lshift", "rshift"):  # fmt: skip
    _stem = _name.rstrip("_")
    setattr(Symbol, f"__{_stem}__", _forward(getattr(operator, _name)))
    setattr(Symbol, f"__r{_stem}__", _reflected(getattr(operator, _name)))
for _name in (
    "all", "any", "max", "min", "mean", "prod", "cumsum", "cumprod", "ravel", "diagonal", "squeeze",
    "trace", "dot", "argmax", "argmin", "argsort", "take", "repeat", "clip", "var", "std", "round",
):  # fmt: skip

    def _method(
        self: Symbol, *args: Any, _function: Any = getattr(np, _name), **options: Any
    ) -> Any:
        return self.recorder.apply(_function, (self, *args), options)

    setattr(Symbol, _name, _method)
Symbol.conjugate = Symbol.conj  # type: ignore[attr-defined]
for _name in ("lt", "le", "gt", "ge", "eq", "ne"):
    setattr(Symbol, f"__{_name}__", _forward(getattr(operator, _name)))
for _name in ("neg", "pos", "invert"):
    setattr(Symbol, f"__{_name}__", _unary(getattr(operator, _name)))
Symbol.__abs__ = _unary(abs)  # type: ignore[attr-defined]


for _name in ("add", "sub", "truediv", "mod", "lt", "le", "gt", "ge"):
    setattr(
        Length, f"__{_name}__",
        lambda a, b, f=getattr(operator, _name): f(a.symbol, b.symbol if type(b) is Length else b),
    )  # fmt: skip
for _name in ("add", "sub", "truediv", "mod", "floordiv"):
    setattr(Length, f"__r{_name}__", lambda a, b, f=getattr(operator, _name): f(b, a.symbol))


class _Unbound:
    """The content of a name that nothing has been assigned to."""

    def __repr__(self) -> str:
        return "UNBOUND"

    def __reduce__(self) -> str:
        return "UNBOUND"  # there is one only


UNBOUND: Any = _Unbound()
