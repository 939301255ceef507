"""Cuts a long function for Numba into several, which are called in turn.

Numba's analysis of a function takes time and memory in proportion to its branches times its
variables. A part is given what it reads, and returns what is read after it.
"""

from __future__ import annotations

import ast
import dataclasses
from collections.abc import Sequence
from typing import Any

from fwdad.codegen.llvm.nests.extraction import Live, names_in, read_in, stored_in
from fwdad.codegen.numpy_backend.source import Source

LINES = 300
"""Lines of a part, unless one statement has more."""


def in_parts(source: Source) -> Source:
    """A source whose first function is cut into parts if it is long; else itself.

    Its callees stay whole: they call themselves, and code is linked from the inside out.
    """
    if len(source.places) <= 2 * LINES:
        return source
    functions = (f for f in ast.parse(source.code).body if isinstance(f, ast.FunctionDef))
    whole = next(f for f in functions if f.name == source.name)
    return _Cutter(source, whole).made()


class _Cutter:
    """Collects the parts of a source: their lines, and the calls that replace lines."""

    def __init__(self, source: Source, function: ast.FunctionDef) -> None:
        self._source = source
        self._lines = source.code.splitlines()
        self._code: list[str] = []
        self._places: list[Any] = []
        self._calls: dict[int, tuple[int, str]] = {}  # by line: up to where, and the call
        self._parts: list[str] = []
        self._local = {a.arg for a in function.args.args}
        self._local.update(n.id for n in names_in(function) if isinstance(n.ctx, ast.Store))
        self._block(function.body, set())

    def made(self) -> Source:
        """The source with parts."""
        if not self._parts:
            return self._source
        lines: list[str] = []
        places: list[Any] = []
        k = 0
        while k < len(self._lines):
            end, text = self._calls.get(k, (k + 1, self._lines[k]))
            lines.append(text)
            places.append(self._source.places[k])
            k = end
        code = "\n".join([*lines, *self._code]) + "\n"
        return dataclasses.replace(
            self._source, code=code, places=[*places, *self._places], parts=self._parts
        )

    def _block(self, body: Sequence[ast.stmt], live: set[str]) -> None:
        """Cut some statements, after which names are read."""
        if not body or _length(body) <= 2 * LINES:
            return
        live = set(live)
        run: list[ast.stmt] = []  # the statements of the next part, backwards
        after: set[str] = set()  # what is read after them
        for s in reversed(body):
            touched = read_in(s) | stored_in(s)
            inside = Live()
            before = inside.statement(s, live & touched)
            if not inside.is_known:
                return
            if _leaves(s) or _length([s]) > LINES:
                self._part(run[::-1], after)
                run = []
                for inner in (getattr(s, field, ()) for field in ("body", "orelse")):
                    if inner:
                        self._block(inner, (live - touched) | inside.after[inner[-1]])
            else:
                after = after if run else set(live)
                run.append(s)
            live -= touched
            live |= before
            if run and _length(run[::-1]) >= LINES:
                self._part(run[::-1], after)
                run = []
        self._part(run[::-1], after)

    def _part(self, run: list[ast.stmt], after: set[str]) -> None:
        """Make a function of some statements."""
        if not run or _length(run) < LINES // 2:
            return
        kept = sorted(set().union(*map(stored_in, run)) & after)
        given = sorted(Live().block(run, set(kept)) & self._local)
        name = f"{self._source.name}_part_{len(self._parts) + 1}"
        while name in self._local or name in self._source.namespace:
            name += "_"
        first, end = run[0].lineno - 1, _end(run[-1])
        margin = run[0].col_offset
        call = f"{name}({', '.join(given)})"
        head, results = f"def {call}:", f"{', '.join(kept)}," if kept else ""
        body = [f"    {line[margin:]}" for line in self._lines[first:end]]
        self._code += ["", "", head, *body, *([f"    return ({results})"] if kept else [])]
        here = self._source.places[first:end]
        self._places += [None, None, None, *here, *([None] if kept else [])]
        self._parts.append(name)
        self._calls[first] = end, " " * margin + (f"({results}) = {call}" if kept else call)


def _end(s: ast.stmt) -> int:
    assert s.end_lineno is not None
    return s.end_lineno


def _length(run: Sequence[ast.stmt]) -> int:
    """The number of lines of neighbouring statements."""
    return _end(run[-1]) - run[0].lineno + 1


def _leaves(s: ast.stmt) -> bool:
    """Whether a statement may leave a loop or the function that it stands in."""
    if isinstance(s, (ast.For, ast.While)):
        return any(isinstance(x, ast.Return) for x in ast.walk(s))
    if isinstance(s, ast.If):
        return any(map(_leaves, [*s.body, *s.orelse]))
    return isinstance(s, (ast.Break, ast.Continue, ast.Return))
