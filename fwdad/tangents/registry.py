"""The type of a value's tangents, ``tangent_type(T, N)``, and classes that users register.

Floats, complex numbers and arrays of them have a ``Chunk``; composites have the same structure
with the chunk pushed to the leaves; everything else has ``NoTangent``.
"""

from __future__ import annotations

import dataclasses
import enum
import threading
import types
import typing
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np

from fwdad.errors import DuplicateRuleError, UnsupportedTypeError, type_in_words
from fwdad.tangents import vectors
from fwdad.tangents.fields import is_plain, why_not_plain
from fwdad.tangents.kinds import (
    AnyTangent,
    ArrayTangent,
    ArrayType,
    CompositeTangent,
    NoSpace,
    NumberTangent,
    OwnTangent,
    TangentType,
)
from fwdad.tangents.plain import plain
from fwdad.tangents.refused import refusal
from fwdad.tangents.registrations import (
    OWN,
    REGISTERED,
    Flatten,
    OwnTangents,
    Registration,
    Unflatten,
    register,
    registration_of,
)
from fwdad.tangents.zero import NoTangent, NoTangentType

_UNIQUE: weakref.WeakValueDictionary[tuple[Any, int], TangentType] = weakref.WeakValueDictionary()
_LOCK = threading.RLock()


def tangent_type(T: Any, n: int) -> TangentType | NoTangentType:
    """The type of the N tangents of the values of a type.

    Parameters
    ----------
    T : type, ArrayType or generic
        A class; an array type qualified by its dtype, as :func:`typeof` makes it (``numpy.ndarray``
        alone means float64); or a generic such as ``tuple[float, numpy.ndarray]``. Containers
        without parameters return with a structural type, which asks each leaf.
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
        For a class whose instances hold more than their attributes (C code, ``__del__``, a base of
        a library), or that carries no tangents (masked arrays, pandas objects): the message tells
        what to write instead.

    Notes
    -----
    Of numbers and arrays it is :class:`Chunk`. Of tuples, lists, dicts, dataclasses and plain
    classes it is the same structure with a chunk at each leaf: a plain class is one whose instances
    hold attributes only, in a ``__dict__`` or in slots, whatever its ``__init__`` checks. A part
    that occurs twice, or in a cycle, is one part. :func:`constant_fields` excludes fields,
    :func:`register_tangent_type` tells how other classes are taken apart.

    Examples
    --------
    >>> import numpy as np
    >>> tangent_type(float, 3) is tangent_type(float, 3)
    True
    >>> tangent_type(int, 3)
    NoTangent
    >>> tangent_type(tuple[float, np.ndarray], 2).zero((1.0, np.ones(3)))
    (Chunk(2 lanes of shape ()), Chunk(2 lanes of shape (3,)))

    The chunk of a number reads like a tuple of N numbers; that of an array has its lanes in front:

    >>> of_a_number = tangent_type(float, 2).basis(1.0)
    >>> len(of_a_number), [float(t) for t in of_a_number]
    (2, [1.0, 0.0])
    >>> of_an_array = tangent_type(np.ndarray, 2).basis(np.ones(3))
    >>> of_an_array.lanes
    array([[1., 0., 0.],
           [0., 1., 0.]])

    The tangent of an object is an object of the same class, made without ``__init__``, with the
    tangents of its fields; a field that has none is ``NoTangent``:

    >>> class Rod:
    ...     def __init__(self, length, name):
    ...         self.length, self.name = length, name
    >>> zero = tangent_type(Rod, 2).zero(Rod(3.0, "left"))
    >>> zero.length, zero.name
    (Chunk(2 lanes of shape ()), NoTangent)
    """
    if isinstance(n, bool) or not isinstance(n, (int, np.integer)) or n < 0:
        raise UnsupportedTypeError(f"the number of lanes must be a nonnegative integer, not {n!r}")
    key = (_normalised(T), int(n))
    with _LOCK:
        unique = _UNIQUE.get(key)
        if unique is None:
            unique = _UNIQUE.setdefault(key, _make(*key))
    return NoTangent if isinstance(unique, NoSpace) else unique


def _normalised(T: Any) -> Any:
    T = _unaliased(T)
    if T in (np.ndarray, np.memmap):
        return ArrayType(np.dtype(float))
    if T is type(None):
        return None
    if typing.get_origin(T) is np.ndarray:  # NDArray[np.float32]
        (dtype,) = typing.get_args(typing.get_args(T)[1])
        if not isinstance(dtype, type):
            raise UnsupportedTypeError(f"{T} does not contain a dtype: write ArrayType(dtype)")
        return ArrayType(np.dtype(dtype))
    return T


_Alias: Any = getattr(typing, "TypeAliasType", ())  # Python 3.12 has it


def _unaliased(T: Any) -> Any:
    """The type behind the name of a ``type`` statement, such as NumPy's ``NDArray``."""
    while True:
        origin = typing.get_origin(T)
        if isinstance(T, _Alias):
            T = T.__value__
        elif isinstance(origin, _Alias):
            T = origin.__value__[typing.get_args(T)]
        else:
            return T


