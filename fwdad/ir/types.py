"""The types of a tape's values: what is known of a value before the program runs."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

_names = itertools.count()
_FACTS = ("factors", "shortened", "smallest_of", "joined_of")  # of a length, beside its origin

NUMERIC = "biufc"
"""The kinds of dtype that a value of a tape can have."""


class CannotInferError(TypeError):
    """The type of a value is unknown before the program runs."""


class Size:
    """A length that is unknown when a tape is made.

    Dimensions that share one ``Size`` are equal in every run. ``origin`` is the ``(input, axis)``
    that has this length, ``hint`` the length in the traced example; None if there is none.
    """

    __slots__ = (
        "_derived", "factors", "hint", "joined_of", "number", "origin", "shortened", "smallest_of",
    )  # fmt: skip

    def __init__(self, origin: tuple[int, int] | None = None, hint: int | None = None) -> None:
        self.origin = origin
        self.hint = hint
        self.number = next(_names)
        self.factors: tuple[int, tuple[Size, ...]] = (1, (self,))
        self.shortened: tuple[Size, int] = (self, 0)  # max(of - by, 0); by may be negative
        self.smallest_of: tuple[Dimension, ...] = ()
        self.joined_of: frozenset[Size] = frozenset((self,))
        self._derived: dict[Any, Size] = {}

    def __repr__(self) -> str:
        return "?"

    def __reduce__(self) -> Any:  # its number is of this process
        return (Size, (self.origin, self.hint), {name: getattr(self, name) for name in _FACTS})

    def __setstate__(self, facts: dict[str, Any]) -> None:
        for name, fact in facts.items():
            setattr(self, name, fact)

    @property
    def least(self) -> int:
        """A lower bound; lengths of inputs are at least two."""
        if self.origin is not None:
            return 2
        if self.smallest_of:
            return min(d.least if isinstance(d, Size) else d for d in self.smallest_of)
        of, by = self.shortened
        if of is not self:
            return max(of.least - by, 0)
        coefficient, factors = self.factors
        if factors == (self,):
            return 0
        return coefficient * math.prod(f.least for f in factors)

    @property
    def may_be_one(self) -> bool:
        """Whether it may be 1, and so broadcast."""
        return self.least < 2

    def derive(self, key: Any) -> Size:
        """A length that depends only on this one and a key: the same object each time."""
        size = self._derived.get(key)
        if size is None:
            size = self._derived.setdefault(key, Size())
        return size

    def minus(self, k: int) -> Size:
        """The length after removing k elements, or as many as there are; or with -k more."""
        of, by = self.shortened
        if k < 0 and by > of.least:  # the elements that are added are not those that were removed
            of, by = self, 0
        if by + k == 0:
            return of
        size = of.derive(("minus", by + k))
        size.shortened = (of, by + k)
        return size


def sliced(d: Dimension, s: slice, unknown: Dimension | None = None) -> Dimension:
    """The length of a slice of a dimension, where it is known.

    The slice has ints, None, or hashable values that stand for ints. ``unknown`` is returned for an
    undetermined part of a known length; None makes a new length.
    """
    if s.start is None and s.stop is None and s.step in (None, -1, 1):
        return d
    from_first = s.start is None or (type(s.start) is int and s.start == 0)
    if from_first and s.step in (None, 1):  # up to a length
        stop = getattr(getattr(s.stop, "type", s.stop), "size", None)
        if isinstance(stop, Size):
            return stop if d in stop.smallest_of else smallest(d, stop)
    plain = all(x is None or isinstance(x, (int, np.integer)) for x in (s.start, s.stop, s.step))
    if isinstance(d, int):
        if plain:
            return len(range(*s.indices(d)))
        return Size() if unknown is None else unknown
    if plain and s.step in (None, 1) and (s.start or 0) >= 0 and (s.stop is None or s.stop < 0):
        return d.minus(int(s.start or 0) - int(s.stop or 0))
    if plain and d.origin is not None and all(abs(int(x or 0)) <= 2 for x in (s.start, s.stop)):
        # an argument has two elements at least (one of fewer has a tape of its own), so that the
        # bounds are inside: the length is constant, or grows within as many elements as it steps
        period = abs(int(s.step or 1))
        lengths = {len(range(*s.indices(n))) for n in range(2, 8 + period)}
        if len(lengths) == 1:
            return lengths.pop()
    return d.derive(("slice", s.start, s.stop, s.step))


def smallest(a: Dimension, b: Dimension) -> Dimension:
    """The smaller of two lengths, as in a factorisation of a matrix."""
    if a == b or (isinstance(a, int) and isinstance(b, int)):
        return a if isinstance(a, Size) else min(a, b)  # type: ignore[type-var]
    first, other = (a, b) if isinstance(a, Size) else (b, a)
    assert isinstance(first, Size)
    if isinstance(other, Size) and other.number < first.number:
        first, other = other, first
    size = first.derive(("smallest", other))
    size.smallest_of = (first, other)
    return size


def joined(*sizes: Size) -> Size:
    """The length of what is broadcast together from lengths that may be one; in any order."""
    first, *rest = sorted(frozenset[Size]().union(*(d.joined_of for d in sizes)), key=_number)
    if not rest:
        return first
    size = first.derive(("with", *rest))
    size.joined_of = frozenset((first, *rest))
    return size


def _number(d: Size) -> int:
    return d.number


def product(coefficient: int, sizes: tuple[Size, ...]) -> int | Size:
    """The product of lengths; equal products are one object."""
    factors = tuple(sorted(sizes, key=lambda s: s.number))
    if not factors or not coefficient:
        return coefficient
    if len(factors) == 1 and coefficient == 1:
        return factors[0]
    size = factors[0].derive(("times", coefficient, factors[1:]))
    size.factors = (coefficient, factors)
    return size


Dimension = int | Size


@dataclass(frozen=True)
class Number:
    """A scalar; Python's and NumPy's differ, since ``1/0.0`` raises only for Python's.

    ``size`` is the length that an int is. ``paths`` are the types that a value has on several
    paths where arithmetic with them differs, since the ints of one wrap around earlier; else none.
    """

    dtype: np.dtype[Any]
    python: bool
    size: Size | None = field(default=None, compare=False)
    paths: frozenset[Number] = field(default=frozenset(), compare=False)

    def __str__(self) -> str:
        return _PYTHON_NAMES[self.dtype.kind] if self.python else str(self.dtype)

    @property
    def ndim(self) -> int:
        """Zero, as for a 0-d array."""
        return 0

    @property
    def shape(self) -> tuple[Dimension, ...]:
        """Empty."""
        return ()


_PYTHON_NAMES = {"b": "bool", "i": "int", "f": "float", "c": "complex"}


@dataclass(frozen=True)
class ArrayType:
    """An array: dtype and rank are known, each dimension is an int or a :class:`Size`."""

    dtype: np.dtype[Any]
    shape: tuple[Dimension, ...]

    def __post_init__(self) -> None:
        if self.dtype.kind not in NUMERIC:
            raise CannotInferError(f"it is an array of dtype {self.dtype}")

    def __str__(self) -> str:
        return f"{self.dtype}[{', '.join(str(d) for d in self.shape)}]"

    @property
    def ndim(self) -> int:
        """The rank."""
        return len(self.shape)


Type = Number | ArrayType

BOOL = Number(np.dtype(bool), python=True)
INT = Number(np.dtype(np.int64), python=True)
FLOAT = Number(np.dtype(np.float64), python=True)
COMPLEX = Number(np.dtype(np.complex128), python=True)

_OF_PYTHON = {bool: BOOL, int: INT, float: FLOAT, complex: COMPLEX}
_ORDER = (BOOL, INT, FLOAT, COMPLEX)


def least_shape(t: ArrayType) -> tuple[int, ...]:
    """The shape of the smallest array of a type: unknown lengths are 0."""
    return tuple(0 if isinstance(d, Size) else d for d in t.shape)


def of_any_lengths(t: ArrayType) -> ArrayType:
    """An array type like another, with new lengths for unknown ones."""
    return ArrayType(t.dtype, tuple(Size() if isinstance(d, Size) else d for d in t.shape))


def number_type(x: Any) -> Number | None:
    """The type of a number, or None for anything else."""
    known = _OF_PYTHON.get(type(x))
    if known is not None:
        return known
    if isinstance(x, np.generic) and x.dtype.kind in NUMERIC:
        return Number(x.dtype, python=False)
    return None


def type_of(x: Any) -> Type | None:
    """The type of a concrete value with every dimension known, or None if it has none."""
    if isinstance(x, np.ndarray):
        return ArrayType(x.dtype, x.shape) if x.dtype.kind in NUMERIC else None
    return number_type(x)


_STATIC = "OSUTMm"


def is_static_array(x: Any) -> bool:
    """Whether something is an array of texts, dates or objects, which is no value of a tape."""
    return type(x) is np.ndarray and x.dtype.kind in _STATIC


def unsized(t: Type) -> Type:
    """The type of a number, without the length that it is equal to."""
    return replace(t, size=None) if isinstance(t, Number) and t.size is not None else t


def join(a: Type, b: Type) -> Type | None:
    """The smallest type that holds values of both exactly, or None if there is none.

    Numbers widen as in Python's arithmetic, ints to floats, Python's to NumPy's. Arrays join if
    dtype and rank agree; differing dimensions become unknown.
    """
    if isinstance(a, Number) and isinstance(b, Number):
        return _joined_numbers(a, b)
    if a == b:
        return a
    if isinstance(a, ArrayType) and isinstance(b, ArrayType):
        if a.dtype != b.dtype or a.ndim != b.ndim:
            return None
        shape = tuple(m if m == n else Size() for m, n in zip(a.shape, b.shape, strict=True))
        return ArrayType(a.dtype, shape)
    return None


def _joined_numbers(a: Number, b: Number) -> Number | None:
    if a.size is not b.size:  # an int that is a length on one path is none on the other
        a, b = replace(a, size=None), replace(b, size=None)
    paths = joined_paths(a, b)
    if a == b:
        return a if paths == a.paths else replace(a, paths=paths)
    if a.python and b.python:
        return max(a, b, key=_ORDER.index)
    dtype = np.promote_types(a.dtype, b.dtype)
    if dtype.kind == "f" and a.dtype.kind in "iu" and b.dtype.kind in "iu":
        return None  # uint64 beside a signed type
    return Number(dtype, python=False, paths=paths)


def joined_paths(a: Number, b: Number) -> frozenset[Number]:
    """The types that a value has on several paths, where arithmetic with them differs."""
    types = frozenset(p for t in (a, b) for p in t.paths or (Number(t.dtype, t.python),))
    small = any(not t.python and rounds_early(t.dtype) for t in types)
    return types if len(types) > 1 and small else frozenset()


def paths_of(t: Type) -> frozenset[Number]:
    """The types that a value of a type has on several paths, where arithmetic differs."""
    return t.paths if isinstance(t, Number) else frozenset()


def rounds_early(dtype: np.dtype[Any]) -> bool:
    """Whether arithmetic of a dtype wraps around or rounds far earlier than with wider ones."""
    return (dtype.kind in "biu" and dtype.itemsize < 8) or dtype == np.float16


def holds(t: Type, x: Any) -> bool:
    """Whether NumPy's numbers of a type hold a Python number exactly."""
    if not isinstance(t, Number) or t.python or type(x) not in _OF_PYTHON:
        return False
    if _KINDS[t.dtype.kind] < _KINDS[_OF_PYTHON[type(x)].dtype.kind]:
        return False
    try:
        with np.errstate(over="ignore"):
            y = t.dtype.type(x).item()
    except OverflowError:
        return False
    return bool(y == x or (np.isnan(y) and np.isnan(x)))


_KINDS = {"b": 0, "i": 1, "u": 1, "f": 2, "c": 3}


def covers(wide: Type, narrow: Type) -> bool:
    """Whether code for one type accepts values of another without conversion."""
    if isinstance(wide, ArrayType) and isinstance(narrow, ArrayType):
        return (
            wide.dtype == narrow.dtype
            and wide.ndim == narrow.ndim
            and all(
                isinstance(m, Size) or m == n for m, n in zip(wide.shape, narrow.shape, strict=True)
            )
        )
    return wide == narrow


def result_kind(result: Any) -> Any:
    """What converts a result of compiled code to the type that NumPy would return, or None."""
    t = getattr(result, "type", None)
    if isinstance(t, Number) and not t.python:
        return np.dtype(t.dtype).type
    return None
