"""The attributes of dual arrays and scalars, and assignments to attributes of arrays."""

from __future__ import annotations

from typing import Any

import numpy as np

from fwdad.eager.calls.dispatch import call
from fwdad.eager.duals.array import Array, root_of
from fwdad.eager.duals.dual import leak
from fwdad.eager.duals.flat import Flat, set_flat
from fwdad.eager.duals.methods import copy_of, is_real, of_primal, part_of
from fwdad.eager.duals.scalar import Scalar
from fwdad.eager.memory import store
from fwdad.eager.memory.shadow import SHADOWED, untouched
from fwdad.errors import DualLeakError, MissingRuleError
from fwdad.tangents.chunk import Chunk
from fwdad.tangents.plain import plain


def set_array_attribute(o: Any, name: str, value: Any) -> None:
    """Set an attribute: a store for ``real``, ``imag`` and ``flat``, a reshape for ``shape``."""
    if name == "imag" and plain(o).dtype.kind != "c":
        plain(o).imag = 0  # raises NumPy's error
    elif name in ("real", "imag"):
        store.store(getattr(o, name), Ellipsis, value)
    elif name == "flat":
        set_flat(o, value)
    elif name == "T":
        message = "attribute 'T' of an array is not writable"
        raise AttributeError(message)
    elif type(o) is Array and name == "shape":
        o.p, o._t = np.reshape(o.p, value), np.reshape(o.t, value)
    elif type(o) is Array:
        message = f"cannot set .{name} of an array that carries a derivative: use x.reshape(...)"
        raise MissingRuleError(message)
    else:
        setattr(o, name, value)


def _primal(name: str) -> property:
    return property(lambda o: getattr(plain(o), name))


def _refused(name: str) -> property:
    def get(o: Any) -> Any:
        raise DualLeakError(leak(f"a plain array (through .{name})", o))

    return property(get)


def _array_wrap(_o: Any, made: Any, _context: Any = None, return_scalar: bool = False) -> Any:
    """The hook by which NumPy's Python code restores a subclass, of which a dual array has none."""
    return made[()] if return_scalar and np.ndim(plain(made)) == 0 else made


for _name in (
    "shape", "ndim", "size", "dtype", "itemsize", "nbytes", "strides", "flags", "base", "device"
):  # fmt: skip
    setattr(Array, _name, _primal(_name))
for _name in ("ctypes", "data"):
    setattr(Array, _name, _refused(_name))
Array.__array_wrap__ = _array_wrap  # type: ignore[attr-defined]


def _transposed(o: Array) -> Any:
    """``o.T``; without a rule for a plain primal into which nothing was stored."""
    t = o._t
    simple = type(o.p) is np.ndarray and isinstance(t, Chunk) and o.tag.alive
    if simple and (not SHADOWED or untouched(o.p)):
        return Array(o.p.T, t.T, o.tag, root_of(o))
    return call(np.transpose, o)


Array.T = property(_transposed)  # type: ignore[attr-defined]
Array.mT = property(lambda o: call(np.swapaxes, o, -1, -2))  # type: ignore[attr-defined]
Array.real = property(lambda o: call(np.real, o))  # type: ignore[attr-defined]
Array.imag = property(lambda o: call(np.imag, o))  # type: ignore[attr-defined]
Array.flat = property(Flat)  # type: ignore[attr-defined]
Scalar.real = property(lambda o: o if is_real(o) else part_of(np.real, o))  # type: ignore[attr-defined]
Scalar.imag = property(lambda o: plain(o).imag if is_real(o) else part_of(np.imag, o))  # type: ignore[attr-defined]
for _name in ("shape", "ndim", "size", "dtype", "itemsize", "nbytes", "device"):
    setattr(Scalar, _name, _primal(_name))
Scalar.T = property(lambda o: o)  # type: ignore[attr-defined]


def _inherit(cls: type, *primals: type) -> None:
    """Give a class of duals the names of its primals that it lacks.

    They are set one by one, because a ``__getattr__`` would make each access to a slot of a dual
    three times as slow.
    """

    def inherited(name: str) -> property:
        return property(lambda o: of_primal(o, name))

    for name in {name for primal in primals for name in dir(primal)}:
        if not name.startswith("__") and not hasattr(cls, name):
            setattr(cls, name, inherited(name))


_inherit(Array, np.ndarray)
_inherit(Scalar, float, complex, np.float64, np.complex128, np.longdouble)
Array.__copy__ = lambda o: copy_of(o, "K")  # type: ignore[attr-defined]
Array.__deepcopy__ = lambda o, memo: copy_of(o, "K")  # type: ignore[attr-defined]
