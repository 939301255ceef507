"""Tapes in pickles: programs are data, and what they read from outside goes along.

What is found in a module that can be imported is found there by the tape that is loaded. Anything
else, such as variables of a notebook and of functions around the one that was traced, is copied
with the value that it has. Only the loaded tape refers to the copy, so it needs no guards.
"""

from __future__ import annotations

import contextlib
import importlib
import pickle
import sys
import types
from collections.abc import Iterator
from typing import Any

from fwdad.core.version import version
from fwdad.display.words import function_in_words
from fwdad.eager.lifting.carried import receive
from fwdad.eager.lifting.reached import (
    is_by_value,
    is_module_by_value,
    names_of_code,
    sources_of,
)
from fwdad.errors import MissingRuleError, UnpicklableTapeError, message_of, type_in_words
from fwdad.frontend.captures import Capture, fetch
from fwdad.frontend.fingerprints import fingerprint
from fwdad.ir.ops import Apply, Call, Check, Program, Update
from fwdad.ir.primitives.opaque_call import Whole
from fwdad.ir.symbol import UNBOUND
from fwdad.rules.core.registry import find_rule, function_name

_AS_THEY_ARE = ("program", "length_guards", "equal_lengths", "value_guards", "rebuild", "key",
                "split", "prints", "alone", "copied", "cut", "rows", "follows", "followed_at",
                "catches")  # fmt: skip


def begin(cls: type, by: str) -> Any:
    """A tape without content, if this version of the library is that which has pickled it."""
    if by != version():
        raise UnpicklableTapeError(
            f"a tape was pickled by fwdad {by}, and this is fwdad {version()}, whose programs may "
            "consist of other operations: trace the function again"
        )
    return object.__new__(cls)


def state_of(tape: Any) -> dict[str, Any]:
    """What a tape consists of, for a pickle."""
    if not tape.stands():
        raise UnpicklableTapeError(
            f"the tape of {tape.program.name} cannot be pickled: a function that it calls has been "
            "replaced since, so it does not hold any more. Trace the function again"
        )
    functions = {id(f): f for f in _functions(tape.program)}
    places = _Places(tape.object_guards)
    state = {name: getattr(tape, name) for name in _AS_THEY_ARE}
    state["captures"] = [(places.of(c.path), c.value, c.key) for c in tape.captures]
    state["guards"] = [
        (places.of(path), fingerprint(held))
        for path, held in tape.object_guards
        if not places.is_own(path)
    ]
    state["same"] = [(places.of(a), places.of(b)) for a, b in tape.same_objects
                     if not (places.is_own(a) or places.is_own(b))]  # fmt: skip
    state["sources"] = sources_of(list(functions.values()))
    state["ruled"] = [f for f in functions.values() if _has_users_rule(f)]
    _check(tape, state, functions.values(), places)
    return state


def restore(tape: Any, state: dict[str, Any]) -> None:
    """Fill a tape from the state in a pickle; guards that do not hold here never will."""
    for f in state["ruled"]:
        if find_rule(f) is None:
            raise MissingRuleError(
                f"a tape was unpickled without the rule of {function_name(f)}: a pickle contains "
                "no rules. Define the function and its rule in a module that is imported where the "
                "pickle is loaded"
            )
    for name in _AS_THEY_ARE:
        setattr(tape, name, state[name])
    tape.captures = [Capture(*found) for found in state["captures"]]
    tape.object_guards = [
        (path, now if fingerprint(now := fetch(path)) == held else _GONE)
        for path, held in state["guards"]
    ]
    tape.same_objects = state["same"]
    tape.kept = {"carried": receive(state["sources"])} if state["sources"] else {}


_GONE = type("Gone", (), {"__repr__": lambda _: "what was there when the tape was pickled"})()


class _Places:
    """Paths into the outside world, as they are in a pickle."""

    def __init__(self, guards: list[tuple[Any, Any]]) -> None:
        self._made: dict[int, Any] = {}  # what stands for an object, by its address
        self._kept: list[Any] = []
        self.held: list[tuple[str, Any]] = []  # objects that are copied, and what they are called
        self._found: dict[int, Any] = {}  # paths in modules at which objects are found
        self._names: dict[int, str] = {}
        for path, held in guards:
            self._names.setdefault(id(held), path[-1] if isinstance(path[-1], str) else "")
            if isinstance(held, (list, dict)) or hasattr(held, "__dict__"):
                if path[0] in ("item", "attribute") and _home_of(path[1]) is not None:
                    self._found.setdefault(id(held), path)

    def is_own(self, path: Any) -> bool:
        """Whether what is found at a path belongs to the loaded tape alone."""
        kind, home = path[:2]
        if kind in ("contents", "lengths"):
            return self.is_own(home)
        if kind == "cell":
            return True
        if home is sys.modules:
            value = fetch(path)
            return value is not UNBOUND and _home_of(value) is None
        if kind == "item":
            return _home_of(home) is None
        if isinstance(home, types.FunctionType):
            return is_by_value(home)
        return isinstance(home, types.ModuleType) and _home_of(home) is None

    def of(self, path: Any) -> Any:
        """A path in a pickle; what is found at it comes along unless a module has it."""
        kind, home, *rest = path
        if kind in ("contents", "lengths"):
            return (kind, self.of(home))
        if home is sys.modules:
            return (kind, _Modules("" if fetch(path) is UNBOUND else rest[0]), *rest)
        if not self.is_own(path):
            return (kind, self._object(home), *rest)
        value = fetch(path)
        if kind == "cell":
            return (kind, self._stand_in(home, lambda: _Cell(value)))
        (name,) = rest
        own = self._stand_in(home, dict if kind == "item" else types.SimpleNamespace)
        if value is not UNBOUND and (kind, value) != ("asked", False):
            (own if kind == "item" else vars(own))[name] = value
        return (kind, own, name)

    def _object(self, x: Any) -> Any:
        """What stands for the object that a path leads through."""
        home = _home_of(x)
        if home is not None:
            return self._stand_in(x, lambda: home)
        if id(x) in self._found:
            path = self._found[id(x)]
            return self._stand_in(x, lambda: _Found((path[0], self._object(path[1]), *path[2:])))
        if id(x) not in self._made:
            self._stand_in(x, lambda: x)
            name = self._names.get(id(x))
            self.held.append((f"`{name}`, " if name else "", x))
        return x

    def _stand_in(self, x: Any, make: Any) -> Any:
        if id(x) not in self._made:
            self._kept.append(x)
            self._made[id(x)] = make()
        return self._made[id(x)]


