"""The records of functions: what they say is what NumPy does, and nobody else says it."""

import ast
from pathlib import Path

import numpy as np

import fwdad

PACKAGE = Path(fwdad.__file__).parent
X = np.arange(24.0).reshape(2, 3, 4)
S = np.array([[2.0, 1.0], [1.0, 3.0]])

# -- no module lists functions


def names(node):
    """The functions of NumPy's that an expression names: ``np.sum``, ``np.linalg.inv``."""
    if isinstance(node, ast.Attribute):
        text = ast.unparse(node)
        f = np
        for part in text.split(".")[1:]:
            f = getattr(f, part, None)
        return (
            {text} if text.startswith("np.") and callable(f) and not isinstance(f, type) else set()
        )
    return set().union(*map(names, ast.iter_child_nodes(node)), set())


def is_fact(value):
    """Whether the value of an entry says something of a function, and is no handler of it."""
    if isinstance(value, (ast.Tuple, ast.Set, ast.List)):
        return all(map(is_fact, value.elts))
    return isinstance(value, ast.Constant) or (isinstance(value, ast.Attribute) and names(value))


def lists_functions(value):
    """Whether an expression lists functions: a set of them, or a table of facts about them.

    A table of what a module itself does for each function is none: its values are the module's.
    """
    if isinstance(value, ast.Call) and value.args:  # frozenset({…})
        return any(lists_functions(a) for a in value.args)
    if isinstance(value, ast.BinOp):
        return lists_functions(value.left) or lists_functions(value.right)
    if isinstance(value, (ast.Set, ast.List, ast.Tuple)):
        return len(names(ast.Tuple(value.elts))) >= 3
    if isinstance(value, ast.Dict):
        plain = [
            key
            for key, v in zip(value.keys, value.values, strict=True)
            if key is not None and is_fact(v)
        ]
        return len(names(ast.Tuple(plain))) >= 3
    return False


def listing(source):
    """The lines of a module that list functions."""
    lines = []
    for node in ast.parse(source).body:
        value = None
        if isinstance(node, (ast.Assign, ast.AnnAssign)):
            value = node.value
        elif isinstance(node, ast.For):
            value = node.iter
        elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
            value = node.value
        if value is not None and lists_functions(value):
            lines.append(node.lineno)
    return lines


STILL = {  # what code generation writes for a function, and what its own passes know
}


def test_no_module_lists_functions():
    found = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        room = path.relative_to(PACKAGE).as_posix()
        if not room.startswith(("ops/", "rules/", "tangents/laws/")):
            lines = listing(path.read_text(encoding="utf-8"))
            if lines:
                found[room] = lines
    assert found == {}, "say it in fwdad/ops"
