"""Which type the tangents of a value have: ``tangent_type(T, N)``, and classes that users add.

Floats, complex numbers and arrays of them have a ``Chunk``; composites have the same structure
with the chunk pushed to the leaves; everything else has ``NoTangent``.
"""

from __future__ import annotations

import dataclasses
import threading
import types
import typing
import weakref
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from fwdad.errors import DuplicateRuleError, UnsupportedTypeError
from fwdad.tangents import vectors
from fwdad.tangents.chunk import Chunk, plain
from fwdad.tangents.composite import (
    REGISTERED,
    Flatten,
    Registration,
    Unflatten,
    flatten,
    is_part,
    match_or_none,
    register,
    registration_of,
    unflatten,
)
from fwdad.tangents.refused import refusal
from fwdad.tangents.seeds import BasisSeeds, leaf_dtype, leaf_shape, random_seeds
from fwdad.tangents.vectors import OWN, OwnTangents
from fwdad.tangents.zero import NoTangent, NoTangentType, Undefined, Zero


@dataclass(frozen=True)
class ArrayType:
    """The type of the arrays of one dtype, as ``numpy.ndarray`` alone does not tell it.

    Attributes
    ----------
    dtype : numpy.dtype
        The dtype.
    """

    dtype: np.dtype[Any]

    def __post_init__(self) -> None:
        object.__setattr__(self, "dtype", np.dtype(self.dtype))

    def __repr__(self) -> str:
        return f"ndarray[{self.dtype}]"


@dataclass(frozen=True, eq=False)
class TangentType:
    """The type of the N tangents of the values of one type. There is one for each (T, N).

    Attributes
    ----------
    primal : type, ArrayType or generic
        T.
    n : int
        N, the number of lanes.
    """

    primal: Any
    n: int

    def fits(self, x: Any) -> bool:
        """Whether a value is of the primal type."""
        raise NotImplementedError

    def zero(self, x: Any) -> Any:
        """The zero tangents of a value, written out."""
        return vectors.zero_tangent(self._checked(x), self.n)

    def basis(self, x: Any, start: int = 0) -> Any:
        """The unit directions ``start`` to ``start + n`` of a value, leaf after leaf in C order."""
        leaves, structure = flatten(self._checked(x), strict=True)
        chunks = BasisSeeds(leaves).lanes(start, start + self.n)
        return unflatten(structure, chunks, lambda _: NoTangent)

    def random(self, x: Any, rng: np.random.Generator) -> Any:
        """Random tangents of a value, normal in every real part."""
        leaves, structure = flatten(self._checked(x), strict=True)
        chunks = [Chunk(lanes) for lanes in random_seeds(leaves, self.n, rng)]
        return unflatten(structure, chunks, lambda _: NoTangent)

    def holds(self, x: Any, x_dot: Any) -> bool:
        """Whether ``x_dot`` is a valid tangent of ``x``: its structure, shapes, lanes and fields."""
        if not self.fits(x):
            return False
        parts, structure = flatten(x, leaf=lambda v: is_part(v) or type(v) in OWN)
        tangents = match_or_none(structure, x_dot)
        if tangents is None:
            return False
        return all(self._part_holds(v, t) for v, t in zip(parts, tangents, strict=True))

    def _part_holds(self, v: Any, t: Any) -> bool:
        if isinstance(t, (Zero, Undefined)):
            return True
        if type(v) in OWN:
            wanted = OWN[type(v)].tangent
            return (
                isinstance(t, Chunk) and t.n == self.n and all(type(k) is wanted for k in t.lanes)
            )
        if vectors.tangent_space_of(v) is None:
            return t is NoTangent
        if not isinstance(t, Chunk) or t.n != self.n or t.shape != leaf_shape(v):
            return False
        return t.dtype.kind in "fc" and (t.dtype.kind == "f" or leaf_dtype(plain(v)).kind == "c")

    def _checked(self, x: Any) -> Any:
        if not self.fits(x):
            message = f"a {type(x).__name__} came, {x!r:.60}; a {self.primal!r} is wanted"
            raise UnsupportedTypeError(message)
        return x