def _home_of(x: Any) -> Any:
    """What stands for a module that can be imported, or for its namespace; else None."""
    is_module = isinstance(x, types.ModuleType)
    if not (is_module or type(x) is dict):
        return None
    name = x.__name__ if is_module else x.get("__name__")
    module = sys.modules.get(name) if isinstance(name, str) else None
    if module is None or is_module_by_value(name):
        return None
    if is_module:
        return _Module(name) if module is x else None
    return _ModuleNames(name) if vars(module) is x else None


class _Cell:
    """A cell of a function, as it is in a pickle."""

    def __init__(self, content: Any) -> None:
        self.content = content

    def __reduce__(self) -> Any:
        return (_cell, (self.content,))


def _cell(content: Any) -> types.CellType:
    return types.CellType() if content is UNBOUND else types.CellType(content)


class _Module:
    """A module that is imported where a pickle is loaded."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __reduce__(self) -> Any:
        return (importlib.import_module, (self.name,))


class _ModuleNames(_Module):
    """The names of such a module."""

    def __reduce__(self) -> Any:
        return (_names_of, (self.name,))


def _names_of(module: str) -> dict[str, Any]:
    return vars(importlib.import_module(module))


class _Modules(_Module):
    """The modules by their names where a pickle is loaded, one of them imported if it can be."""

    def __reduce__(self) -> Any:
        return (_modules_with, (self.name,))


def _modules_with(name: str) -> dict[str, Any]:
    with contextlib.suppress(ImportError):
        if name:
            importlib.import_module(name)
    return sys.modules


class _Found:
    """An object that is found at a path where a pickle is loaded."""

    def __init__(self, path: Any) -> None:
        self.path = path

    def __reduce__(self) -> Any:
        return (fetch, (self.path,))


def names_in_pickle(namespace: dict[str, Any], code: types.CodeType) -> Any:
    """What stands for the names of a module that some code reads: the module's, or copies."""
    home = _home_of(namespace)
    if home is not None:
        return home
    read = {name: namespace[name] for name in names_of_code(code) if name in namespace}
    return {name: _home_of(x) if isinstance(x, types.ModuleType) else x for name, x in read.items()}


def _functions(program: Program, seen: set[int] | None = None) -> Iterator[Any]:
    """The functions that a program calls, and exceptions that it raises."""
    seen = set() if seen is None else seen
    seen.add(id(program))
    for op in program.walk():
        if isinstance(op, (Apply, Update)):
            yield op.function
        elif isinstance(op, Check):
            yield op.exception
        elif isinstance(op, Call) and id(op.program) not in seen:
            yield from _functions(op.program, seen)


def _has_users_rule(f: Any) -> bool:
    rule = find_rule(f)
    return rule is not None and rule.of_user


class _Nowhere:
    """A file that keeps nothing."""

    def write(self, text: bytes) -> int:
        """Take what is written."""
        return len(text)


def _why_not(x: Any) -> Exception | None:
    """What pickle raises for an object, if cloudpickle, where it is imported, raises, too."""
    found: Exception | None = None
    for module in (pickle, sys.modules.get("cloudpickle")):
        if module is not None:
            try:
                module.Pickler(_Nowhere(), protocol=5, buffer_callback=lambda _: None).dump(x)
            except Exception as error:  # noqa: BLE001  (whatever an object's own method raises)
                found = found or error
            else:
                return None
    return found


def _check(tape: Any, state: dict[str, Any], functions: Any, places: _Places) -> None:
    """Raise for a tape that no pickle can hold, and say which part of it cannot be pickled."""
    error = _why_not(state)
    if error is None:
        return
    parts = [
        *((f"it calls {_in_words(f)}", f) for f in functions),
        *((f"it reads {name}{type_in_words(x)}", x) for name, x in places.held),
        *((f"it returns {type_in_words(x)}", x) for x in tape.rebuild.constants()),
        ("its arguments are, or hold, what can only be told apart by identity", state["key"]),
    ]
    refused = ((what, why) for what, x in parts if (why := _why_not(x)) is not None)
    what, why = next(refused, ("a part of it is no data", error))
    raise UnpicklableTapeError(
        f"the tape of {tape.program.name} cannot be pickled: {what} ({message_of(why)}). Define "
        "functions and classes at the top level of a module that can be imported, or pickle with "
        "cloudpickle; of a lock, a file or a connection read what you need before, and pass that "
        "as an argument"
    )


def _in_words(f: Any) -> str:
    while isinstance(f, Whole):
        f = f.function
    return type_in_words(f) if isinstance(f, BaseException) else function_in_words(f)
