"""Long loops over elements on several cores, in the Numba source.

A loop whose iterations write one element each, and read no array that is written, gives the same
bits in whatever order they run. It becomes a function of its own, in which each thread takes a part
of the longest axis; shorter loops run in place.
"""

from __future__ import annotations

import ast
import functools
import logging
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numba
import numpy as np
from numba.core import types as _types
from numba.np.ufunc.parallel import _launch_threads

from fwdad.codegen.llvm.lowering import APART, INNER
from fwdad.codegen.llvm.pipeline import ProgramCompiler
from fwdad.codegen.llvm.thread_calls import on_threads
from fwdad.codegen.numba_compile import OPTIONS
from fwdad.codegen.numba_support import UFUNC_HELPERS
from fwdad.ir.notation import tuple_text

SHORTEST = 4_000_000
"""The work of a loop, in tenths of a nanosecond, that is worth the threads: to start them takes 30
to 100 microseconds."""

_CALL, _DIVISION, _ELEMENT, _OPERATION = 90, 10, 2, 1
_LIGHTEST = 20
"""An element that costs less waits for memory, not for a core, and its loop is compiled once."""

REGION = "part_of_program"
"""The decorator of such functions in generated source."""

RESERVED = ("blocks", "first", "last", "length", "part", "partial", "size", "split")
"""Names inside the functions of regions."""

_LONG = 4096
"""Elements of an axis that can be shared out."""

_UNKNOWN = object()

numba_types: Any = _types


@functools.cache
def can_nest() -> bool:
    """Whether the thread pool may be used from several threads, and recursively.

    Numba's own pool, its choice where neither TBB nor OpenMP is available, ends the process then.
    """
    _launch_threads()
    if numba.threading_layer() in ("omp", "tbb"):
        return True
    logging.getLogger("fwdad").warning(
        "parallel=True has no effect: Numba finds neither OpenMP nor TBB (pip install tbb)"
    )
    return False


def count_threads() -> int:
    """How many threads a program may use, at least one."""
    return int(numba.get_num_threads()) if can_nest() else 1


def namespace(
    inner: Sequence[str] = (), apart: Mapping[str, frozenset[str]] = MappingProxyType({})
) -> dict[str, Any]:
    """The global names of such functions other than helpers.

    ``inner`` are indices that are inside every array that they index, ``apart`` the parameters of
    each function that share memory with no other.
    """

    def part(f: Callable[..., Any]) -> Any:
        f.__dict__.update({INNER: frozenset(inner), APART: apart.get(f.__name__, frozenset())})
        jitted = numba.njit(pipeline_class=ProgramCompiler, **OPTIONS)(f)
        compile_for = jitted.compile  # once, not again for literal ends of a range
        jitted.compile = lambda types: compile_for(tuple(map(numba_types.unliteral, types)))
        return jitted

    return {REGION: part, "on_threads": on_threads}


def run_on_threads(
    name: str, given: Sequence[str], first: str, length: str, step: str = "1"
) -> list[str]:
    """Lines that run a function on parts of a range, one per thread.

    The function's last two arguments are the ends of a part; ``given`` are the others.
    """
    return [
        f"if on_threads({name}, {tuple_text(given)}, {first}, {length}, {step}):",
        "    raise RuntimeError('a thread has raised')",
    ]


def part_function(name: str, given: Sequence[str], body: Sequence[str]) -> list[str]:
    """The lines of a function that runs part of a range, from ``first`` up to ``last``."""
    return [
        f"@{REGION}",
        f"def {name}({', '.join([*given, 'first', 'last'])}):",
        *(f"    {line}" for line in body),
        "",
    ]


def nest_of_part(
    index: Sequence[str], lengths: Sequence[str], split: str, body: Sequence[str]
) -> list[str]:
    """The lines of nested loops around others; the loop of axis ``split`` runs a part only."""
    lines = [
        f"{'    ' * k}for {i} in range(first if {split} == {k} else 0, "
        f"last if {split} == {k} else {n}):"
        for k, (i, n) in enumerate(zip(index, lengths, strict=True))
    ]
    return [*lines, *("    " * len(index) + line for line in body)]


def longest_of(lengths: Sequence[str]) -> tuple[str, str]:
    """The greatest length, and its axis, as source."""
    split = "0"
    for k, n in enumerate(lengths[1:], 1):
        before = " and ".join(f"{n} > {m}" for m in lengths[:k])
        split = f"{k} if {before} else {split}"
    return f"max({', '.join(lengths)})" if len(lengths) > 1 else lengths[0], split


def names_from_outside(trees: Iterable[ast.AST], own: Iterable[str] = ()) -> list[str]:
    """The variables that some code reads and does not assign, without its ``own``, sorted."""
    nodes = [node for tree in trees for node in ast.walk(tree)]
    names = [node for node in nodes if isinstance(node, ast.Name)]
    stored = {node.id for node in names if isinstance(node.ctx, ast.Store)}
    called = {ast.unparse(node.func) for node in nodes if isinstance(node, ast.Call)}
    return sorted({node.id for node in names} - stored - called - {"np", "math", *own})


