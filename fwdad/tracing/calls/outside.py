"""What a traced program reads from outside."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from fwdad.errors import UntraceableError, type_in_words
from fwdad.tangents.namespaces import namespace_of
from fwdad.tape.recorder import Recorder
from fwdad.tape.symbol import UNBOUND, Symbol
from fwdad.tape.types import number_type
from fwdad.tracing.calls.kinds import mentions_symbols
from fwdad.tracing.syntax.attributes import Attributes
from fwdad.tracing.syntax.merge import mutables
from fwdad.tracing.syntax.raising import AlwaysRaises


def _is_of_trace(x: Any) -> bool:
    """Whether a container holds values that are not known when the program is traced."""
    if isinstance(x, (list, tuple, dict)):
        return any(map(_is_of_trace, x.values() if isinstance(x, dict) else x))
    return not isinstance(x, np.ndarray) and mentions_symbols(x)


class Outside(Attributes):
    """What comes from outside, and what is known of it."""

    def __init__(self, recorder: Recorder) -> None:
        self.recorder = recorder
        self.frame: Any = None
        self.node: Any = None
        self.called_at: Any = None  # where the user's code called the library's that is traced
        self.depth = 0
        self.returned: Any = None  # the place of the last `return` of the function itself
        self.growing: dict[Any, Any] = {}  # where lists are made that grow, the type of their items
        self.handled: list[AlwaysRaises] = []  # exceptions whose handlers are traced
        self.active: list[Any] = []  # code objects and definitions that are being traced
        self.inside: dict[int, int] = {}  # how many calls inside the outermost one of theirs
        self.remembered = False  # whether the next call's result is kept
        self.caches: dict[int, tuple[Any, Any]] = {}  # of functions under `lru_cache`
        self.answered: list[set[Any]] = []  # for each call of them: arguments, answers to it
        self.recursive: dict[int, Any] = {}  # those that become programs of their own
        self.programs: dict[Any, Any] = {}
        self.capture_value: Callable[[Any, Any, str], Any] = lambda value, _path, _name: value
        self.capture_container: Callable[[Any, Any, str], Any] = lambda value, _path, _name: value
        self.guards: list[tuple[Any, Any]] = []  # (place, object): what is found there must stay

    def captured(self, x: Any, path: Any, name: str) -> Any:
        """A value of the world outside: numbers and arrays become inputs of the tape."""
        if path[0] == "attribute" and type(path[1]).__module__.startswith("fwdad."):
            return x  # our own objects' options
        if number_type(x) is not None and not isinstance(x, bool):
            return self.capture_value(x, path, name)
        if isinstance(x, np.ndarray):
            return self.capture_value(x, path, name)
        if path[0] != "attribute" or name in (namespace_of(path[1]) or ()):
            self.guards.append((path, x))
        if type(x) in (list, dict) or (isinstance(x, tuple) and mutables(x)):
            return self.capture_container(x, path, name)
        return x

    def force(self, x: Any) -> Any:
        """The value of a symbol as it was in the example; the tape assumes it from now on."""
        if type(x) is not Symbol:
            return x
        found = self.recorder.forced(x.value)
        if found is UNBOUND:
            message = (
                "a value that is computed when the program runs is needed to trace it (as a "
                "length, an axis, a key or an option)"
            )
            raise UntraceableError(message, self.location())
        return found

    def may_change(self, o: Any) -> None:
        """Refuse to change what existed before the trace."""
        if not self.recorder.is_own(o):
            message = (
                f"{type_in_words(o)} that existed before the call is changed: a tape cannot do "
                "that. Pass it as an argument and return it"
            )
            raise UntraceableError(message, self.location())

    def bound_outside(self, x: Any, name: str) -> Any:
        """A default, or what a partial function holds: lists and dicts change between calls."""
        if isinstance(x, np.ndarray):
            return self.recorder.as_symbol(x)
        own = any(map(self.recorder.is_own, x if isinstance(x, tuple) else (x,)))
        if own or _is_of_trace(x):
            return x
        if type(x) in (list, dict) or (isinstance(x, tuple) and mutables(x)):
            return self.capture_container(x, ("object", x), name)
        return x
