"""A memory profile of a gradient's program: what one run keeps for the reverse pass."""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from fwdad.codegen.numpy_backend.source import Source
from fwdad.ir.primitives.stacks import new_stack, pop, push, thin, top, turn
from fwdad.ir.types import number_type
from fwdad.tangents.quiet import quietly


class Found(NamedTuple):
    """Memory of one kind that one row of the program's source made: ``number`` values, at the peak.

    The kinds are ``"saved"``, ``"copy"``, ``"array"`` and ``"cotangent"``.
    """

    kind: str
    row: int
    number: int
    nbytes: int


def _bytes_of(x: Any) -> int:
    """The bytes of a value in compiled code."""
    if isinstance(x, (np.ndarray, np.generic)):
        return int(x.nbytes)
    t = number_type(x)
    return 0 if t is None else int(t.dtype.itemsize)


def _owner(a: np.ndarray) -> np.ndarray:
    while isinstance(a.base, np.ndarray):
        a = a.base
    return a


class _Counts:
    """The bytes on the stacks of a program, by row of its source.

    ``rows`` holds for each row the number of values now, their bytes, and both at the row's peak;
    ``most`` is the peak of all stacks together.
    """

    def __init__(self) -> None:
        self.rows: dict[int, list[int]] = {}
        self.most = 0

    def functions(self) -> dict[Any, Callable[..., Any]]:
        """The functions of ``fwdad.ir.primitives.stacks``, with counting."""
        rows, total, frame = self.rows, 0, sys._getframe  # noqa: SLF001

        def counted_push(stack: list[Any], x: Any) -> None:
            nonlocal total
            row = frame(1).f_lineno
            size = 8 if type(x) is float or type(x) is np.float64 else _bytes_of(x)
            held = rows.get(row)
            if held is None:
                held = rows[row] = [0, 0, 0, 0]
            held[0] += 1
            held[1] += size
            if held[1] > held[3]:
                held[2:] = held[:2]
            total += size
            self.most = max(self.most, total)
            stack.append((x, size, held))

        def taken(size: int, held: list[int]) -> None:
            nonlocal total
            held[0] -= 1
            held[1] -= size
            total -= size

        def counted_pop(stack: list[Any]) -> Any:
            x, *counted = stack.pop()
            taken(*counted)
            return x

        def counted_thin(stack: list[Any]) -> None:
            for _, *counted in stack[1::2]:
                taken(*counted)
            del stack[1::2]

        return {
            new_stack: list,
            push: counted_push,
            pop: counted_pop,
            top: lambda stack: stack[-1][0],
            thin: counted_thin,
        }


