"""The results of a traced function, and its changes of arguments, from a program's results."""

from __future__ import annotations

import functools
from collections import deque
from collections.abc import Callable
from typing import Any

import numpy as np

from fwdad.errors import Location, UntraceableError, type_in_words
from fwdad.frontend.arguments import refuse_attributes
from fwdad.frontend.derivatives.assembled import Assembled
from fwdad.frontend.result_parts import (
    Again,
    Attributes,
    Columns,
    Constant,
    Given,
    ItemsOf,
    Leaf,
    ListOf,
    ListsOf,
    MadeOf,
    ObjectOf,
    OrNone,
    PartialOf,
    Rows,
    Run,
    Take,
    TupleOf,
    WithNone,
)
from fwdad.frontend.slots import original
from fwdad.frontend.syntax.frame import Closure
from fwdad.frontend.syntax.growing_lists.changing import Changing, Stored
from fwdad.frontend.syntax.growing_lists.growing_tuples import Tuples
from fwdad.frontend.syntax.growing_lists.items import Items
from fwdad.frontend.syntax.growing_lists.lists_apart import ListOfLists
from fwdad.frontend.syntax.iterators import CLASSES
from fwdad.frontend.syntax.merge import container_of
from fwdad.frontend.syntax.symbols import Maybe, OfTrace, Optional, Poison
from fwdad.ir.builder.recorder import Recorder
from fwdad.ir.ops import Operand
from fwdad.ir.symbol import UNBOUND, Symbol, UnknownText
from fwdad.tangents.namespaces import namespace_of
from fwdad.tangents.objects import attributes_of, delete_attribute, set_attributes