class NumberTangent(TangentType):
    """Tangents of Python's and NumPy's floats and complex numbers: a ``Chunk`` of shape ``()``."""

    def fits(self, x: Any) -> bool:
        """Whether a value is a number of the class."""
        return isinstance(plain(x), self.primal)


class ArrayTangent(TangentType):
    """Tangents of arrays of one dtype: a ``Chunk`` of the array's shape."""

    def fits(self, x: Any) -> bool:
        """Whether a value is an array of the dtype."""
        return isinstance(x, np.ndarray) and plain(x).dtype == self.primal.dtype


@dataclass(frozen=True, eq=False)
class CompositeTangent(TangentType):
    """Tangents of composites: the same structure, with the tangents at the leaves.

    Attributes
    ----------
    container : type
        The class of the composite.
    parts : tuple, optional
        The types of the parts of ``tuple[...]``, ``list[...]``, ``dict[...]``. None: structural,
        each leaf is asked.
    """

    container: type
    parts: tuple[Any, ...] | None = None

    def fits(self, x: Any) -> bool:
        """Whether a value is of the class, and its parts are of their types."""
        if not isinstance(x, self.container):
            return False
        if self.parts is None:
            return True
        if issubclass(self.container, dict):
            return all(_fits(self.parts[0], k) and _fits(self.parts[1], v) for k, v in x.items())
        if issubclass(self.container, tuple) and self.parts[-1:] != (Ellipsis,):
            same = len(x) == len(self.parts)
            return same and all(map(_fits, self.parts, x))
        return all(_fits(self.parts[0], v) for v in x)


class AnyTangent(TangentType):
    """Tangents of values whose type is not known beforehand (``Any``, unions): structural."""

    def fits(self, x: Any) -> bool:
        """Whether a value is of one of the union's types."""
        if self.primal in (Any, object):
            return True
        return any(_fits(part, x) for part in typing.get_args(self.primal))


class OwnTangent(TangentType):
    """Tangents of a class that was registered with a tangent class of its own."""

    def fits(self, x: Any) -> bool:
        """Whether a value is of the class."""
        return type(x) is self.primal

    def basis(self, x: Any, start: int = 0) -> Any:
        """No basis is known of a tangent class of the user's."""
        message = (
            f"{self.primal.__qualname__} has a tangent class of its own, of which fwdad knows no "
            f"basis: give the directions (asked from direction {start} of {x!r:.60})"
        )
        raise UnsupportedTypeError(message)

    def random(self, x: Any, rng: np.random.Generator) -> Any:
        """No random direction is known of a tangent class of the user's."""
        del rng
        return self.basis(x)


def _fits(T: Any, x: Any) -> bool:
    kind = tangent_type(T, 1)
    if isinstance(kind, TangentType):
        return kind.fits(x)
    if isinstance(T, ArrayType):
        return isinstance(x, np.ndarray) and x.dtype == T.dtype
    return x is None if T is None else isinstance(x, T)


_UNIQUE: weakref.WeakValueDictionary[tuple[Any, int], TangentType] = weakref.WeakValueDictionary()
_LOCK = threading.RLock()


def tangent_type(T: Any, n: int) -> TangentType | NoTangentType:
    """The type of the N tangents of the values of a type.

    Parameters
    ----------
    T : type, ArrayType or generic
        A class; an array type qualified by its dtype, as :func:`typeof` makes it (``numpy.ndarray``
        alone means float64); or a generic such as ``tuple[float, numpy.ndarray]``. Containers
        without parameters answer with a structural type, which asks each leaf.
    n : int
        The number of lanes.

    Returns
    -------
    TangentType or NoTangent
        Unique for (T, n) as long as somebody holds it. ``NoTangent`` where there is no tangent
        space: integers, booleans, strings, None, functions.

    Raises
    ------
    UnsupportedTypeError
        For a class that fwdad does not know, or that carries no tangents (masked arrays, pandas
        objects): the message tells what to write instead.

    Examples
    --------
    >>> import numpy as np
    >>> tangent_type(float, 3) is tangent_type(float, 3)
    True
    >>> tangent_type(int, 3)
    NoTangent
    >>> tangent_type(tuple[float, np.ndarray], 2).zero((1.0, np.ones(3)))
    (Chunk(2 lanes of shape ()), Chunk(2 lanes of shape (3,)))
    """
    if isinstance(n, bool) or not isinstance(n, (int, np.integer)) or n < 0:
        message = f"the number of lanes is a nonnegative integer, not {n!r}"
        raise UnsupportedTypeError(message)
    key = (_normalised(T), int(n))
    with _LOCK:
        found = _UNIQUE.get(key)
        if found is None:
            made = _make(*key)
            if made is NoTangent:
                return NoTangent
            found = _UNIQUE.setdefault(key, made)
        return found


