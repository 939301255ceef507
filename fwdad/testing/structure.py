"""Arguments and results as leaves: the numbers and arrays that have tangents, with their places."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from fwdad.errors import type_in_words
from fwdad.rules.core.containers import Path, is_composite, rebuild, walk
from fwdad.tangents.chunk import Chunk
from fwdad.tangents.zero import ZERO, NoTangentType, Undefined, Zero


def is_leaf(value: Any) -> bool:
    """Whether a value has a tangent space of its own: a float or complex number or array."""
    if isinstance(value, (np.ndarray, np.generic)):
        return value.dtype.kind in "fc"
    return isinstance(value, (float, complex))


def leaf_paths(value: Any) -> list[Path]:
    """The paths of the leaves that have tangents."""
    return [path for path, part in walk(value) if is_leaf(part)]


def tangents_for(primal: Any, chunks: dict[Path, Any]) -> Any:
    """Mirror one argument's structure: chunks where given, ``ZERO`` elsewhere."""
    if not chunks:
        return ZERO
    if is_composite(primal) and hasattr(primal, "_fields"):
        primal = tuple(primal)
    return rebuild(primal, lambda path, _: chunks.get(path, ZERO))


def result_tangents(y: Any, y_dot: Any, path: Path = ()) -> Iterator[tuple[Path, Any, Any]]:
    """Pair each innermost value of a result with its tangent, whose structure must mirror it."""
    if is_composite(y):
        if isinstance(y_dot, (Zero, Undefined, NoTangentType)):
            y_dot = rebuild(tuple(y) if hasattr(y, "_fields") else y, lambda *_: y_dot)
        if not is_composite(y_dot) or len(y_dot) != len(y):
            came = f"{len(y_dot)} tangents" if is_composite(y_dot) else repr(y_dot)
            message = f"the result is {type_in_words(y)} of {len(y)} parts, but got {came}"
            raise AssertionError(message)
        keys = list(y) if isinstance(y, dict) else range(len(y))
        for key in keys:
            yield from result_tangents(y[key], y_dot[key], (*path, key))
    else:
        yield path, y, y_dot


def lanes_of(y: Any, y_dot: Any, n: int) -> dict[Path, Any]:
    """The ``(n, *shape)`` lanes of each differentiable part of a result.

    Parts whose tangent is undefined are left out; a ``ZERO`` becomes an array of zeros.
    """
    found = {}
    for path, value, tangent in result_tangents(y, y_dot):
        if not is_leaf(value) or isinstance(tangent, Undefined):
            continue
        if isinstance(tangent, Chunk):
            found[path] = np.asarray(tangent.lanes)
        else:
            found[path] = np.zeros((n, *np.shape(value)))
    return found


def describe(path: Path) -> str:
    """A path as it would be written behind a name."""
    return "".join(f"[{key!r}]" for key in path)


def copied(value: Any) -> Any:
    """Copy the arrays of nested containers; other values are kept."""
    return rebuild(value, lambda _, v: np.copy(v, order="K") if isinstance(v, np.ndarray) else v)