class Results:
    """A collector of the leaves that a traced function returns or leaves in its arguments.

    It puts them together again when called. ``arguments`` are the containers among the traced
    arguments, and ``before`` their former contents. ``operands`` are the program's results.
    ``single`` says that the function's result is the first of these, and that nothing else is left
    behind.
    """

    def __init__(self, recorder: Recorder, arguments: list[Any], before: list[Any]) -> None:
        self.operands: list[Operand] = []
        self._recorder = recorder
        self._arguments = {id(container_of(x)): k for k, x in enumerate(arguments)}
        self._memo: dict[int, Take] = {}
        self._kept: list[Any] = []  # so that no other object gets its address
        self._refers = False
        self.single = False
        self.place: Location | None = None  # of the `return`
        self._result: Take = Constant(None)
        self._changes = [
            (k, self._change(container_of(x), old))
            for k, (x, old) in enumerate(zip(arguments, before, strict=True))
            if not _same(container_of(x), old)
        ]

    @property
    def changes(self) -> bool:
        """Whether containers of the caller are changed."""
        return bool(self._changes)

    def returns(self, y: Any) -> None:
        """Collect the return value of the function."""
        self.single = not self._changes and (type(y) is Symbol or isinstance(y, np.ndarray))
        self._result = self._take(y)

    @property
    def needs_containers(self) -> bool:
        """Whether the caller's containers are changed, or are part of the result."""
        return self.changes or self._refers

    def __getstate__(self) -> dict[str, Any]:
        """What is needed to put results together."""
        kept = ("single", "_refers", "_result", "_changes")
        return {name: getattr(self, name) for name in kept}

    def constants(self) -> list[Any]:
        """The objects that each run returns, or leaves in an argument, as they are."""
        found: list[Any] = []
        waiting: list[Any] = [self._result, *(change for _, change in self._changes)]
        while waiting:
            part = waiting.pop()
            if isinstance(part, Constant):
                found.append(part.held)
            elif isinstance(part, (Take, dict)):
                waiting += (vars(part) if isinstance(part, Take) else part).values()
            elif isinstance(part, list):
                waiting += part
        return found

    def text(
        self, values: list[str], namespace: dict[str, Any], picked: int | None = None
    ) -> str | None:
        """The function's return value as an expression, or one part of a tuple.

        None if it takes more than that.
        """
        result = self._result
        if picked is not None and isinstance(result, TupleOf):
            result = result.parts[picked]
        elif picked is not None:
            return None
        return None if self.changes else result.text(values, namespace)

    def changed(self, containers: list[Any]) -> list[Any]:
        """Those of the caller's containers that are changed."""
        return [containers[k] for k, _ in self._changes]

    def __call__(
        self, values: list[Any], containers: list[Any] | None = None, runs: Callable[..., Run] = Run
    ) -> Any:
        """Change the caller's containers, and make the function's return value."""
        if containers is None:
            if self.needs_containers:
                raise TypeError("the containers of the arguments are needed")
            containers = []
        run = runs(values, containers)
        changes = [(containers[k], change(run)) for k, change in self._changes]
        result = self._result(run)
        for container, content in changes:
            if isinstance(container, list):
                container[:] = content
                continue
            changed = {key: x for key, x in content.items() if x is not UNBOUND}
            if isinstance(container, dict):
                for key in [key for key in container if key not in content]:
                    del container[key]
                container.update(changed)
                continue
            for key in [key for key in attributes_of(container) if key not in content]:
                delete_attribute(container, key)
            set_attributes(container, changed)
        return result

    def _change(self, held: Any, old: Any) -> Take:
        if isinstance(held, list):
            return ItemsOf([self._take(item) for item in held])
        same = {key for key in held if key in old and old[key] is held[key]}
        parts = {key: self._take(item) for key, item in held.items() if key not in same}
        return Attributes(list(held), parts)

    def _take(self, x: Any) -> Take:
        if isinstance(x, Poison):
            error = UntraceableError(f"the returned value cannot be traced: {x.reason}", self.place)
            ways = self._recorder.ways
            raise error if ways is None else ways.needed(x.place, error)
        if isinstance(x, Items):
            return self._listed(x)
        if isinstance(x, Assembled):
            return MadeOf(x.make, self._take(x.entries))
        if isinstance(x, OfTrace) or type(x) in CLASSES:
            if isinstance(x, Closure):
                what, wanted = "a function defined in a traced function", "what it computes"
            else:
                what = f"{type_in_words(x)} made in a traced function"
                wanted = "the numbers in it, or a list of them"
            raise UntraceableError(f"{what} cannot be returned: return {wanted}", self.place)
        if isinstance(x, functools.partial):
            return PartialOf(*(self._take(part) for part in (x.func, x.args, dict(x.keywords))))
        if type(x) is Symbol or isinstance(x, np.ndarray):
            k = len(self.operands)
            self.operands.append(self._recorder.as_symbol(x).value)
            return Leaf(k)
        if isinstance(x, UnknownText):
            message = (
                "a string of numbers that are unknown until run time cannot be returned: return "
                "the numbers"
            )
            raise UntraceableError(message, x.place)
        if isinstance(x, Maybe):
            message = (
                "an attribute or name that is bound on some paths only cannot be returned: bind "
                "it on every path"
            )
            raise UntraceableError(message, self.place)
        if isinstance(x, Optional):
            return OrNone(self._take(x.flag), self._take(x.value))
        if isinstance(x, tuple):
            refuse_attributes(x, self.place)
            return TupleOf(type(x), [self._take(item) for item in x])
        container = container_of(x) if type(x) not in (dict, list) else x
        if container is None or not (
            self._recorder.journal.is_own(container) or id(container) in self._arguments
        ):
            if _mentions_symbols(x):
                message = (
                    f"{type_in_words(x)} that holds traced values cannot be returned: return a "
                    "list or a dict of them"
                )
                raise UntraceableError(message, self.place)
            return Constant(x)
        if id(container) in self._arguments:
            k = self._arguments[id(container)]
            self._refers = True
            return Given(k)
        if id(container) not in self._memo:
            self._memo[id(container)] = Again(id(container))
            self._memo[id(container)] = self._made(x, container)
        return self._memo[id(container)]

    def _listed(self, x: Items) -> Take:
        """A growing list, which becomes one object per run."""
        if id(x) not in self._memo:
            self._kept.append(x)
            made: Take
            if isinstance(x, ListOfLists):
                rows, counts = map(self._take, x.lists())
                made = ListsOf(id(x), rows, counts, x.python)
            elif isinstance(x, Stored) and x.holds_none:
                rows, there = map(self._take, x.with_none())
                made = WithNone(id(x), rows, there, x.python, x.arrays)
            elif isinstance(x, Tuples):  # their parts are on lists of their own
                made = Columns(id(x), [self._listed(column) for column in x.columns], x.kind)
            else:
                made = Rows(id(x), self._take(x.rows()), x.python, x.arrays, x.inner)
            if isinstance(x, Changing) and x.like is deque:
                made = MadeOf(functools.partial(deque, maxlen=x.most), made)
            self._memo[id(x)] = made
        return self._memo[id(x)]

    def _made(self, x: Any, held: Any) -> Take:
        """A container that the traced program makes: one object per run, wherever it occurs."""
        if isinstance(held, list):
            return ListOf(id(held), [self._take(item) for item in held])
        parts = {name: self._take(item) for name, item in held.items()}
        return ObjectOf(id(held), original(type(x)), parts)


def _same(held: Any, old: Any) -> bool:
    if isinstance(held, list):
        return len(held) == len(old) and all(a is b for a, b in zip(held, old, strict=True))
    return list(held) == list(old) and all(held[key] is old[key] for key in held)


def _mentions_symbols(x: Any) -> bool:
    if type(x) is Symbol:
        return True
    beside = (namespace_of(x) or {}).values() if isinstance(x, (list, dict)) else ()
    if isinstance(x, (list, tuple, set, frozenset, deque)):
        return any(map(_mentions_symbols, (*x, *beside)))
    if isinstance(x, dict):
        return any(map(_mentions_symbols, (*x.values(), *beside)))
    container = container_of(x)
    return container is not None and any(type(item) is Symbol for item in container.values())
