"""Cuts loops over elements out of a source for Numba, to be compiled by a shorter path.

Numba's analysis of a function, and LLVM's, take longer than in proportion to its size, and a
gradient has many small loops, which are often equal but for their names. Such a loop becomes a
call; it is lowered to LLVM code directly (``types``, ``writer``), once for all equal loops.
"""

from __future__ import annotations

import ast
import dataclasses
import hashlib
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from fwdad.codegen.numba_support import CHECK_BOUNDS
from fwdad.codegen.numpy_backend.source import Source
from fwdad.ir.types import Type

MOST_LOOPS = 3
"""Loops without a loop inside that one function of LLVM's holds."""

_ARRAY_FUNCTIONS = {"by_rows", "grown", "growing", "loose", "part_of_stack"}
_USES = "fwdad_uses"  # the attribute of a node that caches which names it reads and assigns
_NAMES = "fwdad_names"  # and the one that caches its names in order
_CHECKS = {"check_length", "check_shape", "equal_length"}

BUILTINS = {"abs": abs, "bool": bool, "complex": complex, "float": float, "int": int,
            "max": max, "min": min}  # fmt: skip


@dataclass(frozen=True, eq=False)
class Nest:
    """A loop nest as a function of ``params`` that returns ``results``.

    ``name`` is a digest, and the variables of ``tree`` are renamed to ``v0``, ``v1``, …: equal
    nests are one. ``inner`` are indices that are inside every array that they index; ``types`` are
    the types that variables must have.
    """

    name: str
    tree: ast.Module
    params: tuple[str, ...]
    results: tuple[str, ...]
    inner: frozenset[str]
    functions: Mapping[str, Any]
    types: Mapping[str, Type]


def without_nests(
    source: Source, types: Mapping[str, Type], make: Any, refused: Iterable[str] = ()
) -> tuple[Source, dict[str, Nest]]:
    """Replace loops by calls; returns the new source and the nests by name.

    ``types`` are those of the first function's variables, ``make`` turns a nest into what the
    source calls, and nests named in ``refused`` stay. Line numbers do not change.
    """
    nests: dict[str, Nest] = {}
    if "for " not in source.code:
        return source, nests
    lines = source.code.splitlines()
    known: dict[str, tuple[list[str], Mapping[str, Type]]]
    known = {c.name: (c.inner, c.types) for c in source.called}
    own = (source.name, *source.parts, *source.outlined)
    known |= dict.fromkeys(own, (source.inner, types))
    for function in ast.parse(source.code).body:
        if isinstance(function, ast.FunctionDef) and function.name in known:
            cutter = _Cutter(function, source.namespace, *known[function.name])
            for body, live in cutter.nests():
                nest, given, kept = cutter.nest(body, live, nests)
                if nest.name in refused:
                    continue
                nests[nest.name] = nest
                call = f"{nest.name}({', '.join(given)})"
                if kept:
                    call = f"{', '.join(kept)} = {call}"
                for k in [k for each in body for k in _lines(each)]:
                    lines[k] = ""
                lines[body[-1].lineno - 1] = " " * body[-1].col_offset + call
    if not nests:
        return source, nests
    namespace = source.namespace | {name: make(nest) for name, nest in nests.items()}
    return dataclasses.replace(source, code="\n".join(lines) + "\n", namespace=namespace), nests


