"""The parts of a traced function's result: each makes a value from one run's numbers and arrays.

They are data, so that a tape can be pickled with what puts its results together.
"""

from __future__ import annotations

import functools
import types
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

from fwdad.core.containers import of_class
from fwdad.frontend.arguments import new_object
from fwdad.ir.symbol import UNBOUND
from fwdad.tangents.objects import set_attributes


class Run:
    """One run's results: the program's values, the caller's containers, and those made so far."""

    def __init__(self, values: list[Any], containers: list[Any]) -> None:
        self.values = values
        self.containers = containers
        self.made: dict[Any, Any] = {}

    def either(self, flag: Any, value: Take) -> Any:
        """A value if a flag is set, else None."""
        return value(self) if flag else None

    def rows(self, y: Any, *, python: bool, arrays: bool, inner: bool = False) -> Any:
        """The list of an array's rows: ``python``'s numbers or NumPy's, ``arrays``, or lists."""
        if python:
            return y.tolist()
        if inner:
            return [self.rows(row, python=False, arrays=False, inner=row.ndim > 1) for row in y]
        return [y[k, ...].copy() for k in range(len(y))] if arrays else list(y)

    def lists(self, y: Any, counts: Any, *, python: bool) -> Any:
        """The list of the first numbers of each of an array's rows, as lists."""
        found = [row[:n] for row, n in zip(y, counts, strict=True)]
        return [row.tolist() if python else list(row) for row in found]

    def with_none(self, items: Any, there: Any) -> Any:
        """A list with None for the items that are not there."""
        return [x if held else None for x, held in zip(items, there, strict=True)]

    def tuples(self, kind: type, columns: list[Any]) -> Any:
        """The list of tuples of a class whose parts are on lists of their own."""
        return [of_class(kind, parts) for parts in zip(*columns, strict=True)]


class Take(ABC):
    """What makes a value of one run's results."""

    @abstractmethod
    def __call__(self, run: Run) -> Any:
        """The value."""

    def text(self, _values: list[str], _namespace: dict[str, Any]) -> str | None:
        """The same as an expression of the program's values, if it has no object of its own."""
        return None


@dataclass(frozen=True, eq=False)
class Constant(Take):
    """The same object in each run."""

    held: Any

    def __call__(self, _run: Run) -> Any:
        """The object."""
        return self.held

    def text(self, _values: list[str], namespace: dict[str, Any]) -> str:
        """A name for it."""
        name = f"constant{len(namespace)}"
        namespace[name] = self.held
        return name


@dataclass(frozen=True, eq=False)
class Leaf(Take):
    """A number or an array that the program returns."""

    k: int

    def __call__(self, run: Run) -> Any:
        """The value."""
        return run.values[self.k]

    def text(self, values: list[str], _namespace: dict[str, Any]) -> str:
        """That of the value."""
        return values[self.k]


@dataclass(frozen=True, eq=False)
class MadeOf(Take):
    """What a function from outside makes of a value."""

    make: Any
    value: Take

    def __call__(self, run: Run) -> Any:
        """What it makes of it in this run."""
        return self.make(self.value(run))

    def text(self, values: list[str], namespace: dict[str, Any]) -> str | None:
        """A call of the function."""
        value = self.value.text(values, namespace)
        return None if value is None else f"{Constant(self.make).text(values, namespace)}({value})"


@dataclass(frozen=True, eq=False)
class Given(Take):
    """A list, dict or object among the arguments."""

    k: int

    def __call__(self, run: Run) -> Any:
        """The caller's own."""
        return run.containers[self.k]


@dataclass(frozen=True, eq=False)
class Again(Take):
    """A list, dict or object that has been made in this run, or is being made."""

    key: int

    def __call__(self, run: Run) -> Any:
        """The object."""
        return run.made[self.key]


@dataclass(frozen=True, eq=False)
class OrNone(Take):
    """A value, or None if a flag is false."""

    flag: Take
    value: Take

    def __call__(self, run: Run) -> Any:
        """The value, or None."""
        return run.either(self.flag(run), self.value)


@dataclass(frozen=True, eq=False)
class PartialOf(Take):
    """A partial function."""

    f: Take
    args: Take
    kwargs: Take

    def __call__(self, run: Run) -> Any:
        """The function."""
        return functools.partial(self.f(run), *self.args(run), **self.kwargs(run))


@dataclass(frozen=True, eq=False)
class MethodOf(Take):
    """A bound method."""

    f: Take
    owner: Take

    def __call__(self, run: Run) -> Any:
        """The method."""
        return types.MethodType(self.f(run), self.owner(run))


@dataclass(frozen=True, eq=False)
class TupleOf(Take):
    """A tuple, or one of a class of its own, whose constructor may take other arguments."""

    cls: type
    parts: list[Take]

    def __call__(self, run: Run) -> Any:
        """The tuple."""
        return tuple.__new__(self.cls, [p(run) for p in self.parts])

    def text(self, values: list[str], namespace: dict[str, Any]) -> str | None:
        """A tuple of those of its parts."""
        parts = [p.text(values, namespace) for p in self.parts]
        if self.cls is not tuple or None in parts:
            return None
        return f"({''.join(f'{part}, ' for part in parts)})"


