"""Long loops over elements on several cores, in the Numba source.

A loop whose iterations write one element each, and read no array that is written, gives the same
bits in whatever order they run. It becomes a function of its own, in which each thread takes a
part of the longest axis; shorter loops run where they stand.
"""

from __future__ import annotations

import ast
import functools
import logging
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numba
import numpy as np
from numba.np.ufunc.parallel import _launch_threads

from fwdad.backends.machine import OPTIONS
from fwdad.backends.numba_pipeline import ProgramCompiler

SHORTEST = 4_000_000
"""The work of a loop, in tenths of a nanosecond, that is worth the threads: to start them takes 30
to 100 microseconds."""

_CALL, _DIVISION, _ELEMENT, _OPERATION = 90, 10, 2, 1
_LIGHTEST = 20
"""An element that costs less waits for memory, not for a core, and its loop is compiled once."""

THREADS, REGION = "threads", "part_of_program"
"""The decorators of such functions in generated source."""

RESERVED = ("first", "last", "length", "part", "parts")
"""Names inside the functions of regions."""

_LONG = 4096
"""Elements of an axis that can be shared out."""

_UNKNOWN = object()


@functools.cache
def can_nest() -> bool:
    """Whether the threads may be asked for by several threads, and inside each other.

    Numba's own pool, which it takes where neither TBB nor OpenMP is there, ends the process then.
    """
    _launch_threads()
    if numba.threading_layer() in ("omp", "tbb"):
        return True
    logging.getLogger("fwdad").warning(
        "parallel=True has no effect: Numba finds neither OpenMP nor TBB (pip install tbb)"
    )
    return False


def threads(f: Callable[..., Any]) -> Any:
    """Compile a function whose ``prange`` runs on Numba's threads."""
    return numba.njit(parallel=True, nogil=True, error_model="numpy")(f)


def _region(f: Callable[..., Any]) -> Any:
    """Compile a region as the rest of a program is compiled."""
    return numba.njit(pipeline_class=ProgramCompiler, **OPTIONS)(f)


def namespace() -> dict[str, Any]:
    """What such functions mean by the names that are not helpers."""
    return {
        REGION: _region,
        THREADS: threads,
        "prange": numba.prange,
        "count_threads": numba.get_num_threads,
    }


def spread(
    lines: list[str], name: str, lengths: Sequence[str], used: Callable[[str], str]
) -> tuple[list[str], list[str]] | None:
    """Give a nest of loops to the threads if it is long.

    Parameters
    ----------
    lines : list of str
        The nest, with one statement in it, that stores one element.
    name : str
        For the function.
    lengths : sequence of str
        Of the axes.
    used : callable
        Makes a name that is not used in the function.

    Returns
    -------
    tuple or None
        The lines of the function, and those that take the place of the nest; None if something in
        the nest might raise or is not known.
    """
    *heads, statement = lines
    if not heads:
        return None
    index = [head.split()[1] for head in heads]
    tree = ast.parse(statement.strip()).body[0]
    checks = _checks(tree, dict(zip(index, lengths, strict=True)))
    if checks is None:
        return None
    work = _work(tree)
    if work < _LIGHTEST and len(index) == 1:
        return None
    called = {ast.unparse(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)}
    bounds = {n for text in lengths for n in _names(ast.parse(text))}
    given = sorted(({*_names(tree), *bounds}) - {*index, *called, "np", "math"})
    part, parts, split = used("part"), used("parts"), used("split")
    function = [
        f"@{THREADS}",
        f"def {name}({', '.join([*given, split])}):",
        f"    {parts} = count_threads()",
        f"    for {part} in prange({parts}):",
    ]
    indent = "        "
    for axis, (i, n) in enumerate(zip(index, lengths, strict=True)):
        first, last = f"{part} * {n} // {parts}", f"({part} + 1) * {n} // {parts}"
        at = f"{split} == {axis}"
        bounds_text = f"{first} if {at} else 0, {last} if {at} else {n}"
        function.append(f"{indent}for {i} in range({bounds_text}):")
        indent += "    "
    function += [indent + statement.strip(), ""]
    longest = "0"
    for axis, n in enumerate(lengths[1:], 1):
        before = " and ".join(f"{n} > {m}" for m in lengths[:axis])
        longest = f"{axis} if {before} else {longest}"
    outside = heads[0][: len(heads[0]) - len(heads[0].lstrip())]
    test = " and ".join([f"{' * '.join(lengths)} >= {SHORTEST // work}", *checks])
    call = [
        f"{outside}if {test}:",
        f"{outside}    {name}({', '.join([*given, longest])})",
        f"{outside}else:",
        *(f"    {line}" for line in lines),
    ]
    return function, call


