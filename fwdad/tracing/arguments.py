"""Arguments of a traced function: leaves that become inputs, and what is known beforehand."""

from __future__ import annotations

import copy
import dataclasses
import types
from collections.abc import Callable, Hashable
from typing import Any

import numpy as np

from fwdad.errors import UntraceableError
from fwdad.tape.types import ArrayType, Size, Type, number_type


class Flattened:
    """Arguments taken apart.

    Attributes
    ----------
    leaves : list
        Numbers and arrays, in order.
    key : hashable
        Structure, types and static values: what a tape is specialised on.
    rebuild : callable
        The arguments with other leaves.
    """

    def __init__(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        self.leaves: list[Any] = []
        self.names: list[str | None] = []
        self._memo: dict[int, tuple[Hashable, Callable[[list[Any]], Any]]] = {}
        self._kept: list[Any] = []
        self.key, self.rebuild = self._take((args, kwargs))

    def _take(self, x: Any) -> tuple[Hashable, Callable[[list[Any]], Any]]:
        if number_type(x) is not None or isinstance(x, np.ndarray):
            return self._leaf(x)
        if id(x) in self._memo:
            return self._memo[id(x)]
        made = self._container(x)
        self._memo[id(x)] = made
        self._kept.append(x)
        return made

    def _leaf(self, x: Any) -> tuple[Hashable, Callable[[list[Any]], Any]]:
        if isinstance(x, np.ndarray) and x.dtype.kind not in "biufc":
            message = f"an array of dtype {x.dtype} cannot be traced"
            raise UntraceableError(message)
        k = len(self.leaves)
        self.leaves.append(x)
        return leaf_key(x), lambda leaves: leaves[k]

    def _container(self, x: Any) -> tuple[Hashable, Callable[[list[Any]], Any]]:
        if isinstance(x, (tuple, list)):
            keys, builds = self._all(list(x))
            cls = type(x)
            if hasattr(x, "_fields"):
                return (cls, keys), lambda leaves: cls(*(b(leaves) for b in builds))
            return (cls, keys), _shared(lambda leaves: cls(b(leaves) for b in builds))
        if isinstance(x, dict):
            keys, builds = self._all(list(x.values()))
            names = tuple(x)
            return (dict, names, keys), _shared(
                lambda leaves: {n: b(leaves) for n, b in zip(names, builds, strict=True)}
            )
        if _is_record(x):
            held = vars(x)
            keys, builds = self._all(list(held.values()))
            names = tuple(held)

            def build(leaves: list[Any]) -> Any:
                made = copy.copy(x)
                made.__dict__.update({n: b(leaves) for n, b in zip(names, builds, strict=True)})
                return made

            return (type(x), names, keys), _shared(build)
        try:
            hash(x)
        except TypeError:
            return ("id", id(x)), lambda _: x
        return ("static", type(x), x), lambda _: x

    def _all(self, items: list[Any]) -> tuple[tuple[Hashable, ...], list[Any]]:
        made = [self._take(item) for item in items]
        return tuple(key for key, _ in made), [build for _, build in made]


def _shared(build: Callable[[list[Any]], Any]) -> Callable[[list[Any]], Any]:
    """One container for one set of leaves, however often it appears."""
    made: list[Any] = []

    def shared(leaves: list[Any]) -> Any:
        if not made or made[0] is not leaves:
            made[:] = [leaves, build(leaves)]
        return made[1]

    return shared


def _is_record(x: Any) -> bool:
    """Whether an argument is an object whose attributes are arguments, too."""
    if isinstance(x, (type, types.ModuleType, types.FunctionType)) or not hasattr(x, "__dict__"):
        return False
    if dataclasses.is_dataclass(x):
        return True
    return not callable(x) and type(x).__module__.split(".")[0] not in (
        "numpy",
        "scipy",
        "builtins",
    )


def leaf_key(x: Any) -> Hashable:
    """What a tape is specialised on for a leaf: its type, and whether lengths are 0 or 1."""
    if isinstance(x, np.ndarray):
        return (x.dtype, tuple(n if n < 2 else -1 for n in x.shape))
    t = number_type(x)
    assert t is not None
    return (t.dtype, t.python)


def leaf_type(x: Any, k: int) -> Type:
    """The type of input k: lengths of two and more are unknown."""
    if isinstance(x, np.ndarray):
        shape = tuple(n if n < 2 else Size((k, axis), n) for axis, n in enumerate(x.shape))
        return ArrayType(x.dtype, shape)
    t = number_type(x)
    assert t is not None
    return t