class _Cutter:
    """Finds the loops of one function that can be cut out.

    ``inner`` are indices that are inside every array that they index: names, or a name plus an int.
    """

    def __init__(
        self,
        function: ast.FunctionDef,
        namespace: Mapping[str, Any],
        inner: Iterable[str],
        types: Mapping[str, Type],
    ) -> None:
        self.function = function
        self.namespace = namespace
        self.inner = frozenset(inner)
        self.types = types
        self.bound = {a.arg: 0 for a in function.args.args}  # the line where it is first assigned
        for n in names_in(function):
            if isinstance(n.ctx, ast.Store):
                self.bound[n.id] = min(self.bound.get(n.id, n.lineno), n.lineno)
        self.local = set(self.bound)

    def nests(self) -> Iterator[tuple[list[ast.stmt], set[str]]]:
        """Outermost loops with the statements that prepare them, and the names read afterwards."""
        live = Live()
        live.block(self.function.body, set())
        if live.is_known:
            yield from self._inside(self.function.body, live)

    def _inside(
        self, body: Sequence[ast.stmt], live: Live
    ) -> Iterator[tuple[list[ast.stmt], set[str]]]:
        first = 0
        for k, s in enumerate(body):
            if isinstance(s, ast.For) and self._fits(s, live.after[s]):
                yield self._prepared(body[first:k], s, live.after[s]), live.after[s]
                first = k + 1
                continue
            for field in ("body", "orelse"):
                yield from self._inside(getattr(s, field, ()), live)

    def _fits(self, loop: ast.For, live: set[str]) -> bool:
        if not self._knows(loop) or _innermost(loop) > MOST_LOOPS:
            return False
        return all(self.bound[name] < loop.lineno for name in stored_in(loop) & live)

    def _prepared(
        self, before: Sequence[ast.stmt], loop: ast.For, live: set[str]
    ) -> list[ast.stmt]:
        """A loop preceded by the views, numbers and checks that only it needs.

        These may stand behind other statements that only define names.
        """
        statements: list[ast.stmt] = [loop]
        names = {n.id for n in names_in(loop)}
        between_stored: set[str] = set()
        between_read: set[str] = set()
        for s in reversed(before):
            stored, read = stored_in(s), read_in(s)
            is_own = not stored & live or stored <= stored_in(loop)
            if isinstance(s, ast.Assign):
                fits = stored <= names and is_own and not stored & between_read
            else:
                fits = isinstance(s, ast.Expr) and read & self.local <= names
            if fits and self._knows(s) and not (stored | read) & between_stored:
                if all(isinstance(t, ast.Name) for t in getattr(s, "targets", ())):
                    statements.insert(0, s)
                    names |= read
                    continue
            if not self._defines(s):
                break
            between_stored |= stored
            between_read |= read
        return statements

    def _defines(self, s: ast.stmt) -> bool:
        """Whether a statement does nothing but define a name or compare lengths."""
        if isinstance(s, ast.Expr):
            return self._knows(s) and _called(s.value) in _CHECKS
        if not (isinstance(s, ast.Assign) and isinstance(s.targets[0], ast.Name)):
            return False
        return self._reads(s.value) or _called(s.value) in ("empty", "part_of_stack")

    def nest(
        self, body: Sequence[ast.stmt], live: set[str], known: Mapping[str, Nest]
    ) -> tuple[Nest, list[str], list[str]]:
        """A nest of some statements, and the arguments and results of its call."""
        tree = ast.Module(list(body), [])
        stored = stored_in(tree)
        kept_names = sorted(stored & live, key=lambda name: (self.bound[name], name))
        read = Live().block(body, set(kept_names))
        order = dict.fromkeys(n.id for n in names_in(tree) if n.id in self.local)
        parameters = {name: f"v{k}" for k, name in enumerate(order)}
        parameters_read = [name for name in parameters if name in read]
        for n in names_in(tree):
            n.id = parameters.get(n.id, n.id)
        text = "\n".join(map(ast.unparse, body))
        places = (place.partition(" ") for place in self.inner)  # `top + 2` is inside, too
        inner = frozenset(
            parameters[name] + plus + k for name, plus, k in places if name in parameters
        )
        params, results = (
            tuple(parameters[n] for n in parameters_read),
            tuple(parameters[n] for n in kept_names),
        )
        stored_types = {
            parameters[name]: self.types[name] for name in sorted(stored & self.types.keys())
        }
        kinds = [(v, t.dtype.str, t.ndim) for v, t in stored_types.items()]
        line = body[0].lineno if CHECK_BOUNDS else 0  # else several loops may be merged
        what = repr((text, params, results, sorted(inner), kinds, line))
        name = f"nest_{hashlib.sha256(what.encode()).hexdigest()[:16]}"
        if name in known:
            return known[name], parameters_read, kept_names
        parsed = ast.parse(text)
        functions = {
            n.id: self.namespace.get(n.id, BUILTINS.get(n.id))
            for n in names_in(parsed)
            if n.id not in parameters.values()
        }
        if CHECK_BOUNDS:  # errors report the line
            for new, old in zip(ast.walk(parsed), ast.walk(tree), strict=True):
                ast.copy_location(new, old)
        return (
            Nest(name, parsed, params, results, inner, functions, stored_types),
            parameters_read,
            kept_names,
        )

    # -- what a nest may hold

    def _knows(self, s: ast.stmt) -> bool:
        """Whether ``writer`` can write a statement."""
        if isinstance(s, ast.For):
            call = s.iter
            return (
                isinstance(s.target, ast.Name)
                and isinstance(call, ast.Call)
                and isinstance(call.func, ast.Name)
                and call.func.id == "range"
                and all(map(self._reads, call.args))
                and all(map(self._knows, s.body))
                and not s.orelse
            )
        if isinstance(s, ast.If):
            return self._reads(s.test) and all(map(self._knows, [*s.body, *s.orelse]))
        if isinstance(s, ast.Assign):
            return len(s.targets) == 1 and self._writes(s.targets[0]) and self._reads(s.value)
        if isinstance(s, ast.AugAssign):
            return self._writes(s.target) and self._reads(s.value)
        if isinstance(s, ast.Expr):
            return isinstance(s.value, ast.Call) and self._reads(s.value)
        return isinstance(s, ast.Pass)

    def _writes(self, target: ast.expr) -> bool:
        if isinstance(target, ast.Subscript):
            return self._reads(target) and not _has_slice(target)
        return isinstance(target, ast.Name)

    def _reads(self, e: ast.expr) -> bool:
        if isinstance(e, ast.Call):
            return not e.keywords and self._calls(e.func) and all(map(self._reads, e.args))
        if isinstance(e, ast.Attribute):
            if isinstance(e.value, ast.Name) and e.value.id not in self.local:
                value = getattr(self.namespace.get(e.value.id), e.attr, None)
                return isinstance(value, (int, float))
            return e.attr in ("shape", "size", "real", "imag") and self._reads(e.value)
        if isinstance(e, ast.Name):
            return e.id in self.local
        if isinstance(e, ast.Constant):
            return type(e.value) in (bool, int, float)
        if isinstance(e, ast.Compare):
            return len(e.ops) == 1 and all(map(self._reads, [e.left, *e.comparators]))
        if isinstance(e, ast.Slice):
            return e.step is None and all(map(self._reads, filter(None, (e.lower, e.upper))))
        known = (ast.BinOp, ast.UnaryOp, ast.BoolOp, ast.IfExp, ast.Subscript, ast.Tuple)
        return isinstance(e, known) and all(
            self._reads(x) for x in ast.iter_child_nodes(e) if isinstance(x, ast.expr)
        )

    def _calls(self, f: ast.expr) -> bool:
        if isinstance(f, ast.Name):
            known = f.id in self.namespace or f.id in BUILTINS
            return known and f.id not in self.local and f.id not in _ARRAY_FUNCTIONS
        if isinstance(f, ast.Attribute) and isinstance(f.value, ast.Name):
            if f.value.id in self.local:
                return False
            function = getattr(self.namespace.get(f.value.id), f.attr, None)
            # other functions of NumPy's return arrays
            return isinstance(function, (np.ufunc, type)) or hasattr(math, f.attr)
        return False


