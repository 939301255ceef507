"""What a traced function can see beside its arguments, and whether that has changed since."""

from __future__ import annotations

import ast
import functools
from collections import deque
from collections.abc import Iterator
from typing import Any

import numpy as np

from fwdad.frontend.captures import fetch
from fwdad.frontend.syntax.frame import Closure, Frame, Method, names_of
from fwdad.frontend.syntax.merge import container_of
from fwdad.frontend.syntax.symbols import Maybe, Optional
from fwdad.ir.builder.heap_journal import Journal
from fwdad.ir.symbol import UNBOUND, Symbol
from fwdad.ir.types import number_type


def seen_by(journal: Journal, *objects: Any) -> list[Any]:
    """What functions and objects refer to that the traced program may change.

    That is what the names of enclosing functions stand for, and the contents of containers that
    the program has made or was given; others do not change while it is traced.
    """
    values: list[Any] = []
    known: set[int] = set()
    waiting = list(objects)
    while waiting:
        x = waiting.pop()
        if id(x) not in known:
            inside = _inside(journal, x)
            if inside is not None:
                known.add(id(x))
                values.extend((len(inside), *inside))
                waiting.extend(inside)
    return values


def _inside(journal: Journal, x: Any) -> list[Any] | None:
    """What something holds; None if that cannot change."""
    if isinstance(x, Frame):
        return [*_around(x, x.node), *(fetch(("cell", c)) for c in x.cells.values())]
    if type(x) is Closure:
        kept = (*x.held.values(), *x.kw_defaults.values(), *x.defaults)
        return [*kept, *_around(x.frame, x.node)]
    if isinstance(x, Method):
        return [x.function, x.owner]
    if isinstance(x, functools.partial):
        return [x.func, *x.args, *x.keywords.values()]
    if isinstance(x, (Maybe, Optional)):
        return [x.flag, x.value]
    if isinstance(x, (tuple, frozenset)):
        return list(x)
    container = x if isinstance(x, (np.ndarray, list, dict, deque, set)) else container_of(x)
    if container is None or not journal.is_own(container):
        return None
    if isinstance(container, np.ndarray):
        return list(container.ravel().tolist())
    return [*container, *container.values()] if isinstance(container, dict) else list(container)


def _around(frame: Frame, node: Any) -> Iterator[Any]:
    """What the names stand for that a function reads from the functions around it."""
    names = {n.id for n in ast.walk(node) if isinstance(n, ast.Name)} - names_of(node).own
    for name in sorted(names):
        home = frame.home(name)
        if home is not None:
            yield home.locals.get(name, UNBOUND)


def same_surroundings(a: Frame | None, b: Frame | None) -> bool:
    """Whether two calls of one function find the names around it in the same places."""
    if a is None or b is None:
        return a is b
    return a.outer is b.outer and [*map(id, a.cells.values())] == [*map(id, b.cells.values())]


def same_seen(before: list[Any], now: list[Any]) -> bool:
    """Whether :func:`seen_by` returned the same at two times; 0.0 and -0.0 are two numbers."""

    def same(a: Any, b: Any) -> bool:
        if type(a) is Symbol and type(b) is Symbol:
            return a.value is b.value
        if type(a) is tuple and type(b) is tuple:
            return len(a) == len(b) and all(map(same, a, b))
        return a is b or (number_type(a) is not None and type(a) is type(b) and repr(a) == repr(b))

    return len(before) == len(now) and all(map(same, before, now))