def dedented(lines: Sequence[str]) -> tuple[str, list[str]]:
    """The indentation of the first of some lines, and all lines without it."""
    outside = lines[0][: len(lines[0]) - len(lines[0].lstrip())]
    return outside, [line[len(outside) :] for line in lines]


def spread(
    lines: list[str], name: str, lengths: Sequence[str], used: Callable[[str], str]
) -> tuple[list[str], list[str]] | None:
    """The function of a loop nest, and the lines that replace it; threads run it if it is long.

    The nest must hold a single statement, which stores one element. Returns None if something in it
    might raise or is not known, or if it is not worth it. ``used`` makes names unique.
    """
    *heads, statement = lines
    if not heads:
        return None
    index = [head.split()[1] for head in heads]
    tree = ast.parse(statement.strip()).body[0]
    tests = checks(tree, dict(zip(index, lengths, strict=True)))
    if tests is None:
        return None
    work = work_of(tree)
    if work < _LIGHTEST and len(index) == 1:
        return None
    given, split = names_from_outside([tree, *map(ast.parse, lengths)], index), used("split")
    body = nest_of_part(index, lengths, split, [statement.strip()])
    function = part_function(name, [*given, split], body)
    most, longest = longest_of(lengths)
    outside, _ = dedented(lines)
    test = " and ".join([f"{' * '.join(lengths)} >= {SHORTEST // work}", *tests])
    call = [
        f"{outside}if {test}:",
        *(f"{outside}    {line}" for line in run_on_threads(name, [*given, longest], "0", most)),
        f"{outside}else:",
        *(f"    {line}" for line in lines),
    ]
    return function, call


def region(lines: list[str], name: str, length: str, work: str) -> tuple[list[str], list[str]]:
    """Functions of a region and of its parts on threads, and the lines that replace it.

    ``lines`` are for elements ``first`` to ``last`` of the last axis; ``work`` is the cost of all
    elements in tenths of a nanosecond, as source.
    """
    outside, body = dedented(lines)
    names = names_from_outside([ast.parse("\n".join(body))], ("first", "last"))
    call = [
        f"{outside}if {length} >= {_LONG} and {work} >= {SHORTEST}:",
        *(f"{outside}    {line}" for line in run_on_threads(name, names, "0", length)),
        f"{outside}else:",
        f"{outside}    {name}({', '.join([*names, '0', length])})",
    ]
    return part_function(name, names, body), call


def work_of(tree: ast.AST) -> int:
    """Estimated cost of an iteration, in tenths of a nanosecond."""
    work = 0
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            if _is_sum(node):
                work += _OPERATION
                continue
            light = _is_call(node) or ast.unparse(node.func).startswith("np.")
            work += _DIVISION if light else _CALL
        elif isinstance(node, ast.Subscript):
            work += _ELEMENT
        elif isinstance(node, (ast.BinOp, ast.UnaryOp, ast.Compare, ast.IfExp)):
            work += _OPERATION
    return max(work, 1)


def _is_sum(node: ast.Call) -> bool:
    return isinstance(node.func, ast.Name) and node.func.id in _SUMMANDS


def _is_call(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name)


def checks(tree: ast.AST, lengths: dict[str, str]) -> list[str] | None:
    """Tests that no index leaves its array; None if a statement holds something unknown.

    ``lengths`` are those of the loops around it, by the names of their indices.
    """
    conditions = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and not _is_known(node.func):
            return None
        if isinstance(node, ast.Subscript):
            if not isinstance(node.value, ast.Name):
                return None
            parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
            for axis, part in enumerate(parts):
                last = _last(part, lengths)
                if last is None:
                    return None
                if last != f"{node.value.id}.shape[{axis}] - 1":
                    conditions.append(f"{last} < {node.value.id}.shape[{axis}]")
    return list(dict.fromkeys(conditions))


def _last(part: ast.expr, lengths: dict[str, str]) -> str | None:
    """The largest value of an index."""
    if isinstance(part, ast.Constant) and part.value == 0:
        return "0"
    if isinstance(part, ast.Name) and part.id in lengths:
        return f"{lengths[part.id]} - 1"
    if isinstance(part, ast.BinOp) and isinstance(part.op, ast.Mult):  # a step of 0 or 1
        inner = _last(part.left, lengths)
        step = ast.unparse(part.right)
        return None if inner is None or not step.isidentifier() else f"({inner}) * {step}"
    return None


_SUMMANDS = {"scaled", "scaled_in_vectors", "summed"}
_QUIET = {"complex_divide", "divide", "float", "float_floor_divide", "float_power",
          "float_remainder", "int_floor_divide", "int_remainder", "scaled_complex",
          *UFUNC_HELPERS, *_SUMMANDS}  # fmt: skip


def _is_known(f: ast.expr) -> bool:
    """Whether a function is NumPy's or C's, or a helper that never raises."""
    if isinstance(f, ast.Name):
        return f.id in _QUIET
    if isinstance(f, ast.Attribute) and isinstance(f.value, ast.Name):
        home = {"np": np, "math": math}.get(f.value.id, _UNKNOWN)
        return getattr(home, f.attr, _UNKNOWN) is not _UNKNOWN
    return False