class Live:
    """Liveness: which names are read after each statement before they are assigned again.

    ``is_known`` is false if a statement is of an unknown kind.
    """

    def __init__(self) -> None:
        self.after: dict[ast.stmt, set[str]] = {}
        self.is_known = True
        self._ends: list[set[str]] = []  # for each enclosing loop: what is read after it, or in it
        self._carried: dict[ast.stmt, set[str]] = {}  # what is live at a loop's start

    def block(self, body: Iterable[ast.stmt], after: set[str]) -> set[str]:
        """The names that are live before some statements."""
        for s in reversed(list(body)):
            self.after[s] = self.after.get(s, set()) | after
            after = self.statement(s, after)
        return after

    def statement(self, s: ast.stmt, after: set[str]) -> set[str]:
        """The names that are live before a statement."""
        if isinstance(s, ast.Assign):
            stored = {t.id for t in _targets(s.targets) if isinstance(t, ast.Name)}
            return (after - stored) | read_in(s)
        if isinstance(s, ast.AugAssign):
            return after | read_in(s) | {n.id for n in names_in(s)}
        if isinstance(s, (ast.Expr, ast.Pass)):
            return after | read_in(s)
        if isinstance(s, (ast.Return, ast.Raise)):
            return read_in(s)
        if isinstance(s, ast.If):
            return self.block(s.body, after) | self.block(s.orelse, after) | read_in(s.test)
        if isinstance(s, (ast.Break, ast.Continue)) and self._ends:
            return set(self._ends[-1])
        if isinstance(s, (ast.For, ast.While)) and not s.orelse:
            return self._loop(s, after)
        self.is_known = False
        return after

    def _loop(self, s: ast.For | ast.While, after: set[str]) -> set[str]:
        head = read_in(s.iter if isinstance(s, ast.For) else s.test)
        counters = (
            {s.target.id} if isinstance(s, ast.For) and isinstance(s.target, ast.Name) else set()
        )
        # liveness only grows while the enclosing loops are iterated to a fixed point
        reached = after | (set() if counters else head) | self._carried.get(s, set())
        while True:
            self._ends.append(reached)
            inside = self.block(s.body, reached) - counters
            self._ends.pop()
            if inside <= reached:
                self._carried[s] = inside
                return reached | head
            reached = reached | inside