class MeasuredRun:
    """A program that is run once, with a look at its variables at the turn and at the end.

    ``source`` is the program's for NumPy, with marks where reverse passes begin.
    """

    def __init__(self, source: Source, leaves: list[Any]) -> None:
        self.source = source
        self.leaves = leaves
        self.counts = _Counts()
        self.at_turn: dict[str, Any] = {}
        self.at_end: dict[str, Any] = {}
        self._run()

    def _run(self) -> None:
        lines = self.source.code.splitlines()
        tree = ast.parse(self.source.code)
        function: Any = tree.body[0]
        last = function.body[-1]
        lines[last.lineno - 1 : last.lineno - 1] = ["    _look_at_the_end()"]
        self.function = function

        def look() -> None:
            self.at_turn = dict(sys._getframe(1).f_locals)  # noqa: SLF001

        def look_at_the_end() -> None:
            self.at_end = dict(sys._getframe(1).f_locals)  # noqa: SLF001

        counted = {**self.counts.functions(), turn: look}
        namespace = {
            name: counted.get(x, x) if callable(x) else x
            for name, x in self.source.namespace.items()
        }
        namespace["_look_at_the_end"] = look_at_the_end
        exec(compile("\n".join(lines) + "\n", "<fwdad memory>", "exec"), namespace)  # noqa: S102  (our own text)
        self.turn = next((n for n, x in self.source.namespace.items() if x is turn), "")
        quietly(namespace[self.source.name], *self.leaves)

    @property
    def saved(self) -> int:
        """The peak of the bytes that are kept for the reverse pass."""
        return sum(k.nbytes for k in self._variables() if k.kind == "saved") + self.counts.most

    def found(self) -> Iterator[Found]:
        """All memory that was found, by row of the source."""
        for row, (_, _, number, nbytes) in self.counts.rows.items():
            if nbytes:
                yield Found("saved", row, number, nbytes)
        yield from self._variables()
        yield from self._cotangents()

    def _statements(self) -> tuple[list[ast.stmt], list[ast.stmt]]:
        """The statements before the reverse pass, and those of the reverse pass."""
        body = self.function.body
        turns = [
            k
            for k, s in enumerate(body)
            if isinstance(s, ast.Expr) and ast.unparse(s.value) == f"{self.turn}()"
        ]
        at = turns[-1]
        return body[:at], body[at + 1 :]

    def _variables(self) -> Iterator[Found]:
        """The variables of the forward pass that the reverse pass reads."""
        before, after = self._statements()
        used: dict[str, None] = {}
        _read(after, set(), used)
        params = {a.arg for a in self.function.args.args}
        inputs = {id(_owner(x)) for x in self.leaves if isinstance(x, np.ndarray)}
        written, rows, copies = _definitions(before, params)
        own = {
            id(_owner(self.at_turn[n]))
            for n in written
            if isinstance(self.at_turn.get(n), np.ndarray)
        }
        seen: set[int] = set()
        for name in used:
            x = self.at_turn.get(name)
            if name in params or x is None or isinstance(x, list):
                continue
            if not isinstance(x, np.ndarray):
                if np.asarray(x).dtype.kind in "fc":
                    yield Found("saved", rows.get(name, 0), 1, _bytes_of(x))
                continue
            owner = _owner(x)
            if id(owner) in inputs or id(owner) in seen:
                continue
            seen.add(id(owner))
            kind = "array" if id(owner) in own else "saved"
            if name in copies and self._is_ours(rows[name]):
                continue  # reported below, whether it is read or not
            yield Found(kind, rows.get(name, 0), 1, owner.nbytes)
        for name in sorted(copies):
            x = self.at_turn.get(name)
            if isinstance(x, np.ndarray) and self._is_ours(rows[name]):
                yield Found("copy", rows[name], 1, _owner(x).nbytes)

    def _is_ours(self, row: int) -> bool:
        """Whether a row of the source comes from no line of the user's code."""
        return self.source.places[row - 1] is None

    def _cotangents(self) -> list[Found]:
        """The arrays that the reverse pass made and that still have names at its end."""
        _, after = self._statements()
        _, rows, _ = _definitions(after, set())
        known = {
            id(_owner(x))
            for x in (*self.leaves, *self.at_turn.values())
            if isinstance(x, np.ndarray)
        }
        found = []
        for name, x in self.at_end.items():
            if isinstance(x, np.ndarray) and id(_owner(x)) not in known:
                known.add(id(_owner(x)))
                found.append(Found("cotangent", rows.get(name, 0), 1, _owner(x).nbytes))
        return found


def _names(node: ast.AST, kind: type[ast.expr_context]) -> Iterator[str]:
    for n in ast.walk(node):
        if isinstance(n, ast.Name) and isinstance(n.ctx, kind):
            yield n.id


def _read(statements: list[ast.stmt], defined: set[str], used: dict[str, None]) -> set[str]:
    """Note in ``used`` the names read before they are bound; return those bound at the end."""
    for s in statements:
        if isinstance(s, (ast.If, ast.While, ast.For)):
            head = s.iter if isinstance(s, ast.For) else s.test
            used.update(dict.fromkeys(n for n in _names(head, ast.Load) if n not in defined))
            inner = set(defined)
            if isinstance(s, ast.For):
                inner.update(_names(s.target, ast.Store))
            sides = [_read(s.body, set(inner), used), _read(s.orelse, set(defined), used)]
            if isinstance(s, ast.If):
                defined |= sides[0] & sides[1]
            continue
        read = {n for n in _names(s, ast.Load) if n not in defined}
        if isinstance(s, ast.AugAssign) and isinstance(s.target, ast.Name):
            read |= {s.target.id} - defined
        used.update(dict.fromkeys(sorted(read)))
        defined |= set(_names(s, ast.Store))
    return defined


def _definitions(
    statements: list[ast.stmt], params: set[str]
) -> tuple[set[str], dict[str, int], set[str]]:
    """The names written in place, the row that binds each name, and the copies of parameters."""
    written: set[str] = set()
    rows: dict[str, int] = {}
    copies: set[str] = set()
    for s in statements:
        for n in ast.walk(s):
            if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store):
                rows[n.id] = n.lineno
            elif isinstance(n, ast.Subscript) and isinstance(n.ctx, ast.Store):
                written.update(_names(n.value, ast.Load))
            elif isinstance(n, ast.AugAssign) and isinstance(n.target, ast.Name):
                written.add(n.target.id)
        if isinstance(s, ast.Assign) and len(s.targets) == 1 and _is_copy(s.value, params):
            copies.update(_names(s.targets[0], ast.Store))
    return written, rows, copies


def _is_copy(value: ast.expr, params: set[str]) -> bool:
    """Whether an expression is ``a.copy()`` of a parameter."""
    return (
        isinstance(value, ast.Call)
        and isinstance(value.func, ast.Attribute)
        and value.func.attr == "copy"
        and isinstance(value.func.value, ast.Name)
        and value.func.value.id in params
    )
