"""Sources that travel with pickled functions.

A function that is pickled by value, as cloudpickle does with those of ``__main__``, arrives with
its bytecode alone, without even the name of its file. What fwdad pickles carries the lines that it
was compiled from: one more text in which a source is looked for, and trusted no more easily than
the others.
"""

from __future__ import annotations

import io
import linecache
import threading
import weakref
from collections.abc import Iterator
from types import CodeType
from typing import Any, NamedTuple

Key = tuple[int, str]  # of a code object: its first line and its name


class Text(NamedTuple):
    """Some lines of a file, and the functions that they define."""

    name: str
    runs: tuple[tuple[int, str], ...]  # lines that follow each other, and the index of the first
    keys: frozenset[Key]
    with_rules: frozenset[tuple[Key, bytes]]  # and which of them had one, by their bytecode


Sources = tuple[Text, ...]

_LOCK = threading.RLock()
_SHARED = ("<string>", "<stdin>")  # names that many texts have


class Carried:
    """The sources of one pickled function, which are found as long as this object lives."""

    def __init__(self, sources: Sources) -> None:
        self._texts = [(text.name, text.keys, _lines(text.runs)) for text in sources]
        self._with_rules = frozenset().union(*(text.with_rules for text in sources))
        self.keys = frozenset().union(*(text.keys for text in sources))
        self.shown: set[str] = set()

    def texts(self, key: Key) -> list[tuple[str, list[str]]]:
        """The names and lines of the texts with functions of this key."""
        return [(name, lines) for name, keys, lines in self._texts if key in keys]

    def had_rule(self, code: CodeType) -> bool:
        """Whether a function with this code had a rule where it was pickled."""
        return (key_of(code), code.co_code) in self._with_rules


_HELD: weakref.WeakValueDictionary[Sources, Carried] = weakref.WeakValueDictionary()
_BY_KEY: dict[Key, weakref.WeakSet[Carried]] = {}
_SHOWN: dict[str, tuple[Any, ...]] = {}  # our entries in linecache


def key_of(code: CodeType) -> Key:
    """The key by which texts are looked up."""
    return code.co_firstlineno, code.co_name


def receive(sources: Sources) -> Carried:
    """Register sources that came with a function; whoever has the function holds the result.

    Nothing is parsed or run before somebody asks for the source of such a function.
    """
    with _LOCK:
        held = _HELD.get(sources)
        if held is None:
            held = _HELD[sources] = Carried(sources)
            for key in held.keys:
                _BY_KEY.setdefault(key, weakref.WeakSet()).add(held)
            weakref.finalize(held, _forget, held.keys, held.shown).atexit = False
        return held


def carried_texts(code: CodeType) -> Iterator[tuple[str, list[str], Carried]]:
    """The texts that came with pickled functions and may define some code, with their names."""
    key = key_of(code)
    for held in list(_BY_KEY.get(key, ())):
        for name, lines in held.texts(key):
            yield name, lines, held


def show(name: str, lines: list[str], held: Carried) -> str:
    """Show carried lines to tracebacks, under the returned name: the file's own if they agree."""
    with _LOCK:
        if name not in _SHOWN:
            there = linecache.getlines(name)
            if there and all(_agree(there, k, line) for k, line in enumerate(lines)):
                return name
            if there or name in _SHARED:
                name = f"<pickled {name.strip('<>')}>"
        shown = list(_SHOWN[name][2]) if name in _SHOWN else []
        shown += ["\n"] * (len(lines) - len(shown))
        for k, line in enumerate(lines):
            shown[k] = line if line.strip() else shown[k]
        linecache.cache[name] = _SHOWN[name] = (sum(map(len, shown)), None, shown, name)
        held.shown.add(name)
        return name


def _agree(there: list[str], k: int, line: str) -> bool:
    return not line.strip() or (k < len(there) and there[k].rstrip() == line.rstrip())


def _lines(runs: tuple[tuple[int, str], ...]) -> list[str]:
    """Lines at their indices, with empty ones between the runs."""
    lines: list[str] = []
    for first, text in runs:
        lines += ["\n"] * (first - len(lines))
        lines += io.StringIO(text).readlines()
    return lines


def _forget(keys: frozenset[Key], shown: set[str]) -> None:
    with _LOCK:
        for key in keys:
            if not list(_BY_KEY.get(key, ())):  # its length counts what is dying just now
                _BY_KEY.pop(key, None)
        for name in shown:
            if not any(name in held.shown for held in _HELD.values()):
                linecache.cache.pop(name, None)
                _SHOWN.pop(name, None)
