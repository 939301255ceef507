"""Nested containers of arguments and results: their innermost values, with their paths."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from fwdad.core.containers import of_class

Path = tuple[Any, ...]


def is_composite(value: Any) -> bool:
    """Whether a value is a container whose tangent mirrors its structure."""
    return isinstance(value, _CONTAINERS)


_CONTAINERS = (tuple, list, dict)


def walk(value: Any, path: Path = ()) -> list[tuple[Path, Any]]:
    """Every value in nested containers that is not a container, with its path."""
    parts: list[tuple[Path, Any]] = []
    _walk(value, path, parts)
    return parts


def _walk(value: Any, path: Path, parts: list[tuple[Path, Any]]) -> None:
    if is_composite(value):
        for key, part in value.items() if isinstance(value, dict) else enumerate(value):
            if type(part) in _SINGLE:
                parts.append(((*path, key), part))
            else:
                _walk(part, (*path, key), parts)
    else:
        parts.append((path, value))


_SINGLE = {type(None), bool, int, float, np.ndarray}


def pick(value: Any, path: Path) -> Any:
    """The part of nested containers at a path."""
    for key in path:
        value = value[key]
    return value


def rebuild(value: Any, part: Callable[[Path, Any], Any], path: Path = ()) -> Any:
    """Copy nested containers, each innermost value replaced by ``part(path, value)``."""
    if type(value) is tuple and not any(map(is_composite, value)):
        return tuple([part((*path, key), v) for key, v in enumerate(value)])
    if isinstance(value, dict):
        return {key: rebuild(v, part, (*path, key)) for key, v in value.items()}
    if is_composite(value):
        parts = [rebuild(v, part, (*path, key)) for key, v in enumerate(value)]
        return of_class(type(value), parts) if isinstance(value, tuple) else parts
    return part(path, value)