def region(lines: list[str], name: str, length: str, work: str) -> tuple[list[str], list[str]]:
    """Make a region of elementwise operations a function, and another one that spreads it.

    Parameters
    ----------
    lines : list of str
        The region, for elements from ``first`` to ``last`` of the last axis.
    name : str
        For the function.
    length : str
        Of the last axis.
    work : str
        The work of all elements, in tenths of a nanosecond.

    Returns
    -------
    tuple
        The lines of the functions, and those that take the place of the region.
    """
    outside = lines[0][: len(lines[0]) - len(lines[0].lstrip())]
    body = [line[len(outside) :] for line in lines]
    nodes = list(ast.walk(ast.parse("\n".join(body))))
    names = [node for node in nodes if isinstance(node, ast.Name)]
    own = {node.id for node in names if isinstance(node.ctx, ast.Store)}
    functions = {ast.unparse(node.func) for node in nodes if isinstance(node, ast.Call)}
    given = sorted({node.id for node in names} - own - functions - {"first", "last", "np", "math"})
    comma = "".join(f"{each}, " for each in given)
    function = [
        f"@{REGION}",
        f"def {name}({comma}first, last):",
        *(f"    {line}" for line in body),
        "",
        f"@{THREADS}",
        f"def {name}_on_threads({comma}length):",
        "    parts = count_threads()",
        "    for part in prange(parts):",
        f"        {name}({comma}part * length // parts, (part + 1) * length // parts)",
        "",
    ]
    call = [
        f"{outside}if {length} >= {_LONG} and {work} >= {SHORTEST}:",
        f"{outside}    {name}_on_threads({comma}{length})",
        f"{outside}else:",
        f"{outside}    {name}({comma}0, {length})",
    ]
    return function, call


def _work(tree: ast.AST) -> int:
    """About what an iteration costs, in tenths of a nanosecond."""
    work = 0
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            light = _is_call(node) or ast.unparse(node.func).startswith("np.")
            work += _DIVISION if light else _CALL
        elif isinstance(node, ast.Subscript):
            work += _ELEMENT
        elif isinstance(node, (ast.BinOp, ast.UnaryOp, ast.Compare, ast.IfExp)):
            work += _OPERATION
    return max(work, 1)


def _is_call(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name)


def _names(tree: ast.AST) -> Iterator[str]:
    """Variables, in a tree."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Name):
            yield node.id


def _checks(tree: ast.AST, lengths: dict[str, str]) -> list[str] | None:
    """Tests that no index leaves its array; None if the nest holds what is not known here."""
    found = []
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
                    found.append(f"{last} < {node.value.id}.shape[{axis}]")
    return list(dict.fromkeys(found))


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


_QUIET = {"complex_divide", "divide", "float_floor_divide", "float_power", "float_remainder",
          "int_floor_divide", "int_remainder"}  # fmt: skip


def _is_known(f: ast.expr) -> bool:
    """Whether a function is NumPy's or C's, or a helper that raises nothing."""
    if isinstance(f, ast.Name):
        return f.id in _QUIET
    if isinstance(f, ast.Attribute) and isinstance(f.value, ast.Name):
        home = {"np": np, "math": math}.get(f.value.id, _UNKNOWN)
        return getattr(home, f.attr, _UNKNOWN) is not _UNKNOWN
    return False


__all__ = ["can_nest", "namespace", "spread", "threads"]