def _normalised(T: Any) -> Any:
    if T is np.ndarray:
        return ArrayType(np.dtype(float))
    if T is type(None):
        return None
    if typing.get_origin(T) is np.ndarray:  # NDArray[np.float32]
        (dtype,) = typing.get_args(typing.get_args(T)[1])
        if not isinstance(dtype, type):
            message = f"{T} does not tell its dtype: write ArrayType(dtype)"
            raise UnsupportedTypeError(message)
        return ArrayType(np.dtype(dtype))
    return T


def _make(T: Any, n: int) -> Any:
    if isinstance(T, ArrayType):
        reason = refusal(np.empty(0, T.dtype)) if T.dtype.kind in "OV" else None
        if reason is not None:
            raise UnsupportedTypeError(reason)
        return ArrayTangent(T, n) if T.dtype.kind in "fc" else NoTangent
    if T is None:
        return NoTangent
    origin = typing.get_origin(T)
    if T in (Any, object) or origin in (typing.Union, types.UnionType):
        return AnyTangent(T, n)
    if origin is not None:
        return _of_generic(T, origin, n)
    if not isinstance(T, type):
        message = f"{T!r} is no type: tangent_type(typeof(x), n) asks about a value"
        raise UnsupportedTypeError(message)
    return _of_class(T, n)


def _of_generic(T: Any, origin: Any, n: int) -> Any:
    if not isinstance(origin, type) or not issubclass(origin, (tuple, list, dict)):
        inner = _of_class(origin, n) if isinstance(origin, type) else None
        if isinstance(inner, CompositeTangent):  # a generic dataclass or registered class
            return CompositeTangent(T, n, origin)
        message = f"{T}: of the generics tuple, list and dict have tangent types"
        raise UnsupportedTypeError(message)
    parts = typing.get_args(T)
    for part in parts:
        if part is not Ellipsis and not isinstance(part, typing.TypeVar):
            tangent_type(part, n)  # raises for a part that carries no tangents
    unknown = any(isinstance(part, typing.TypeVar) for part in parts)
    return CompositeTangent(T, n, origin, None if unknown else parts)


_NO_SPACE = (
    int, str, bytes, bytearray, np.generic, range, slice, type, np.dtype, np.ufunc,
    types.FunctionType, types.BuiltinFunctionType, types.MethodType, types.ModuleType,
    type(Ellipsis),
)  # fmt: skip


def _of_class(cls: type, n: int) -> Any:
    if cls in OWN:
        return OwnTangent(cls, n)
    if registration_of(cls) is not None or dataclasses.is_dataclass(cls):
        return CompositeTangent(cls, n, cls)
    if issubclass(cls, (float, complex, np.inexact)):
        return NumberTangent(cls, n)
    if issubclass(cls, (tuple, list, dict)):
        return CompositeTangent(cls, n, cls)
    if issubclass(cls, _NO_SPACE):
        return NoTangent
    if cls is np.memmap:
        return _make(ArrayType(np.dtype(float)), n)
    reason = refusal(cls)
    if reason is None:
        reason = (
            f"{cls.__module__}.{cls.__qualname__}, of which fwdad knows no parts: "
            "register_tangent_type tells it"
        )
    message = f"no tangent type for {reason}"
    raise UnsupportedTypeError(message)


def typeof(x: Any) -> Any:
    """The type of a value, as precisely as :func:`tangent_type` understands it.

    Parameters
    ----------
    x : object
        Any value.

    Returns
    -------
    type, ArrayType or generic
        Arrays are qualified by their dtype, tuples by the types of their parts; lists and dicts by
        that of their elements where it is the same for all, and otherwise not at all.

    Examples
    --------
    >>> import numpy as np
    >>> typeof((1.0, np.zeros(2, np.float32), [1, 2]))
    tuple[float, ndarray[float32], list[int]]
    """
    return _typeof(x, frozenset())


