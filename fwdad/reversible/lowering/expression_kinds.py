"""The kinds of elements, slices and places, and of what a function returns."""

from __future__ import annotations

import ast
import dataclasses
from typing import Any

import numpy as np

from fwdad.errors import UnsupportedTypeError
from fwdad.frontend.trace import trace
from fwdad.ir.types import ArrayType
from fwdad.reversible.arguments.kinds import Kind, Numeric, kind_of
from fwdad.reversible.language.places import PARTS, steps


def indexed(kind: Kind, index: ast.expr, kind_of_expression: Any) -> Kind | None:
    """The kind of an element or a slice; None if an array is the index."""
    parts = index.elts if isinstance(index, ast.Tuple) else [index]
    ndim = kind.ndim
    for part in parts:
        if isinstance(part, ast.Slice):
            continue
        if isinstance(part, ast.Constant) and part.value is None:
            ndim += 1
        elif isinstance(part, ast.Constant) and part.value is Ellipsis:
            continue
        elif isinstance(part, (ast.List, ast.ListComp)):
            return None
        else:
            index_kind = kind_of_expression(part)
            if index_kind.is_array or np.dtype(index_kind.dtype).kind == "b":
                return None
            ndim -= 1
    if ndim < 0:
        message = f"too many indices: '{ast.unparse(index)}' for an array of rank {kind.ndim}"
        raise UnsupportedTypeError(message)
    whole = not any(isinstance(p, ast.Slice) or _keeps(p) for p in parts)
    return dataclasses.replace(kind, ndim=ndim, is_array=not (ndim == 0 and whole))


def _keeps(part: ast.expr) -> bool:
    return isinstance(part, ast.Constant) and part.value in (None, Ellipsis)


def place_kind(place: ast.expr, env: dict[str, Kind], of: Any) -> Kind | None:
    """The kind of a place; None if an array is one of its indices."""
    root, path = steps(place)
    kind: Kind | None = env[root]
    for step in path:
        if isinstance(step, ast.Subscript):
            if not getattr(kind, "is_array", False):
                message = f"'{ast.unparse(step.value)}' is not an array: it has no elements"
                raise UnsupportedTypeError(message)
            kind = indexed(kind, step.slice, of)
            if kind is None:
                return None
            continue
        message = f"'{ast.unparse(step)}' cannot be updated in a reversible program"
        if step.attr in PARTS:  # type: ignore[attr-defined]
            message += ": a part of complex numbers is updated by += and -=; an ancilla can hold it"
        raise UnsupportedTypeError(message)
    return kind


def traced_kind(function: Any, kinds: list[Kind]) -> Kind:
    """The kind of what a function returns for arguments of these kinds."""
    samples = [k.sample() for k in kinds]
    if not samples:
        return kind_of(function())
    tape = trace(function, *samples)
    results = tape.program.block.results
    if not results:  # it is the same for all arguments
        return kind_of(tape(*samples))
    if len(results) != 1:
        message = "an expression in a reversible program must be one number or one array"
        raise UnsupportedTypeError(message)
    t = results[0].type
    array = isinstance(t, ArrayType)
    return Numeric(np.dtype(t.dtype).name, len(t.shape) if array else 0, array)
