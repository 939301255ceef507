"""Calls in one form: the arguments that a library function requires are passed by position."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from fwdad.tangents.plain import plain

_LIBRARIES = {"numpy", "scipy"}
_UNSIGNED = {  # C functions whose signature Python cannot tell before NumPy 2.4
    np.array: ("object",),
    np.asarray: ("a",),
    np.asanyarray: ("a",),
    np.ascontiguousarray: ("a",),
    np.asfortranarray: ("a",),
    np.dot: ("a", "b"),
}
LOOP_DTYPES = {"dtype", "signature", "sig"}  # options that say to what ufuncs cast
_OF_UFUNCS = {"reduce": ("array",), "accumulate": ("array",), "reduceat": ("array", "indices")}


@lru_cache(maxsize=4096)
def _required(function: Any) -> tuple[str, ...]:
    """The first parameters of a library function, up to one that has a default."""
    if isinstance(function, np.ufunc):
        return ()
    if isinstance(function, type) and inspect.isfunction(function.__new__):
        return ()  # ``__init__`` may have other names for the same arguments
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return _UNSIGNED.get(function, ())
    names = []
    for p in parameters:
        if p.kind not in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD) or p.default is not p.empty:
            break
        names.append(p.name)
    return tuple(names)


def by_position(
    function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The ``(args, kwargs)`` of a call, with those by position that a library function requires.

    ``np.sum(a=x, axis=0)`` gives ``(x,), {"axis": 0}``. Only functions of NumPy and SciPy are
    normalised.
    """
    module = getattr(function, "__module__", None)
    of_ufunc = isinstance(getattr(function, "__self__", None), np.ufunc)
    if not of_ufunc and (type(module) is not str or module.partition(".")[0] not in _LIBRARIES):
        return args, kwargs  # the user's functions are not kept alive by a cache
    if module == "numpy" and "like" in kwargs:
        kwargs = {**kwargs, "like": _of_whose_kind(kwargs["like"])}
    try:
        names = _OF_UFUNCS.get(function.__name__, ()) if of_ufunc else _required(function)
        wanted = names[len(args) :]
    except TypeError:  # an object of a library that cannot be hashed
        return args, kwargs
    moved = []
    for name in wanted:
        if name not in kwargs:
            break
        moved.append(name)
    if not moved:
        return args, kwargs
    rest = {key: a for key, a in kwargs.items() if key not in moved}
    return (*args, *(kwargs[name] for name in moved)), rest


def _of_whose_kind(like: Any) -> Any:
    """A plain value for ``like=``: it says whose arrays are made, and those are NumPy's."""
    if hasattr(like, "__fwdad_symbolic__"):
        return np.empty(0) if getattr(like, "is_array", False) else 0.0
    like = plain(like)
    return np.empty(0) if type(like) is np.ndarray else like


def given_dtypes(
    ufunc: np.ufunc, operands: Sequence[Any], options: dict[str, Any]
) -> tuple[Any, ...]:
    """The dtypes to which a ufunc casts its operands, by ``dtype=``, ``signature=``, ``casting=``.

    ``operands`` are dtypes, or ``int``, ``float`` and ``complex`` for Python numbers. Raises
    NumPy's own TypeError where it does not cast.
    """
    types = (*operands, *(None,) * ufunc.nout)
    casting = options.get("casting", "same_kind")
    signature = _loop_dtypes(ufunc, options)
    return ufunc.resolve_dtypes(types, signature=signature, casting=casting)[: ufunc.nin]


def _loop_dtypes(ufunc: np.ufunc, options: dict[str, Any]) -> tuple[Any, ...]:
    """The dtypes of operands and results for which a call of a ufunc asks, None for the others."""
    asked = options.get("signature", options.get("sig"))
    if isinstance(asked, str):
        asked = asked.replace("->", "")
    elif asked is None:
        asked = (*(None,) * ufunc.nin, *(options.get("dtype"),) * ufunc.nout)
    return tuple(None if t is None else _dtype(t) for t in asked)


def _dtype(t: Any) -> np.dtype:
    of_class = isinstance(t, type) and issubclass(t, np.dtype)  # NumPy's own Python code
    return t() if of_class else np.dtype(t)
