"""Nested containers of arguments and results: their innermost values, with their places."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

Path = tuple[Any, ...]


def is_composite(value: Any) -> bool:
    """Whether a value is a container whose tangent mirrors its structure."""
    return isinstance(value, (tuple, list, dict))


def walk(value: Any, path: Path = ()) -> Iterator[tuple[Path, Any]]:
    """Every value in nested containers that is no container, with its path."""
    if is_composite(value):
        items = value.items() if isinstance(value, dict) else enumerate(value)
        for key, part in items:
            yield from walk(part, (*path, key))
    else:
        yield path, value


def pick(value: Any, path: Path) -> Any:
    """The part of nested containers at a path."""
    for key in path:
        value = value[key]
    return value


def rebuild(value: Any, part: Callable[[Path, Any], Any], path: Path = ()) -> Any:
    """Copy nested containers, with ``part(path, value)`` in the place of each innermost value."""
    if isinstance(value, dict):
        return {key: rebuild(v, part, (*path, key)) for key, v in value.items()}
    if is_composite(value):
        parts = [rebuild(v, part, (*path, key)) for key, v in enumerate(value)]
        if hasattr(value, "_fields"):
            return type(value)(*parts)
        return tuple(parts) if isinstance(value, tuple) else parts
    return part(path, value)
