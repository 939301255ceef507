"""What a reversible body may not call: functions that return something else when run again."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from types import FunctionType
from typing import Any

from fwdad.eager.lifting.source import find_source
from fwdad.errors import is_library_file
from fwdad.frontend.calls.purity import reads_world
from fwdad.reversible.language.syntax import outside
from fwdad.rules.core.registry import function_name

_MISSING = object()


def check_repeatable(
    node: ast.AST, meaning: Callable[[ast.expr], Any], refuse: Callable[[str, ast.AST], Exception]
) -> None:
    """Refuse calls that draw random numbers, or ask the clock, the system or the user.

    ``meaning`` returns what an expression refers to in the world outside; ``refuse`` makes the
    error for a message and a node.
    """
    for call in _calls(node):
        f = meaning(call.func)
        impure = f if reads_world(f) else _called_by(f, set())
        if impure is None:
            continue
        name = function_name(impure)
        by = "" if impure is f else f" (which {function_name(f)} calls)"
        message = (
            f"{name}{by} may return something else when the body runs backwards: call it outside, "
            "and give the body what it returns as an argument"
        )
        raise refuse(message, call)


def _calls(node: ast.AST) -> Iterator[ast.Call]:
    return (n for n in ast.walk(node) if isinstance(n, ast.Call))


def _called_by(f: Any, seen: set[int]) -> Any:
    """A function with varying results that a user's function calls, at any depth; None if none."""
    if not isinstance(f, FunctionType) or id(f) in seen or is_library_file(f.__code__.co_filename):
        return None
    seen.add(id(f))
    source = find_source(f)
    for call in _calls(source.node) if source is not None else ():
        g = _named(f, call.func)
        impure = g if reads_world(g) else _called_by(g, seen)
        if impure is not None:
            return impure
    return None


def _named(f: FunctionType, node: ast.expr) -> Any:
    """What a name, or an attribute of one, refers to outside of a function."""
    if isinstance(node, ast.Attribute):
        owner = _named(f, node.value)
        return _MISSING if owner is _MISSING else getattr(owner, node.attr, _MISSING)
    if not isinstance(node, ast.Name) or node.id in f.__code__.co_varnames:
        return _MISSING
    return outside(f, node.id, _MISSING)