def _make(T: Any, n: int) -> TangentType:
    if isinstance(T, ArrayType):
        reason = refusal(np.empty(0, T.dtype)) if T.dtype.kind in "OV" else None
        if reason is not None:
            raise UnsupportedTypeError(f"no tangent type for {reason}")
        return ArrayTangent(T, n) if T.dtype.kind in "fc" else NoSpace(T, n)
    if T is None:
        return NoSpace(T, n)
    origin = typing.get_origin(T)
    if T in (Any, object) or isinstance(T, typing.TypeVar):
        return AnyTangent(T, n)
    if origin in (typing.Union, types.UnionType):
        return AnyTangent(T, n, tuple(_part(each, n) for each in typing.get_args(T)))
    if origin is not None:
        return _of_generic(T, origin, n)
    if not isinstance(T, type):
        message = f"{T!r} is not a type: for a value, call tangent_type(typeof(x), n)"
        raise UnsupportedTypeError(message)
    return _of_class(T, n)


def _part(T: Any, n: int) -> TangentType:
    """The unique tangent type of a part, also where it has no tangent space."""
    key = (_normalised(T), n)
    return _UNIQUE.get(key) or _UNIQUE.setdefault(key, _make(*key))


def _of_generic(T: Any, origin: Any, n: int) -> TangentType:
    if not isinstance(origin, type):
        message = f"no tangent type for {T}: write tuple[...], list[...] or dict[...]"
        raise UnsupportedTypeError(message)
    args = typing.get_args(T)
    if issubclass(origin, (tuple, list, dict)) and registration_of(origin) is None:
        parts = tuple(_part(each, n) for each in args if each is not Ellipsis)
        return CompositeTangent(T, n, origin, parts, repeats=args[-1:] == (Ellipsis,))
    inner = _of_class(origin, n)
    return CompositeTangent(T, n, origin) if isinstance(inner, CompositeTangent) else inner


_NO_SPACE = (
    int, str, bytes, bytearray, np.generic, range, slice, type, np.dtype, np.ufunc,
    types.FunctionType, types.BuiltinFunctionType, types.MethodType, types.ModuleType,
    type(Ellipsis), enum.Enum,
)  # fmt: skip


def _of_class(cls: type, n: int) -> TangentType:
    if cls in OWN:
        return OwnTangent(cls, n)
    if registration_of(cls) is not None or dataclasses.is_dataclass(cls) or is_plain(cls):
        return CompositeTangent(cls, n, cls)
    if issubclass(cls, (float, complex, np.inexact)):
        return NumberTangent(cls, n)
    if issubclass(cls, (tuple, list, dict)):
        return CompositeTangent(cls, n, cls)
    if issubclass(cls, _NO_SPACE):
        return NoSpace(cls, n)
    reason = refusal(cls)
    if reason is None:
        why = why_not_plain(cls)
        reason = (
            f"{cls.__module__}.{cls.__qualname__}, whose parts fwdad does not know"
            f"{f' ({why})' if why else ''}: register them with register_tangent_type"
        )
    raise UnsupportedTypeError(f"no tangent type for {reason}")


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


_HAVE_TANGENTS = (np.ndarray, np.generic, int, float, complex, tuple, list, dict)


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
    """Let the instances of a class have tangents, or have them in a way of their own.

    Dataclasses and plain classes have tangents field by field without it; see :func:`tangent_type`.
    Either tell how the instances are flattened into parts that have tangents (``flatten``,
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
    Only functions, methods and operators with an frule can look into an instance whose tangents
    have their own class: it has no parts through which fwdad could follow it. A ``Chunk`` of N such
    tangents holds them in ``lanes``, an array of objects. A rule that is to be differentiated again
    takes what it needs of the instance by functions with an frule, too.

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
        raise UnsupportedTypeError(f"register_tangent_type takes a class; got {type_in_words(cls)}")
    if not override and (cls in REGISTERED or cls in OWN):
        message = f"{cls.__qualname__} already has a tangent type; pass override=True to replace it"
        raise DuplicateRuleError(message)
    first, second = (flatten, unflatten), (tangent, zero, inner)
    if callable(flatten) and callable(unflatten) and second == (None, None, None):
        OWN.pop(cls, None)
        register(cls, Registration(flatten, unflatten))
    elif first == (None, None) and isinstance(tangent, type) and callable(zero) and callable(inner):
        if issubclass(cls, _HAVE_TANGENTS):
            raise UnsupportedTypeError(
                f"{cls.__qualname__} is a number, an array or a container, whose tangents are "
                "fixed: only other classes can have a tangent class of their own"
            )
        missing = [op for op in ("__add__", "__mul__") if not hasattr(tangent, op)]
        if missing:
            message = f"the tangent class {tangent.__qualname__} has no {' and no '.join(missing)}"
            raise UnsupportedTypeError(message)
        vectors.register_own(cls, OwnTangents(tangent, zero, inner))
    else:
        raise UnsupportedTypeError(
            "register_tangent_type takes either flatten and unflatten, or tangent, zero and "
            "inner: all of one group and none of the other"
        )
    with _LOCK:
        _UNIQUE.clear()