def _typeof(x: Any, above: frozenset[int]) -> Any:
    x = plain(x)
    cls = type(x)
    if cls in (np.ndarray, np.memmap):
        return ArrayType(x.dtype)
    if cls not in (tuple, list, dict) or id(x) in above or not x:
        return cls
    above |= {id(x)}
    if cls is tuple:
        return tuple[tuple(_typeof(part, above) for part in x)]  # type: ignore[misc]
    values = {_typeof(part, above) for part in (x.values() if cls is dict else x)}
    if len(values) > 1:
        return cls
    if cls is list:
        return list[values.pop()]  # type: ignore[misc]
    keys = {type(key) for key in x}
    return dict if len(keys) > 1 else dict[keys.pop(), values.pop()]  # type: ignore[misc]


def register_tangent_type(
    cls: type,
    *,
    flatten: Flatten | None = None,
    unflatten: Unflatten | None = None,
    tangent: type | None = None,
    zero: Callable[[Any], Any] | None = None,
    inner: Callable[[Any, Any], float] | None = None,
    override: bool = False,
) -> None:
    """Let the instances of a class have tangents.

    Either tell how they are taken apart into parts that have tangents (``flatten``,
    ``unflatten``), or name the class of their tangents (``tangent``, ``zero``, ``inner``).

    Parameters
    ----------
    cls : type
        The class; instances of its subclasses are not concerned.
    flatten : callable, optional
        ``flatten(x) -> (children, data)``: the parts that may have tangents, a tuple, and whatever
        else ``unflatten`` needs.
    unflatten : callable, optional
        ``unflatten(data, children) -> x``. The children may be duals or tangents as well: it must
        not check or convert them.
    tangent : type, optional
        The class of one tangent. It has ``t + t`` and ``t * number``, which are its addition and
        scaling.
    zero : callable, optional
        ``zero(x)`` is the zero tangent of x.
    inner : callable, optional
        ``inner(t, u)`` is the real inner product of two tangents.
    override : bool, default False
        Replace an earlier registration.

    Raises
    ------
    DuplicateRuleError
        If the class is registered already and ``override`` is False.
    UnsupportedTypeError
        If the arguments fit neither form, or the tangent class lacks an operator.

    Notes
    -----
    Only functions with an frule can take an instance whose tangents have their own class: it has no
    parts through which fwdad could follow it. A ``Chunk`` of N such tangents holds them in
    ``lanes``, an array of objects.

    Examples
    --------
    >>> import numpy as np, fwdad
    >>> class Beam:
    ...     def __init__(self, length, name):
    ...         self.length, self.name = length, name
    >>> register_tangent_type(
    ...     Beam,
    ...     flatten=lambda b: ((b.length,), b.name),
    ...     unflatten=lambda name, children: Beam(*children, name),
    ... )
    >>> fwdad.grad(lambda b: b.length**2)(Beam(3.0, "left")).length
    6.0
    """
    if not isinstance(cls, type):
        message = f"register_tangent_type wants a class; a {type(cls).__name__} came"
        raise UnsupportedTypeError(message)
    if not override and (cls in REGISTERED or cls in OWN):
        message = f"{cls.__qualname__} has a tangent type already; say override=True to replace it"
        raise DuplicateRuleError(message)
    first, second = (flatten, unflatten), (tangent, zero, inner)
    if all(callable(f) for f in first) and second == (None, None, None):
        assert flatten is not None
        assert unflatten is not None
        OWN.pop(cls, None)
        register(cls, Registration(flatten, unflatten))
    elif first == (None, None) and isinstance(tangent, type) and callable(zero) and callable(inner):
        missing = [op for op in ("__add__", "__mul__") if not hasattr(tangent, op)]
        if missing:
            message = f"the tangent class {tangent.__qualname__} has no {' and no '.join(missing)}"
            raise UnsupportedTypeError(message)
        vectors.register_own(cls, OwnTangents(tangent, zero, inner))
    else:
        message = (
            "register_tangent_type wants flatten and unflatten, or tangent, zero and inner: all of "
            "one form and none of the other"
        )
        raise UnsupportedTypeError(message)
    with _LOCK:
        _UNIQUE.clear()
