"""Liveness of arrays in generated NumPy source: each is freed once nothing reads it any more.

A gradient has a name for every intermediate array. Python keeps what a name refers to until the
function returns, so the arrays of the forward pass would occupy memory, and the cache, until the
end of the reverse pass.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Container
from typing import Any


def free_dead_arrays(code: str, places: list[Any], arrays: Container[str]) -> tuple[str, list[Any]]:
    """Insert ``del`` after the last use of each of a function's arrays; returns code and places.

    ``arrays`` are names in the first function of ``code``. ``places`` are the user's locations, one
    for each line.
    """
    lines, places = code.splitlines(), list(places)
    function = ast.parse(code).body[0]
    assert isinstance(function, ast.FunctionDef)
    everywhere = _names(function)
    for a in function.args.args:
        everywhere[a.arg] += 1  # the caller holds it, too
    last_uses: list[tuple[int, int, str]] = []
    _suite(function.body, everywhere, arrays, last_uses)
    behind: dict[tuple[int, int], list[str]] = {}
    for end, indent, name in last_uses:
        behind.setdefault((end, -indent), []).append(name)
    for (end, indent), names in sorted(behind.items(), reverse=True):
        lines.insert(end, " " * -indent + f"del {', '.join(names)}")
        places.insert(end, None)
    return "\n".join(lines) + "\n", places


def _suite(
    statements: list[ast.stmt],
    everywhere: Counter[str],
    arrays: Container[str],
    found: list[tuple[int, int, str]],
) -> None:
    """Find the arrays that are used only inside a suite, and their last statements in it."""
    uses = [_names(s) for s in statements]
    inside = Counter[str]()
    for counts in uses:  # a sum would allocate a counter per statement
        inside.update(counts)
    first = {name: k for k in reversed(range(len(uses))) for name in uses[k]}
    last = {name: k for k, counts in enumerate(uses) for name in counts}
    for k, s in enumerate(statements):
        target = s.targets[0] if isinstance(s, ast.Assign) and len(s.targets) == 1 else None
        if isinstance(target, ast.Name) and isinstance(s, ast.Assign) and target.id in arrays:
            name, end = target.id, statements[last[target.id]]
            begins = first[name] == k and name not in _names(s.value)
            if begins and inside[name] == everywhere[name] and not isinstance(end, ast.Return):
                found.append((end.end_lineno or 0, s.col_offset, name))
        for inner in ("body", "orelse"):
            if getattr(s, inner, None):
                _suite(getattr(s, inner), everywhere, arrays, found)


def _names(node: ast.AST) -> Counter[str]:
    """How often each name occurs in a piece of source."""
    return Counter(n.id for n in ast.walk(node) if isinstance(n, ast.Name))
