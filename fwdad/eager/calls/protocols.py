"""What C code reads of a user's object by itself: its items, array, number or buffer.

NumPy calls ``__getitem__`` and ``__array__``, :mod:`math` calls ``__float__``, ``dict`` calls
``keys``; written in Python, these would run without the dispatcher. While no array carries tangents
in its memory they meet duals, and work or raise; while one does they could read bare numbers. Then
the hooks call them first, and C code is given the results.
"""

from __future__ import annotations

import array
import ctypes
import types
from typing import Any

import numpy as np

from fwdad.eager.calls.creation import make_array
from fwdad.eager.calls.dispatch import call
from fwdad.eager.duals.array import Array
from fwdad.eager.duals.dual import OPAQUE, leak
from fwdad.eager.duals.scalar import Scalar
from fwdad.eager.memory.shadow import shadow_of_memory
from fwdad.errors import DualLeakError, type_in_words
from fwdad.ops.record import record_of

KNOWN = {
    int, float, complex, str, bytes, bool, type(None), type(Ellipsis), slice, range, dict, set,
    np.ndarray, Array, Scalar, np.float64, np.float32, np.int64, np.bool_, np.complex128, np.dtype,
    type, types.FunctionType, types.BuiltinFunctionType, types.MethodType, types.ModuleType,
}  # fmt: skip
"""Types of which C code reads nothing by way of the user's own methods."""

BUFFERS = (memoryview, array.array, bytearray)


def is_buffer(t: type) -> bool:
    """Whether objects of a class expose memory as plain numbers."""
    return t in BUFFERS or issubclass(t, ctypes.Array)


def in_python(t: type, name: str) -> bool:
    """Whether a class has a method that is written in Python."""
    return isinstance(getattr(t, name, None), types.FunctionType)


def iterate_object(o: Any) -> Any:
    """The items of a user's object, by its ``__iter__`` or ``__getitem__``; others as they are."""
    t = type(o)
    method = getattr(t, "__iter__", None)
    if isinstance(method, types.FunctionType):
        iterator = call(method, o)
        if type(iterator) is types.GeneratorType:
            return iterator
        step = getattr(type(iterator), "__next__", None)
        return _steps(iterator, step) if isinstance(step, types.FunctionType) else iterator
    if method is None and isinstance(getattr(t, "__getitem__", None), types.FunctionType):
        return _by_index(o)
    return o


def _steps(o: Any, step: Any) -> Any:
    while True:
        try:
            value = call(step, o)
        except StopIteration:
            return
        yield value


def _by_index(o: Any) -> Any:
    k = 0
    while True:
        try:
            value = call(type(o).__getitem__, o, k)
        except IndexError:
            return
        yield value
        k += 1


def as_numpy_reads(o: Any) -> Any:
    """An argument of a NumPy function as the items or the array that NumPy would read."""
    t = type(o)
    if t in KNOWN:
        return o
    if t is list or t is tuple:
        if KNOWN.issuperset(map(type, o)):
            return o
        items = [as_numpy_reads(item) for item in o]
        return o if all(a is b for a, b in zip(items, o, strict=True)) else t(items)
    if isinstance(o, np.ndarray) or t in OPAQUE or hasattr(t, "__array_ufunc__"):
        return o
    if in_python(t, "__array__"):
        return call(t.__array__, o)
    if in_python(t, "__getitem__") and hasattr(t, "__len__") and not isinstance(o, dict):
        try:
            call(len, o)
        except TypeError:  # as NumPy does: what has no length is no sequence
            return o
        return make_array(list(iterate_object(o)))
    return o


def rows_apart(f: Any, values: tuple[Any, ...]) -> tuple[Any, ...]:
    """Arguments with a list for a tuple of a class of its own whose items NumPy joins.

    It takes these one by one, and asks the tuple for no array.
    """
    if not values or type(values[0]) in (np.ndarray, Array, list, tuple):
        return values
    if not isinstance(values[0], (tuple, list)) or not record_of(f).joins:
        return values
    return (list(values[0]), *values[1:])


def made_arrays(values: tuple[Any, ...]) -> tuple[Any, ...]:
    """Arguments with an ``__array__`` in Python, converted to arrays.

    NumPy would call that method from C, where the result must not be a dual.
    """
    if KNOWN.issuperset(map(type, values)):
        return values
    return tuple([
        call(type(o).__array__, o)
        if type(o) not in KNOWN
        and type(o) not in OPAQUE
        and in_python(type(o), "__array__")
        and not (isinstance(o, np.ndarray) or hasattr(type(o), "__array_ufunc__"))
        else o
        for o in values
    ])  # fmt: skip


def all_as_numpy_reads(values: tuple[Any, ...]) -> tuple[Any, ...]:
    """The result of :func:`as_numpy_reads` for each argument."""
    if KNOWN.issuperset(map(type, values)):
        return values
    return tuple([as_numpy_reads(v) for v in values])


def as_number(o: Any) -> Any:
    """An argument of a function of numbers, converted by its own ``__float__`` or ``__index__``."""
    t = type(o)
    if t in KNOWN or t in OPAQUE:
        return o
    if in_python(t, "__float__"):
        return call(float, o)
    return call(t.__index__, o) if in_python(t, "__index__") else o


def as_numbers(o: Any) -> Any:
    """The result of :func:`as_number` for each item of a list, at any depth."""
    if type(o) is list or type(o) is tuple:
        return [as_numbers(item) for item in o]
    return as_number(o)


def check_buffer(o: Any) -> None:
    """Refuse to read memory that carries tangents through an object that is no array."""
    try:
        seen = np.frombuffer(o, np.uint8)
    except (ValueError, BufferError):  # empty, released, or not in one piece
        seen = np.asarray(o) if type(o) is memoryview and o.nbytes else None
    if seen is not None and shadow_of_memory(seen) is not None:
        what = f"a plain number (through {type_in_words(o)})"
        raise DualLeakError(leak(what, o))


def check_buffers(args: tuple[Any, ...]) -> None:
    """Check each buffer among the arguments of a call."""
    for a in args:
        if type(a) in BUFFERS:
            check_buffer(a)
