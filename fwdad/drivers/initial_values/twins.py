"""Functions as they are without derivatives: twins with the same code, and primals in their cells.

A solver's right-hand side is often a function that was made for one call, over values that carry
tangents. Its twin is a function that stays, whose cells are filled anew for each call, so that it
is traced once. It runs, and is traced, without meeting a dual.
"""

from __future__ import annotations

import threading
from types import CellType, FunctionType
from typing import Any

import numpy as np

from fwdad.core.lifted_code import LIFTED, ORIGINALS
from fwdad.drivers.jitted_function import Jitted
from fwdad.eager.duals.explicit import explicit
from fwdad.eager.duals.tags import isinstance_dual
from fwdad.errors import is_library_file
from fwdad.rules.core.registry import find_rule
from fwdad.tangents.plain import plain

_KEPT = 64  # pieces of code that have twins
_EMPTY = object()


class Twin:
    """A function over cells of its own, and what it is traced to, by the backend."""

    def __init__(self, f: FunctionType) -> None:
        code = ORIGINALS.get(id(f.__code__), f.__code__)
        self.cells = [CellType() for _ in code.co_freevars]
        self.function = FunctionType(code, f.__globals__, f.__name__, None, tuple(self.cells))
        self.function.__qualname__ = f.__qualname__
        self.function.__module__ = f.__module__
        self.jitted: dict[str, Jitted[..., Any]] = {}

    def fill(self, contents: list[Any]) -> None:
        """Put values into the cells."""
        for cell, content in zip(self.cells, contents, strict=True):
            if content is not _EMPTY:
                cell.cell_contents = content

    def clear(self) -> None:
        """Keep nothing of the caller's alive."""
        for cell in self.cells:
            try:
                del cell.cell_contents
            except ValueError:  # it is empty
                continue
        self.function.__defaults__ = self.function.__kwdefaults__ = None


class _Resting(threading.local):
    """The twins of this thread that are not in use, by their code and globals."""

    def __init__(self) -> None:
        self.twins: dict[Any, list[Twin]] = {}


_RESTING = _Resting()


class Primals:
    """Values without their tangents, and the duals that they came from.

    Twins are in use until ``release`` is called.
    """

    def __init__(self) -> None:
        self._duals: dict[int, tuple[Any, Any]] = {}
        self._met: dict[int, Any] = {}
        self._in_use: list[tuple[Any, Twin]] = []
        self._twin_of: dict[int, Twin] = {}

    def dual_of(self, primal: Any) -> Any:
        """The dual that a primal was taken from; None for other values."""
        held, x = self._duals.get(id(primal), (None, None))
        return x if held is primal else None

    def duals(self) -> list[Any]:
        """All duals that were found."""
        return [x for _, x in self._duals.values()]

    def twin(self, f: Any) -> Twin | None:
        """The twin that stands for a function, which was taken before; None if there is none."""
        return self._twin_of.get(id(f))

    def of(self, x: Any) -> Any:
        """A value without tangents; containers that hold none, and objects, are themselves."""
        x = explicit(x) if isinstance(x, np.ndarray) else x
        if isinstance_dual(x):
            return self._primal(x)
        kind = type(x)
        if kind is not FunctionType and kind is not list and kind is not tuple and kind is not dict:
            return x
        if id(x) in self._met:
            return self._met[id(x)][0]
        if kind is FunctionType:
            return self._function(x)
        items = list(x.values()) if kind is dict else list(x)
        self._met[id(x)] = (x, x)  # if it holds itself
        found = [self.of(item) for item in items]
        made = x
        if any(a is not b for a, b in zip(found, items, strict=True)):
            made = dict(zip(x, found, strict=True)) if kind is dict else kind(found)
        self._met[id(x)] = (made, x)
        return made

    def _primal(self, x: Any) -> Any:
        p = plain(x)
        if id(p) in self._duals and self._duals[id(p)][1] is x:
            return p
        if isinstance(p, np.ndarray):
            p = p if id(p) not in self._duals else p.view()
        else:  # a number of its own, by which the dual is found
            negated = -p
            p = -negated
        self._duals[id(p)] = (p, x)
        return p

    def _function(self, f: FunctionType) -> Any:
        if not _can_have_twin(f):
            return f
        cells = zip(f.__code__.co_freevars, f.__closure__ or (), strict=True)
        by_name = {name: _content(cell) for name, cell in cells}
        code = ORIGINALS.get(id(f.__code__), f.__code__)
        contents = [by_name[name] for name in code.co_freevars]
        key = (f.__code__, id(f.__globals__), f.__qualname__)
        resting = _RESTING.twins
        free = resting.get(key)
        if free is None:
            if len(resting) >= _KEPT:
                resting.clear()
            free = resting[key] = []
        twin = free.pop() if free else Twin(f)
        self._met[id(f)] = (twin.function, f)
        self._in_use.append((key, twin))
        self._twin_of[id(f)] = twin
        twin.fill([self.of(content) for content in contents])
        if f.__defaults__:
            twin.function.__defaults__ = tuple(self.of(d) for d in f.__defaults__)
        return twin.function

    def release(self) -> None:
        """Let others use the twins; those that were taken first are taken first again."""
        for key, twin in reversed(self._in_use):
            twin.clear()
            _RESTING.twins.setdefault(key, []).append(twin)
        self._in_use.clear()
        self._twin_of.clear()
        self._met.clear()


def _can_have_twin(f: FunctionType) -> bool:
    """Whether the same code over other cells is the same function."""
    if is_library_file(f.__code__.co_filename) or f.__kwdefaults__ or find_rule(f) is not None:
        return False
    return id(f.__code__) not in LIFTED or id(f.__code__) in ORIGINALS


def _content(cell: CellType) -> Any:
    try:
        return cell.cell_contents
    except ValueError:
        return _EMPTY