@dataclass(frozen=True, eq=False)
class Rows(Take):
    """A list whose items are the rows of an array: see :meth:`Run.rows`."""

    key: int
    take: Take
    python: bool
    arrays: bool
    inner: bool = False

    def __call__(self, run: Run) -> Any:
        """The list, one object in a run."""
        if self.key not in run.made:
            options = {"python": self.python, "arrays": self.arrays, "inner": self.inner}
            run.made[self.key] = run.rows(self.take(run), **options)
        return run.made[self.key]


@dataclass(frozen=True, eq=False)
class ListsOf(Take):
    """A list of lists, each of the first ``counts`` numbers of its row of an array."""

    key: int
    take: Take
    counts: Take
    python: bool

    def __call__(self, run: Run) -> Any:
        """The list, one object in a run."""
        if self.key not in run.made:
            run.made[self.key] = run.lists(self.take(run), self.counts(run), python=self.python)
        return run.made[self.key]


@dataclass(frozen=True, eq=False)
class WithNone(Take):
    """A list of the rows of an array, some of which are None."""

    key: int
    take: Take
    there: Take
    python: bool
    arrays: bool

    def __call__(self, run: Run) -> Any:
        """The list, one object in a run."""
        if self.key not in run.made:
            items = run.rows(self.take(run), python=self.python, arrays=self.arrays)
            run.made[self.key] = run.with_none(items, self.there(run))
        return run.made[self.key]


@dataclass(frozen=True, eq=False)
class Columns(Take):
    """A list of tuples, from lists of their parts."""

    key: int
    columns: list[Take]
    kind: type

    def __call__(self, run: Run) -> Any:
        """The list, one object in a run."""
        if self.key not in run.made:
            run.made[self.key] = run.tuples(self.kind, [c(run) for c in self.columns])
        return run.made[self.key]


@dataclass(frozen=True, eq=False)
class ListOf(Take):
    """A list that the program makes: one object per run, wherever it occurs."""

    key: int
    items: list[Take]

    def __call__(self, run: Run) -> Any:
        """The list."""
        if self.key not in run.made:
            rebuilt = run.made[self.key] = []
            rebuilt.extend(item(run) for item in self.items)
        return run.made[self.key]

    def text(self, values: list[str], namespace: dict[str, Any]) -> str | None:
        """A list of those of its items; None for one that occurs twice."""
        items = _first_texts(self.key, self.items, values, namespace)
        return None if items is None else f"[{', '.join(items)}]"


@dataclass(frozen=True, eq=False)
class ObjectOf(Take):
    """A dict or an object that the program makes: one per run, wherever it occurs."""

    key: int
    cls: Any
    parts: dict[Any, Take]

    def __call__(self, run: Run) -> Any:
        """The dict or object."""
        if self.key not in run.made:
            run.made[self.key] = rebuilt = {} if self.cls is dict else new_object(self.cls)
            content = {name: part(run) for name, part in self.parts.items()}
            rebuilt.update(content) if self.cls is dict else set_attributes(rebuilt, content)
        return run.made[self.key]

    def text(self, values: list[str], namespace: dict[str, Any]) -> str | None:
        """A dict of those of its parts, or an object made of it; None if it occurs twice."""
        parts = _first_texts(self.key, [*self.parts.values()], values, namespace)
        if parts is None:
            return None
        names = [Constant(name).text(values, namespace) for name in self.parts]
        content = ", ".join(f"{n}: {part}" for n, part in zip(names, parts, strict=True))
        if self.cls is dict:
            return f"{{{content}}}"
        namespace["object_of"] = _object_of
        return f"object_of({Constant(self.cls).text(values, namespace)}, {{{content}}})"


def _object_of(cls: Any, content: dict[str, Any]) -> Any:
    """An object of a class with these attributes."""
    made = new_object(cls)
    set_attributes(made, content)
    return made


def _first_texts(
    key: int, parts: list[Take], values: list[str], namespace: dict[str, Any]
) -> list[str] | None:
    """The texts of a container's parts where it is met first."""
    if f"container{key}" in namespace:
        return None
    namespace[f"container{key}"] = None
    texts = [part.text(values, namespace) for part in parts]
    return None if None in texts else [text for text in texts if text is not None]


@dataclass(frozen=True, eq=False)
class ItemsOf(Take):
    """What a list among the arguments holds behind a run."""

    items: list[Take]

    def __call__(self, run: Run) -> Any:
        """The items."""
        return [item(run) for item in self.items]


@dataclass(frozen=True, eq=False)
class Attributes(Take):
    """What a dict or object among the arguments holds behind a run; ``UNBOUND`` is as it was."""

    keys: list[Any]
    parts: dict[Any, Take]

    def __call__(self, run: Run) -> Any:
        """The values by their keys."""
        parts = self.parts
        return {key: parts[key](run) if key in parts else UNBOUND for key in self.keys}