def _targets(targets: Iterable[ast.expr]) -> Iterator[ast.expr]:
    for t in targets:
        if isinstance(t, ast.Tuple):
            yield from _targets(t.elts)
        else:
            yield t


def names_in(tree: ast.AST) -> list[ast.Name]:
    """Names in source order; cached on the node, like :func:`_uses`."""
    known: list[ast.Name] | None = vars(tree).get(_NAMES)
    if known is None:
        known = vars(tree)[_NAMES] = []
        _add_names(tree, known)
    return known


def _add_names(tree: ast.AST, found: list[ast.Name]) -> None:
    for node in _children(tree):
        if isinstance(node, ast.Name):
            found.append(node)
        elif isinstance(node, ast.stmt):
            found += names_in(node)
        else:
            _add_names(node, found)


_HOLDING: dict[type[ast.AST], tuple[str, ...]] = {
    ast.Constant: (), ast.Name: (), ast.Attribute: ("value",), ast.BinOp: ("left", "right"),
    ast.UnaryOp: ("operand",), ast.Subscript: ("value", "slice"), ast.Tuple: ("elts",),
    ast.Compare: ("left", "comparators"), ast.Assign: ("targets", "value"),
    ast.AugAssign: ("target", "value"), ast.For: ("target", "iter", "body", "orelse"),
}  # fmt: skip
"""The fields of the commonest nodes that may hold names, in the order of the source."""


def _children(tree: ast.AST) -> Iterator[ast.AST]:
    """The parts of a node that may hold names."""
    for field in _HOLDING.get(type(tree), tree._fields):
        value = getattr(tree, field, None)
        if isinstance(value, list):
            for each in value:
                if isinstance(each, ast.AST):
                    yield each
        elif isinstance(value, (ast.expr, ast.stmt, ast.arguments)):
            yield value


def read_in(tree: ast.AST) -> set[str]:
    """The names that some statements read."""
    return _uses(tree)[0]


def stored_in(tree: ast.AST) -> set[str]:
    """The names that some statements assign."""
    return _uses(tree)[1]


def _uses(tree: ast.AST) -> tuple[set[str], set[str]]:
    """Which names are read and which assigned; cached on the node, so do not mutate the sets.

    Nodes that are renamed later keep the names of the source here.
    """
    known: tuple[set[str], set[str]] | None = vars(tree).get(_USES)
    if known is not None:
        return known
    read: set[str] = set()
    stored: set[str] = set()
    nodes: list[ast.AST] = [tree]
    while nodes:
        node = nodes.pop()
        if isinstance(node, ast.Name):
            (read if isinstance(node.ctx, ast.Load) else stored).add(node.id)
        elif isinstance(node, ast.stmt) and node is not tree:
            inside = _uses(node)
            read |= inside[0]
            stored |= inside[1]
        else:
            nodes += _children(node)
    vars(tree)[_USES] = read, stored
    return read, stored


def known_int(e: ast.expr) -> int | None:
    """The value of an int literal, or None."""
    if isinstance(e, ast.UnaryOp) and isinstance(e.op, ast.USub):
        k = known_int(e.operand)
        return None if k is None else -k
    return e.value if isinstance(e, ast.Constant) and type(e.value) is int else None


def _called(e: ast.expr) -> str:
    """The last name of the function that an expression calls; empty if it is no call."""
    f = e.func if isinstance(e, ast.Call) else None
    return f.id if isinstance(f, ast.Name) else f.attr if isinstance(f, ast.Attribute) else ""


def _lines(s: ast.stmt) -> range:
    assert s.end_lineno is not None
    return range(s.lineno - 1, s.end_lineno)


def _innermost(loop: ast.For) -> int:
    """How many innermost loops a loop has."""
    inside = list(_loops(loop.body))
    return sum(not any(True for _ in _loops(n.body)) for n in inside) if inside else 1


def _loops(body: Iterable[ast.stmt]) -> Iterator[ast.For]:
    """The loops among some statements and inside them."""
    for s in body:
        if isinstance(s, ast.For):
            yield s
        for field in ("body", "orelse"):
            yield from _loops(getattr(s, field, ()))


def _has_slice(e: ast.AST) -> bool:
    return isinstance(e, ast.Slice) or any(map(_has_slice, _children(e)))
